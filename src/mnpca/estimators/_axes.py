"""What the estimators of arrays with noise on every axis share."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from mnpca._typing import FloatArray
from mnpca.estimators._edges import NetworksMixin
from mnpca.estimators._files import ReportingEstimator
from mnpca.estimators._input import check_values, missing_as_nan, representable
from mnpca.solvers.progress import Report, State, negated
from mnpca.solvers.tensor.fit import TensorFit


class AxesEstimator(ReportingEstimator, NetworksMixin, TransformerMixin, BaseEstimator):
    """An estimator whose data have one noise precision per axis.

    A subclass has ``_estimate(data, **options)``, which returns a `TensorFit`;
    ``_store_fit(fit, precisions)``, with the precision matrices of all axes; and
    ``_project(centered)``, which returns scores.
    """

    center: bool
    max_iter: int
    tol: float
    verbose: int

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
        fit: TensorFit = self._estimate(
            training.astype(np.float64, copy=False),
            center=self.center,
            max_iter=self.max_iter,
            tol=self.tol,
            report=negated(report),
            resume=resume,
        )
        self.shape_ = training.shape
        self.mean_ = np.zeros(self.shape_[1:]) if fit.signal.mean is None else fit.signal.mean
        self._store_fit(fit, [sp.csr_array(side.precision) for side in fit.noise])
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
                stacklevel=3,
            )

    def _validate_array(self, X: Any, *, reset: bool) -> FloatArray:
        """Return X as a finite float array with two axes or more."""
        X = validate_data(
            self,
            missing_as_nan(X),
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

    def _scores(self, X: Any) -> FloatArray:
        """Check slices of the first axis and return their scores."""
        check_is_fitted(self)
        X = self._validate_array(X, reset=False)
        return representable(X.dtype, self._project, X - self.mean_)
