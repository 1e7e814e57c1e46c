"""Products of tall thin arrays, cut into slices that threads share.

The number of rows can be a million where the matrix is on a GPU; then these products, not those
with the matrix, take the time. Slices have a fixed length, so results do not depend on the threads.
"""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels as kernels
from mnpca.engines.threads import each, slices

#: Rows of a slice; shorter arrays are multiplied in one go.
ROWS = 2**15
#: Components up to this size are rotated by a compiled loop, larger ones by BLAS.
SMALL = 16


def product(thin: FloatArray, small: FloatArray) -> FloatArray:
    """Return ``Z T`` for a q x k array Z and a k x l array T."""
    out = np.empty((len(thin), small.shape[1]))
    each(lambda part: np.matmul(thin[part], small, out=out[part]), slices(len(thin), ROWS))
    return out


def turn(thin: FloatArray, small: FloatArray) -> None:
    """Replace Z by ``Z T``, T square."""

    def change(part: slice) -> None:
        thin[part] = thin[part] @ small

    each(change, slices(len(thin), ROWS))


def inner(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return ``X' Z`` for two arrays with q rows."""
    if len(left) <= ROWS:
        return np.asarray(left.T @ right)
    return np.asarray(sum(each(lambda p: left[p].T @ right[p], slices(len(left), ROWS))))


def weigh(weights: FloatArray | sp.csr_array, thin: FloatArray) -> FloatArray:
    """Return ``P Z`` for a precision P, one-dimensional where it is diagonal."""
    matrix: sp.csr_array | None = weights if sp.issparse(weights) else None
    if len(thin) <= ROWS:
        return np.asarray(weights[:, None] * thin if matrix is None else matrix @ thin)
    out = np.empty_like(thin)

    def fill(part: slice) -> None:
        if matrix is None:
            np.multiply(weights[part, None], thin[part], out=out[part])
        else:
            kernels.csr_times(
                matrix.indptr, matrix.indices, matrix.data, thin, part.start, part.stop, out
            )

    each(fill, slices(len(thin), ROWS))
    return out


def rotate_components(
    items: IntArray, blocks: FloatArray, thin: FloatArray, out: FloatArray
) -> None:
    """Write ``block_c' Z[items_c]`` to ``out[items_c]`` for every component c.

    `items` is c x s (with one more axis in front where the components are there several times)
    and `blocks` c x s x s.
    """
    size = items.shape[-1]
    if items.size <= ROWS or size > SMALL:
        part = thin[items].astype(blocks.dtype)
        out[items] = np.matmul(blocks.transpose(0, 2, 1), part)
        return
    flat = items.reshape(-1, size)

    def fill(part: slice) -> None:
        kernels.rotate_small(flat, blocks, thin, part.start, part.stop, out)

    each(fill, slices(len(flat), max(ROWS // size, 1)))
