"""The data matrix as one NumPy array in memory."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.base import Gram
from mnpca.engines.chunked import ChunkedEngine
from mnpca.engines.gram import FactorGram
from mnpca.engines.row_products import BLOCK, filter_rows, long_sums
from mnpca.engines.rows import LocalRows
from mnpca.engines.threads import each, slices

#: With so many times more rows than columns the Gram matrix of the columns is formed.
TALL = 4


class DenseEngine:
    """Everything that MNPCA's loops ask of the data matrix Y (n x p).

    Products with thin matrices come back in float64 whatever the matrix's own type; signals are
    pairs of thin factors (left, right) with the mean as a last column of ones in ``left``;
    precisions are one-dimensional (a diagonal) or CSR.

    Parameters
    ----------
    matrix : array of shape (n, p)
        Kept without a copy where the type fits.
    dtype : numpy dtype, default=float32
        Type of the matrix and of its residuals. float32 halves the time and the memory; the
        thin algebra of the solver stays in float64.
    """

    def __init__(self, matrix: FloatArray, dtype: npt.DTypeLike = np.float32):
        self.matrix = np.ascontiguousarray(matrix, dtype=dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""
        n, p = self.matrix.shape
        return int(n), int(p)

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry; not a number where any entry is none."""
        return float(self.matrix.min()), float(self.matrix.max())

    def column_means(self) -> FloatArray:
        """Return the mean row."""
        return self._in_blocks().column_means()

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        """Return the mean of ``(y_ij - offset_j)^2`` of every column j."""
        # Blocks of rows, so that no float64 copy of the data is ever made.
        return self._in_blocks().column_mean_squares(offset)

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "DenseEngine":
        """Return an engine that holds ``(y_ij - offset_j) / scale_j`` in float32."""
        scaled = np.empty(self.shape, np.float32)
        for part in slices(len(scaled), BLOCK):
            scaled[part] = (self.matrix[part] - offset) / scale
        return DenseEngine(scaled)

    def block(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Return the entries of the given rows and columns in float64."""
        return np.asarray(self.matrix[np.ix_(rows, cols)], dtype=np.float64)

    def row_blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order, some at a time."""
        for part in slices(len(self.matrix), BLOCK):
            yield self.matrix[part]

    def times(self, right: FloatArray) -> FloatArray:
        """Return ``Y V`` for a thin V."""
        n, width = len(self.matrix), right.shape[1]
        right = right.astype(self.matrix.dtype)
        product = np.empty((n, width))

        def fill(part: slice) -> None:
            product[part] = self.matrix[part] @ right

        each(fill, slices(n, BLOCK))
        return product

    def transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``Y' U`` for a thin U."""
        p, width = self.matrix.shape[1], left.shape[1]
        left = left.astype(self.matrix.dtype)
        product = np.empty((p, width))

        def fill(part: slice) -> None:
            product[part] = long_sums(self.matrix[:, part], left)

        each(fill, slices(p, BLOCK))
        return product

    def squares(self) -> "Squares":
        """Return the squared entries of Y, for weighted sums along both sides."""
        return Squares(self.matrix * self.matrix)

    def residual_squares(self, left: FloatArray, right: FloatArray) -> "Squares":
        """Return the squared entries of ``Y - left right'``."""
        residual = self._residual(left, right)
        residual *= residual
        return Squares(residual)

    def weighted_norm(self, row_precision: FloatArray | sp.csr_array, col_precision) -> float:
        """Return ``tr(A Y B Y')``."""
        return self._in_blocks().weighted_norm(row_precision, col_precision)

    def row_gram(self, left, right, col_precision, thin, spread) -> FactorGram:
        """Return ``R B R' + thin spread thin'`` among rows, R = Y - left right'."""
        return _gram(self._residual(left, right, len(spread)), col_precision, thin, spread)

    def col_gram(self, left, right, row_precision, thin, spread) -> Gram:
        """Return ``R' A R + thin spread thin'`` among columns, R = Y - left right'."""
        n, p = self.shape
        if n >= TALL * p:
            return self._in_blocks().col_gram(left, right, row_precision, thin, spread)
        left_t = np.ascontiguousarray(left.T.astype(self.matrix.dtype))
        right = np.asarray(right)
        residual = np.empty((p, n + len(spread)), self.matrix.dtype)

        def fill(part: slice) -> None:
            residual[part, :n] = self.matrix[:, part].T
            residual[part, :n] -= right[part].astype(self.matrix.dtype) @ left_t

        each(fill, slices(p, 256))
        return _gram(residual, row_precision, thin, spread)

    def _in_blocks(self) -> ChunkedEngine:
        """Return the engine that goes through the same rows block by block."""
        return ChunkedEngine(LocalRows(self.matrix))

    def _residual(self, left, right, spare: int = 0) -> FloatArray:
        """Return ``Y - left right'`` with room for `spare` more columns."""
        n, p = self.shape
        kind = self.matrix.dtype
        right_t = np.ascontiguousarray(right.T.astype(kind))
        residual = np.empty((n, p + spare), kind)

        def fill(part: slice) -> None:
            residual[part, :p] = self.matrix[part] - left[part].astype(kind) @ right_t

        each(fill, slices(n, BLOCK))
        return residual


class Squares:
    """Squared entries of a matrix, summed with weights along either side."""

    def __init__(self, squares: FloatArray):
        self._squares = squares

    def row_sums(self, col_weights: FloatArray) -> FloatArray:
        """Return ``sum_j w_j y_ij^2`` of every row i."""
        return (self._squares @ col_weights.astype(self._squares.dtype)).astype(np.float64)

    def col_sums(self, row_weights: FloatArray) -> FloatArray:
        """Return ``sum_i w_i y_ij^2`` of every column j."""
        return long_sums(self._squares, row_weights.astype(self._squares.dtype))


def _gram(residual: FloatArray, precision, thin: FloatArray, spread: FloatArray) -> FactorGram:
    """Gram of ``residual`` whose last columns, still empty, take ``thin spread thin'``."""
    m = residual.shape[1] - len(spread)
    filtered = np.empty_like(residual)

    def fill(part: slice) -> None:
        filtered[part, :m] = filter_rows(residual[part, :m], precision)

    each(fill, slices(len(residual), BLOCK))
    residual[:, m:] = thin
    filtered[:, m:] = thin @ spread
    return FactorGram(filtered, residual)
