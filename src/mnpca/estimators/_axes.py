"""What the estimators of arrays with three axes or more share."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from mnpca._typing import FloatArray
from mnpca.estimators._edges import NetworksMixin
from mnpca.estimators._files import ReportingEstimator
from mnpca.estimators._input import check_values, without_marks
from mnpca.solvers.progress import Report, State, negated
from mnpca.solvers.tensor.fit import TensorFit


class AxesEstimator(ReportingEstimator, NetworksMixin, TransformerMixin, BaseEstimator):
    """An estimator whose data have one noise precision per axis.

    A subclass has ``_estimate(data, report, resume)``, which returns a `TensorFit`, and
    ``_store_fit(fit)``.
    """

    max_iter: int
    tol: float
    verbose: int

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "center": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _prepare(
        self, X: Any, row_covariates: None, col_covariates: None
    ) -> tuple[FloatArray, FloatArray]:
        for name, given in (("row", row_covariates), ("col", col_covariates)):
            if given is not None:
                raise ValueError(
                    f"{type(self).__name__} takes no {name}_covariates. Subtract their "
                    "least-squares fit from X first. MNPCA, for a matrix, has fit(X, "
                    f"{name}_covariates=...)."
                )
        X = self._validate_array(X, reset=True)
        return X, X

    def _fit(self, training: FloatArray, report: Report, resume: State | None) -> None:
        data = training.astype(np.float64, copy=False)
        fit = self._estimate(data, report=negated(report), resume=resume)
        self.shape_ = data.shape
        self._store_fit(fit)
        self._store_progress(fit)

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
