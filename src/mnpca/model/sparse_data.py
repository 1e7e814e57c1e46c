"""Data of the likelihood algorithm and of generalized PCA: arrays, or sparse and centered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import astype, inner, namespace, to_numpy
from mnpca.model.low_rank import LowRank
from mnpca.model.sparse import side_by_side


@dataclass(frozen=True, eq=False)
class SparseMinusLowRank:
    """``S - L R'`` with a sparse S: it multiplies thin arrays as an array does."""

    matrix: Any
    left: FloatArray
    right: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of columns."""
        n, p = self.matrix.shape
        return n, p

    @property
    def T(self) -> "SparseMinusLowRank":
        """Return the transpose."""
        return SparseMinusLowRank(self.matrix.T, self.right, self.left)

    def __matmul__(self, thin: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ thin - self.left @ (self.right.T @ thin))

    def __truediv__(self, unit: float) -> "SparseMinusLowRank":
        return SparseMinusLowRank(self.matrix / unit, self.left, self.right / unit)

    def toarray(self) -> FloatArray:
        """Return the matrix itself."""
        return np.asarray(self.matrix.toarray() - self.left @ self.right.T)

    def minus(self, signal: LowRank) -> "SparseMinusLowRank":
        """Return the residual of a signal."""
        left = np.column_stack([self.left, signal.left])
        return SparseMinusLowRank(self.matrix, left, np.column_stack([self.right, signal.right]))


def centered(matrix: Any, center: bool = True) -> tuple[Any, FloatArray]:
    """Return the matrix in float64 less its mean row, and that row (zeros without `center`).

    A sparse matrix stays sparse, one of another library stays there.
    """
    mean: FloatArray = np.zeros(matrix.shape[1])
    if sp.issparse(matrix):
        if center:
            mean = np.asarray(matrix.mean(axis=0, dtype=np.float64)).ravel()
        ones = np.ones((matrix.shape[0], 1))
        return SparseMinusLowRank(sp.csr_array(matrix, dtype=np.float64), ones, mean[:, None]), mean
    data = astype(matrix, "float64")
    if not center:
        return data, mean
    own = namespace(data).mean(data, axis=0)
    return data - own[None, :], to_numpy(own)


def row_gram(data: Any, signal: LowRank, col_precision: Any, n_rows: int) -> Any:
    """Return ``R B R'`` of the residual ``R = Y - X W'``, added up over matrices of `n_rows`."""
    if isinstance(data, SparseMinusLowRank):
        return _sparse_gram(data.minus(signal), col_precision)
    residual = data - signal.dense()
    weighted = side_by_side(residual @ col_precision, n_rows)
    return weighted @ side_by_side(residual, n_rows).T


def col_gram(data: Any, signal: LowRank, row_precision: Any) -> Any:
    """Return ``R' A R`` of the residual ``R = Y - X W'``."""
    if isinstance(data, SparseMinusLowRank):
        return _sparse_gram(data.minus(signal).T, row_precision)
    residual = data - signal.dense()
    return residual.T @ (row_precision @ residual)


def _sparse_gram(rest: SparseMinusLowRank, precision: sp.csr_array) -> FloatArray:
    """Return ``M P M'``, a dense array."""
    matrix, left, right = rest.matrix, rest.left, rest.right
    weighted = precision @ right
    crossed = (matrix @ weighted) @ left.T
    stored = (matrix @ precision @ matrix.T).toarray()
    gram: FloatArray = stored - crossed - crossed.T + left @ (right.T @ weighted) @ left.T
    return gram


def weighted_norm(data: Any, signal: LowRank, row_precision: Any, col_precision: Any) -> float:
    """Return ``tr(B R'AR)`` of the residual ``R = Y - X W'``."""
    if not isinstance(data, SparseMinusLowRank):
        residual = data - signal.dense()
        return inner(row_precision @ residual, residual @ col_precision)
    rest = data.minus(signal)
    rows, cols = row_precision @ rest.left, col_precision @ rest.right
    stored = (row_precision @ rest.matrix).multiply(rest.matrix @ col_precision).sum()
    crossed = np.sum(rows * (rest.matrix @ cols))
    own = np.sum((rest.left.T @ rows) * (rest.right.T @ cols))
    return float(stored - 2.0 * crossed + own)
