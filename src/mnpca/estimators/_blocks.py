"""Matrices that are read in blocks of rows: answered block by block.

A memory-mapped array gives NumPy arrays; a dask array gives dask arrays, not yet computed.
"""

import numpy as np

from mnpca.engines import engine_for, is_dask
from mnpca.model.likelihood import row_log_likelihood

NOT_FINITE = (
    "Input X contains NaN or infinity. Replace or drop such entries; NaN for missing ones is "
    "understood in NumPy arrays in memory only."
)


def with_known_chunks(X):
    """Return a dask array whose number of rows is known and whose entries are real numbers."""
    if np.isnan(X.shape).any():
        raise ValueError(
            "X has chunks of unknown length. Call X.compute_chunk_sizes() first, or make X with "
            "to_dask_array(lengths=True)."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, not {X.dtype}. Use X.astype(float).")
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def each_block(X, function, width=None):
    """Return ``function(rows)`` of all rows of X, of the given width or a number per row."""
    if not is_dask(X):
        return np.concatenate([function(np.asarray(rows)) for rows in engine_for(X).row_blocks()])
    X = X.rechunk({1: -1})
    if width is None:
        return X.map_blocks(function, drop_axis=1, dtype=np.float64)
    return X.map_blocks(function, chunks=(X.chunks[0], (width,)), dtype=X.dtype)


def project(X, transform, mean):
    """Return ``(X - 1 mean') T``."""

    def scores(rows):
        _check_finite(rows)
        return ((rows - mean) @ transform).astype(rows.dtype)

    return each_block(X, scores, transform.shape[1])


def log_likelihood(X, mean, *model):
    """Return the log-likelihood of every row."""

    def densities(rows):
        _check_finite(rows)
        return row_log_likelihood(rows - mean, *model)

    return each_block(X, densities)


def low_rank_blocks(left, right, row_chunks, function):
    """Return ``function(left right')`` as a dask array with the given chunks of rows."""
    import dask.array as da

    factor = da.from_array(left, chunks=(row_chunks, -1))
    return factor.map_blocks(
        lambda rows: function(rows @ right.T),
        chunks=(row_chunks, (len(right),)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )


def _check_finite(rows):
    if not np.isfinite(rows).all():
        raise ValueError(NOT_FINITE)
