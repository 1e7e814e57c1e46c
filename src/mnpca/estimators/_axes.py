"""What the estimators of arrays with three axes or more share."""

import warnings

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from mnpca.estimators._progress import ProgressMixin
from mnpca.estimators._saving import SaveMixin
from mnpca.estimators._validation import check_magnitude, check_variation, plain


class AxesEstimator(SaveMixin, ProgressMixin, TransformerMixin, BaseEstimator):
    """Validation and warnings of estimators whose data have one noise precision per axis."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_array(self, X, *, reset):
        """Return X as a finite float array with two axes or more."""
        X = validate_data(
            self,
            plain(X),
            reset=reset,
            allow_nd=True,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=2 if reset else 1,
        )
        if X.size == 0:
            raise ValueError(f"X holds no entries: its shape is {X.shape}.")
        if reset:
            check_magnitude(X)
            check_variation(X)
        elif X.shape[1:] != self.shape_[1:]:
            raise ValueError(
                f"X has slices of shape {X.shape[1:]}, but {type(self).__name__} was fitted to "
                f"slices of shape {self.shape_[1:]}."
            )
        return X

    def _store_progress(self, fit):
        """Set what every fit tells of how it went, and warn where it did not settle."""
        self.objective_history_ = np.array([entry[2] for entry in fit.history])
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
