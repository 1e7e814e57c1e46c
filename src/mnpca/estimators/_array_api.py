"""Scores, likelihoods and signals of matrices outside NumPy's memory, computed where these are.

Arrays of another library (torch, CuPy, ...) stay in it. A memory-mapped array is read in blocks of
rows and gives NumPy arrays; a dask array gives dask arrays, not yet computed.
"""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines import engine_for, is_dask
from mnpca.engines.arrays import is_foreign_array, like
from mnpca.estimators._input import check_finite
from mnpca.model.low_rank import LowRank
from mnpca.model.rows import RowModel, row_log_likelihood

#: Fitted arrays that are put where the training matrix is; all others are NumPy's or SciPy's.
PLACED = (
    "mean_",
    "components_",
    "singular_values_",
    "low_rank_",
    "signal_variance_",
    "score_covariance_",
)


def project(X: Any, weights: FloatArray, mean: FloatArray) -> Any:
    """Return ``(X - 1 mean') T``, T the weights."""
    if is_foreign_array(X):
        return (X - like(mean, X)[None, :]) @ like(weights, X)

    def scores(rows: Any) -> FloatArray:
        check_finite(rows)
        return ((rows - mean) @ weights).astype(rows.dtype)

    return _each_block(X, scores, weights.shape[1])


def from_scores(scores: Any, components: FloatArray, mean: FloatArray) -> Any:
    """Return ``X W' + mean``, X the scores, which may also be a NumPy array."""
    if is_foreign_array(scores):
        return scores @ like(components, scores) + like(mean, scores)

    def rows(scores: Any) -> FloatArray:
        return (scores @ components + mean).astype(scores.dtype, copy=False)

    return _each_block(scores, rows, len(mean)) if is_dask(scores) else rows(scores)


def log_likelihood(X: Any, mean: FloatArray, model: RowModel) -> Any:
    """Return the log-likelihood of every row under a `RowModel`."""

    def densities(rows: Any) -> FloatArray:
        check_finite(rows)
        return row_log_likelihood(rows - mean, model)

    return _each_block(X, densities)


def _each_block(X: Any, function: Callable[[Any], Any], width: int | None = None) -> Any:
    """Return ``function(rows)`` of all rows of X, of the given width or a number per row."""
    if is_dask(X):
        X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(function, drop_axis=1, dtype=np.float64)
        return X.map_blocks(function, chunks=(X.chunks[0], (width,)), dtype=X.dtype)
    values = np.concatenate([function(np.asarray(rows)) for rows in engine_for(X).row_blocks()])
    return like(values, X) if is_foreign_array(X) else values


def low_rank_blocks(
    left: FloatArray, right: FloatArray, row_chunks: tuple[int, ...], function: Callable[[Any], Any]
) -> Any:
    """Return ``function(left right')`` as a dask array with the given chunks of rows."""
    import dask.array as da

    factor: Any = da.from_array(left, chunks=(row_chunks, -1))  # type: ignore[no-untyped-call]
    return factor.map_blocks(
        lambda rows: function(rows @ right.T),
        chunks=(row_chunks, (len(right),)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )


def training_moments(
    X: Any, mean: FloatArray, weights: FloatArray, col_precision: Any
) -> tuple[FloatArray, float]:
    """Return ``R T`` and ``tr(R B R')``, R = X - 1 mean', for weights T of shape (p, k)."""
    engine = engine_for(X)
    scale = np.sqrt(engine.column_mean_squares(mean))
    scale[scale == 0] = 1.0
    engine = engine.standardized(mean, scale)  # whose single precision has no room for any unit
    diagonal = sp.diags_array(scale)
    ones = np.ones(engine.shape[0])
    total = engine.weighted_norm(ones, sp.csr_array(diagonal @ col_precision @ diagonal))
    return engine.times(scale[:, None] * weights), total


def fingerprint_rows(X: Any) -> str:
    """Return a digest of a matrix, the same whatever its pieces."""
    digest = hashlib.blake2b(f"{type(X).__module__}{X.dtype}{tuple(X.shape)}".encode())
    for rows in engine_for(X).row_blocks():
        digest.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return digest.hexdigest()


def place_results(estimator: Any, X: Any) -> None:
    """Put the fitted arrays where X is, in its type."""
    for name in PLACED:
        value = getattr(estimator, name, None)
        if isinstance(value, tuple):
            setattr(estimator, name, LowRank(*(like(factor, X) for factor in value)))
        elif value is not None:
            setattr(estimator, name, like(value, X))
