"""What the estimators of arrays with three axes or more share."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from mnpca._typing import FloatArray, PathLike
from mnpca.estimators._files import ProgressMixin, SaveMixin
from mnpca.estimators._input import check_values, without_marks
from mnpca.solvers.progress import Report, negated
from mnpca.solvers.tensor.fit import TensorFit


class AxesEstimator(SaveMixin, ProgressMixin, TransformerMixin, BaseEstimator):
    """An estimator whose data have one noise precision per axis.

    A subclass has ``_estimate(data, report, resume)``, which returns a `TensorFit`, and
    ``_store_fit(fit)``.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        row_covariates: None = None,
        col_covariates: None = None,
        callback: Report | None = None,
        checkpoint: PathLike | None = None,
        resume_from: PathLike | None = None,
    ) -> Self:
        """Estimate the signal and the noise of every axis.

        Parameters
        ----------
        X : array-like with two axes or more
            Data; the first axis are the samples that `transform` takes. `DimensionFoldingPCA` takes
            several matrices: three axes, or a list of matrices.
        y : None
            Ignored.
        row_covariates, col_covariates : None
            Not supported; the error says what to do instead.
        callback : callable, default=None
            Called with a `mnpca.Progress` after every iteration.
        checkpoint : path-like, default=None
            File in which the state of the fit is kept.
        resume_from : path-like, default=None
            Checkpoint of the same fit to go on from.

        Returns
        -------
        self
        """
        for name, given in (("row", row_covariates), ("col", col_covariates)):
            if given is not None:
                raise ValueError(
                    f"{type(self).__name__} takes no {name}_covariates. Subtract their "
                    "least-squares fit from X first. MNPCA, for a matrix, has fit(X, "
                    f"{name}_covariates=...)."
                )
        X = self._validate_array(X, reset=True)
        data = X.astype(np.float64, copy=False)
        with self._progress(X, callback, checkpoint, resume_from) as (report, resume):
            fit = self._estimate(data, report=negated(report), resume=resume)
        self.shape_ = X.shape
        self._store_fit(fit)
        self._store_progress(fit)
        return self

    def _validate_array(self, X: Any, *, reset: bool) -> FloatArray:
        """Return X as a finite float array with two axes or more."""
        X = validate_data(
            self,
            without_marks(X),
            reset=reset,
            allow_nd=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
        )
        if X.size == 0:
            raise ValueError(f"X holds no entries: its shape is {X.shape}.")
        if reset:
            check_values(X.reshape(len(X), -1))
        elif X.shape[1:] != self.shape_[1:]:
            raise ValueError(
                f"X has slices of shape {X.shape[1:]}, but {type(self).__name__} was fitted to "
                f"slices of shape {self.shape_[1:]}."
            )
        return X

    def _store_progress(self, fit: TensorFit) -> None:
        """Set what every fit tells of how it went, and warn where it did not settle."""
        self.objective_history_ = np.array([-entry[2] for entry in fit.history])
        self.n_iter_ = len(fit.history)
        self.converged_ = fit.converged
        if not fit.converged:
            change = [entry[3] for entry in fit.history if entry[0] == fit.chosen][-1]
            warnings.warn(
                f"{type(self).__name__} did not settle in {self.n_iter_} iterations: the last one "
                f"of the best stage changed the signal by {change:.0%} of its size. Use lower "
                'ranks, noise="diagonal", or a larger max_iter or tol.',
                ConvergenceWarning,
                stacklevel=4,
            )
