"""What every fit checks about its training matrix, in one place."""

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data


def validate_training(estimator, X, *, accept_sparse=False):
    """Return X as a finite float matrix that a fit can rely on, and note its names.

    Sets ``n_features_in_``, ``feature_names_in_`` and, where X has names for its rows,
    ``sample_names_in_``. The result may share memory with X: a fit must never write to it.

    Raises
    ------
    ValueError
        If X has fewer than two rows, missing or infinite values, no variation at all, or values
        so large or small that their squares cannot be represented.
    """
    names = _sample_names(X)
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr" if accept_sparse else False,
        dtype=[np.float64, np.float32],
        # Rounding depends on the order in memory, and results should not.
        order="C",
        ensure_min_samples=2,
    )
    if names is not None:
        estimator.sample_names_in_ = names
    elif hasattr(estimator, "sample_names_in_"):
        del estimator.sample_names_in_
    _check_magnitude(X)
    _check_variation(X)
    return X


def _sample_names(X):
    """Row names of a data frame that has them; a plain 0, 1, 2, ... index is none."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(X, "columns"):
        return None
    names = list(index)
    if names == list(range(len(names))):
        return None
    return np.array([str(name) for name in names], dtype=object)


def _check_magnitude(X):
    """Refuse a matrix whose second and third powers overflow or vanish."""
    # Two passes over X without a temporary of its size, which np.abs would make.
    largest = max(abs(float(X.max())), abs(float(X.min())))
    limits = np.finfo(X.dtype)
    if largest == 0:
        raise ValueError(
            "X is zero everywhere, so there is neither signal nor noise to estimate. "
            "Check how X was read."
        )
    high, low = float(limits.max) ** (1 / 3), float(limits.tiny) ** (1 / 3)
    if not low <= largest <= high:
        raise ValueError(
            f"The largest absolute value of X is {largest:.3g}; noise precisions of such data "
            f"cannot be represented in {X.dtype.name}. Rescale X first, e.g. X / {largest:.3g}."
        )


def _check_variation(X):
    """Refuse a matrix whose rows are all the same."""
    if sp.issparse(X):
        return
    # The second comparison is seldom made, and only it reads all of X.
    if np.array_equal(X[0], X[-1]) and (X[0] == X).all():
        raise ValueError(
            "All rows of X are the same, so there is neither signal nor noise to estimate. "
            "Check how X was read."
        )
