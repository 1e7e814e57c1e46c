"""Matrices that are not NumPy arrays: checked and answered where they live."""

import hashlib

import numpy as np
import scipy.sparse as sp

from mnpca.engines import engine_for, is_dask
from mnpca.engines.arrays import is_foreign_array, like, namespace, to_numpy
from mnpca.estimators._blocks import NOT_FINITE, with_known_chunks
from mnpca.model.likelihood import row_log_likelihood
from mnpca.model.low_rank import LowRank

# Fitted arrays that follow the training matrix; everything else is NumPy's or scipy's.
PLACED = (
    "mean_",
    "components_",
    "singular_values_",
    "low_rank_",
    "signal_variance_",
    "score_covariance_",
)


def checked_rows(estimator, X):
    """Return rows to project or to score, of a floating type and as wide as the training data."""
    X = floating_matrix(X)
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    if not is_dask(X):  # its blocks are checked when they are computed
        _check_finite(engine_for(X).extremes())
    return X


def checked_training(estimator, X):
    """Return a training matrix of a floating type; note its width and that it has no names.

    Returns the matrix and its smallest and largest entry.
    """
    X = floating_matrix(X)
    n, p = X.shape
    if n < 2 or p < 1:
        raise ValueError(
            f"Found array with {n} sample(s) and {p} feature(s) (shape={(n, p)}) while a minimum "
            f"of 2 samples and 1 feature is required by {type(estimator).__name__}."
        )
    engine = engine_for(X)
    extremes = engine.extremes()
    _check_finite(extremes)
    for name in ("feature_names_in_", "sample_names_in_"):
        if hasattr(estimator, name):
            delattr(estimator, name)
    estimator.n_features_in_ = p
    return X, extremes


def floating_matrix(X):
    """Return a matrix of a real floating type, or say what is wrong with it."""
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead. Several matrices are fitted "
            "as NumPy arrays only."
        )
    if is_dask(X):
        return with_known_chunks(X)
    if not is_foreign_array(X):
        return X
    xp = namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("X must hold real numbers, and it is complex. Pass its real part.")
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError("X must be dense: use X.to_dense().")
    if not xp.isdtype(X.dtype, "real floating"):
        return xp.astype(X, xp.float64)
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)


def _check_finite(extremes):
    if not np.isfinite(extremes).all():
        raise ValueError(NOT_FINITE)


def same_rows(X):
    """Tell whether all rows of a matrix are the same."""
    engine = engine_for(X)
    n, p = engine.shape
    first, last = engine.block(np.array([0, n - 1]), np.arange(p))
    return bool(np.array_equal(first, last)) and not engine.column_mean_squares(first).any()


def fingerprint_rows(X):
    """Return a digest of a matrix, the same whatever its pieces."""
    digest = hashlib.blake2b(f"{type(X).__module__}{X.dtype}{tuple(X.shape)}".encode())
    for rows in engine_for(X).row_blocks():
        digest.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return digest.hexdigest()


def training_moments(X, mean, weighted, col_precision):
    """Return ``(X - 1 mean') B W`` and ``tr(R B R')``, R = X - 1 mean'.

    Parameters
    ----------
    weighted : array of shape (p, k)
        ``B W``.
    """
    engine = engine_for(X)
    scale = np.sqrt(engine.column_mean_squares(mean))
    scale[scale == 0] = 1.0
    engine = engine.standardized(mean, scale)  # whose single precision has no room for any unit
    diagonal = sp.diags_array(scale)
    ones = np.ones(engine.shape[0])
    total = engine.weighted_norm(ones, sp.csr_array(diagonal @ col_precision @ diagonal))
    return engine.times(scale[:, None] * weighted), total


def project(X, transform, mean):
    """Return ``(X - 1 mean') T`` where X lives."""
    return (X - like(mean, X)[None, :]) @ like(transform, X)


def log_likelihood(X, mean, *model):
    """Return the log-likelihood of every row where X lives, computed on the host."""
    values = [row_log_likelihood(rows - mean, *model) for rows in engine_for(X).row_blocks()]
    return like(np.concatenate(values), X)


def place_results(estimator, X):
    """Put the fitted arrays where X lives, in its type."""
    for name in PLACED:
        if hasattr(estimator, name):
            setattr(estimator, name, placed(getattr(estimator, name), X))


def placed(value, X):
    """Return an array, or the two factors of one, where X lives."""
    if isinstance(value, tuple):
        return LowRank(*(like(factor, X) for factor in value))
    return like(value, X)


def on_host(value):
    """Return an array, or the factors of one, in NumPy's float64; anything else as it is."""
    if isinstance(value, LowRank):
        return LowRank(*(on_host(factor) for factor in value))
    return to_numpy(value).astype(np.float64) if is_foreign_array(value) else value
