"""Linear algebra on sparse precisions, one connected component at a time."""

import math

import numpy as np
import scipy.sparse as sp

from mnpca._components import blocks_by_size, group_by_label, label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import cholesky, is_foreign_array
from mnpca.engines.arrays import logdet as dense_logdet


def components(matrix: sp.csr_array) -> list[IntArray]:
    """Return the items of each connected component, in increasing order."""
    return group_by_label(label_components(matrix))


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
    for items, block in blocks_by_size(precision):
        # The product of the squared diagonal of a Cholesky factor is the determinant.
        diagonal[items] = np.einsum("cii->ci", np.linalg.cholesky(block)) ** 2
    if (diagonal <= 0).any():
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    return float(np.log(diagonal).sum())


def normalize_gauge(
    row_precision: sp.csr_array, col_precision: sp.csr_array
) -> tuple[sp.csr_array, sp.csr_array]:
    """Scale the pair so that ``logdet A = 0``, the gauge in which fits are reported."""
    scale = math.exp(logdet(row_precision) / row_precision.shape[0])
    return row_precision / scale, col_precision * scale
