"""Data of the likelihood algorithm and of generalized PCA: arrays, or sparse and centered."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import astype, inner, namespace, to_numpy
from mnpca.model.low_rank import LowRank
from mnpca.model.sparse import side_by_side


class CenteredSparse:
    """``Y = (S - 1 mean') / unit`` with a sparse S: it multiplies thin arrays as an array does."""

    def __init__(self, matrix: sp.csr_array, mean: FloatArray, unit: float = 1.0) -> None:
        self.shape: tuple[int, int] = matrix.shape
        self.matrix, self.mean, self.unit = matrix, mean, unit

    def __matmul__(self, thin: FloatArray) -> FloatArray:
        product: FloatArray = self.matrix @ thin - self.mean @ thin
        return product if self.unit == 1.0 else product / self.unit

    @property
    def T(self) -> "_Transposed":
        """Return the transpose, which multiplies thin arrays."""
        return _Transposed(self)

    def __truediv__(self, unit: float) -> "CenteredSparse":
        return CenteredSparse(self.matrix, self.mean, self.unit * unit)

    def toarray(self) -> FloatArray:
        """Return the matrix itself."""
        entries: FloatArray = self.matrix.toarray() - self.mean
        return entries / self.unit

    def less(self, signal: LowRank) -> LowRank:
        """Return L and W of the residual ``Y - X W' = S / unit - L W'``."""
        right = np.column_stack([signal.right, self.mean / self.unit])
        return LowRank(np.column_stack([signal.left, np.ones(self.shape[0])]), right)


class _Transposed:
    """``Y'`` by its products."""

    def __init__(self, data: CenteredSparse):
        self._data = data

    def __matmul__(self, thin: FloatArray) -> FloatArray:
        data = self._data
        product: FloatArray = data.matrix.T @ thin - np.outer(data.mean, thin.sum(axis=0))
        return product if data.unit == 1.0 else product / data.unit


def centered(matrix: Any, center: bool = True) -> tuple[Any, FloatArray]:
    """Return the matrix in float64 less its mean row, and that row (zeros without `center`).

    A sparse matrix stays sparse, one of another library stays there.
    """
    mean: FloatArray = np.zeros(matrix.shape[1])
    if sp.issparse(matrix):
        if center:
            mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        return CenteredSparse(sp.csr_array(matrix, dtype=np.float64), mean), mean
    data = astype(matrix, "float64")
    if not center:
        return data, mean
    own = namespace(data).mean(data, axis=0)
    return data - own[None, :], to_numpy(own)


def row_gram(data: Any, signal: LowRank, col_precision: Any, n_rows: int) -> Any:
    """Return ``R B R'`` of the residual ``R = Y - X W'``, added up over matrices of `n_rows`."""
    if not isinstance(data, CenteredSparse):
        residual = data - signal.dense()
        weighted = side_by_side(residual @ col_precision, n_rows)
        return weighted @ side_by_side(residual, n_rows).T
    return _sparse_gram(data.matrix / data.unit, *data.less(signal), col_precision)


def col_gram(data: Any, signal: LowRank, row_precision: Any) -> Any:
    """Return ``R' A R`` of the residual ``R = Y - X W'``."""
    if not isinstance(data, CenteredSparse):
        residual = data - signal.dense()
        return residual.T @ (row_precision @ residual)
    left, right = data.less(signal)
    return _sparse_gram(data.matrix.T / data.unit, right, left, row_precision)


def _sparse_gram(
    matrix: sp.csr_array, left: FloatArray, right: FloatArray, precision: sp.csr_array
) -> FloatArray:
    """Return ``R P R'`` of the residual ``R = S - L W'``, a dense array."""
    weighted = precision @ right
    crossed = (matrix @ weighted) @ left.T
    stored = (matrix @ precision @ matrix.T).toarray()
    gram: FloatArray = stored - crossed - crossed.T + left @ (right.T @ weighted) @ left.T
    return gram


def weighted_norm(data: Any, signal: LowRank, row_precision: Any, col_precision: Any) -> float:
    """Return ``tr(B R'AR)`` of the residual ``R = Y - X W'``."""
    if not isinstance(data, CenteredSparse):
        residual = data - signal.dense()
        return inner(row_precision @ residual, residual @ col_precision)
    left, right = data.less(signal)
    rows, cols = row_precision @ left, col_precision @ right
    stored = (row_precision @ data.matrix).multiply(data.matrix @ col_precision).sum()
    crossed = np.sum(rows * (data.matrix @ cols))
    own = np.sum((left.T @ rows) * (right.T @ cols))
    return float(stored / data.unit**2 - 2.0 * crossed / data.unit + own)
