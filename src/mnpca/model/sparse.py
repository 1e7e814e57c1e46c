"""Linear algebra on sparse precisions, one connected component at a time."""

import math
from collections.abc import Iterator

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mnpca._components import group_by_label, label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import cholesky, is_foreign_array
from mnpca.engines.arrays import logdet as dense_logdet


def components(matrix: sp.csr_array) -> list[IntArray]:
    """Return the items of each connected component, in increasing order."""
    return group_by_label(label_components(matrix))


def blocks(matrix: sp.csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield (items, dense block) of every component with more than one item."""
    parts = [items for items in components(matrix) if len(items) > 1]
    if not parts:
        return
    # One permutation that makes the components contiguous is far cheaper than slicing for each.
    order = np.concatenate(parts)
    sorted_matrix = sp.csr_array(matrix[order][:, order])
    start = 0
    for items in parts:
        size = len(items)
        bounds = sorted_matrix.indptr[start : start + size + 1]
        entries = slice(bounds[0], bounds[-1])
        block = np.zeros((size, size))
        row = np.repeat(np.arange(size), np.diff(bounds))
        block[row, sorted_matrix.indices[entries] - start] = sorted_matrix.data[entries]
        start += size
        yield items, block


def tile(precision: sp.csr_array, n_rows: int) -> sp.csr_array:
    """Return the precision of `n_rows` rows: of several matrices with the same rows, one A each."""
    size = precision.shape[0]
    n_repeats = n_rows // size
    if n_repeats == 1:
        return precision
    # Six times as fast as the Kronecker product.
    nnz = precision.nnz
    shift = np.arange(n_repeats, dtype=precision.indices.dtype)[:, None]
    columns = (precision.indices + size * shift).ravel()
    starts = np.append((precision.indptr[:-1] + nnz * shift).ravel(), n_repeats * nnz)
    return sp.csr_array((np.tile(precision.data, n_repeats), columns, starts), (n_rows, n_rows))


def side_by_side(stacked: FloatArray, n_rows: int) -> FloatArray:
    """Put matrices of `n_rows` rows, one under the other, side by side."""
    if stacked.shape[0] == n_rows:
        return stacked
    return np.concatenate(np.split(stacked, len(stacked) // n_rows), axis=1)


def logdet(precision: sp.csr_array) -> float:
    """Log-determinant of a sparse positive definite matrix, by Cholesky per component.

    A dense matrix of another library than NumPy is factorized where it lives. A matrix that is not
    positive definite raises ``numpy.linalg.LinAlgError``.
    """
    if is_foreign_array(precision):
        factor = cholesky(precision)
        if factor is None:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return dense_logdet(factor)
    diagonal = precision.diagonal()
    alone = np.ones(len(diagonal), dtype=bool)
    total = 0.0
    for items, block in blocks(precision):
        alone[items] = False
        factor = scipy.linalg.cholesky(block, lower=True)
        total += 2.0 * float(np.log(np.diag(factor)).sum())
    if (diagonal[alone] <= 0).any():
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    return total + float(np.log(diagonal[alone]).sum())


def normalize_gauge(
    row_precision: sp.csr_array, col_precision: sp.csr_array
) -> tuple[sp.csr_array, sp.csr_array]:
    """Scale the pair so that ``logdet A = 0``, the gauge in which fits are reported."""
    scale = math.exp(logdet(row_precision) / row_precision.shape[0])
    return row_precision / scale, col_precision * scale
