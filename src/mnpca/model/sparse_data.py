"""A centered sparse matrix as the likelihood algorithm sees it: by products, never dense."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import inner
from mnpca.engines.sparse import SparseEngine
from mnpca.model.gpca import CenteredMatrix
from mnpca.model.low_rank import LowRank
from mnpca.model.sparse import side_by_side


class SparseData(CenteredMatrix):
    """A centered sparse matrix that multiplies thin arrays as a dense one does."""

    def __truediv__(self, unit: float) -> "SparseData":
        """Return the matrix in another unit."""
        return SparseData(self.matrix, self.mean, self.unit * unit)

    def __matmul__(self, thin: FloatArray) -> FloatArray:
        return self.times(thin)

    @property
    def T(self) -> "_Transposed":
        """Return the transpose, which multiplies thin arrays."""
        return _Transposed(self)

    def engine(self) -> SparseEngine:
        """Return the engine that holds Y."""
        return SparseEngine(self.matrix, self.mean, np.full(self.shape[1], self.unit))

    def row_gram(self, signal: LowRank, col_precision: sp.csr_array) -> FloatArray:
        """Return ``R B R'`` of the residual ``R = Y - X W'``, an n x n array."""
        left, right = self._thin(signal)
        weighted = col_precision @ right
        stored = (self.matrix @ col_precision @ self.matrix.T).toarray() / self.unit**2
        crossed = (self.matrix @ weighted / self.unit) @ left.T
        return np.asarray(stored - crossed - crossed.T + left @ (right.T @ weighted) @ left.T)

    def col_gram(self, signal: LowRank, row_precision: sp.csr_array) -> FloatArray:
        """Return ``R' A R``, a p x p array."""
        left, right = self._thin(signal)
        weighted = row_precision @ left
        stored = (self.matrix.T @ (row_precision @ self.matrix)).toarray() / self.unit**2
        crossed = (self.matrix.T @ weighted / self.unit) @ right.T
        return np.asarray(stored - crossed - crossed.T + right @ (left.T @ weighted) @ right.T)

    def norm(
        self, signal: LowRank, row_precision: sp.csr_array, col_precision: sp.csr_array
    ) -> float:
        """Return ``tr(B R'AR)``."""
        left, right = self._thin(signal)
        rows, cols = row_precision @ left, col_precision @ right
        stored = (row_precision @ self.matrix).multiply(self.matrix @ col_precision).sum()
        crossed = np.sum(rows * (self.matrix @ cols))
        own = np.sum((left.T @ rows) * (right.T @ cols))
        return float(stored / self.unit**2 - 2.0 * crossed / self.unit + own)

    def _thin(self, signal: LowRank) -> tuple[FloatArray, FloatArray]:
        """Return L and W of the residual ``S / unit - L W'``."""
        ones = np.ones((self.shape[0], 1))
        assert self.mean is not None
        right = np.column_stack([signal.right, self.mean / self.unit])
        return np.column_stack([signal.left, ones]), right


class _Transposed:
    """``Y'`` by its products."""

    def __init__(self, data: SparseData):
        self._data = data

    def __matmul__(self, thin: FloatArray) -> FloatArray:
        return self._data.adjoint(thin)


def row_gram(data: Any, signal: LowRank, col_precision: Any, n_rows: int) -> Any:
    """Return ``R B R'`` of the residual ``R = Y - X W'``, added up over matrices of `n_rows`.

    A precision that is None, here and below, is the identity.
    """
    if isinstance(data, SparseData):
        return data.row_gram(signal, _or_identity(col_precision, data.shape[1]))
    residual = data - signal.dense()
    weighted = residual if col_precision is None else residual @ col_precision
    return side_by_side(weighted, n_rows) @ side_by_side(residual, n_rows).T


def col_gram(data: Any, signal: LowRank, row_precision: Any) -> Any:
    """Return ``R' A R`` of the residual ``R = Y - X W'``."""
    if isinstance(data, SparseData):
        return data.col_gram(signal, _or_identity(row_precision, data.shape[0]))
    residual = data - signal.dense()
    return residual.T @ (residual if row_precision is None else row_precision @ residual)


def weighted_norm(data: Any, signal: LowRank, row_precision: Any, col_precision: Any) -> float:
    """Return ``tr(B R'AR)`` of the residual ``R = Y - X W'``."""
    if isinstance(data, SparseData):
        return data.norm(signal, row_precision, col_precision)
    residual = data - signal.dense()
    return inner(row_precision @ residual, residual @ col_precision)


def squared_norm(data: Any, signal: LowRank) -> float:
    """Return ``|Y - X W'|^2``."""
    if isinstance(data, SparseData):
        return data.norm(signal, *(_or_identity(None, size) for size in data.shape))
    residual = data - signal.dense()
    return inner(residual, residual)


def _or_identity(precision: sp.csr_array | None, size: int) -> sp.csr_array:
    return sp.csr_array(sp.eye_array(size)) if precision is None else precision
