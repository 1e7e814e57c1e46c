"""A fit and its training matrix, in the form that the diagnostics need."""

import copy

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca.estimators._array_api import on_host


def training_view(model, X):
    """Return a model and its training matrix in NumPy, without gaps and covariate effects.

    Gaps are filled by the fit, effects of covariates are taken off: what is left is the signal and
    the noise that the diagnostics are about.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators of a low-rank signal and two noise networks.
    X : array-like of shape (n, p)
        The matrix that it was fitted to.
    """
    check_is_fitted(model)
    if not hasattr(model, "row_precision_"):
        raise TypeError(
            "This is about one matrix with two networks, and a "
            f"{type(model).__name__} is another model."
        )
    X = np.asarray(on_host(X), dtype=float)
    if X.ndim != 2:
        raise ValueError(
            f"This is about one matrix, and X has {X.ndim} axes; for several matrices see the "
            "estimator's model_check_."
        )
    shape = (model.row_precision_.shape[0], model.col_precision_.shape[0])
    if X.shape != shape:
        raise ValueError(
            f"X must be the training matrix, {shape[0]} x {shape[1]}, and is "
            f"{X.shape[0]} x {X.shape[1]}."
        )
    model = _in_memory(model)
    if hasattr(model, "plain_view"):
        model, X = model.plain_view(X)
    if np.isnan(X).any():
        raise ValueError("X has gaps that the training matrix did not have.")
    return model, X


def _in_memory(model):
    """Return a copy whose arrays are NumPy's and whose results are computed at once."""
    model = copy.copy(model)
    vars(model).update({name: on_host(value) for name, value in vars(model).items()})
    if hasattr(model, "row_chunks_"):
        model.row_chunks_ = None
    return model
