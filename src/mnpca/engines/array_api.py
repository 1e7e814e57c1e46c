"""The data matrix as one array of torch, CuPy or another library of the array API standard."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import Array, is_torch, like, namespace, to_numpy
from mnpca.engines.base import Weights
from mnpca.engines.device import empty, indices, pieces, sparse_times
from mnpca.engines.device_gram import DeviceFactorGram
from mnpca.engines.formed_gram import FormedGram
from mnpca.engines.threads import slices

#: Rows whose products are summed in the matrix's own type; the sums of these are float64.
SUMMED = 65536
#: Gram matrices of up to this many items are formed as arrays ...
FORMED = 8192
#: ... unless there are more than this many times as many items as observations.
LONG = 2
#: Precisions of up to this many columns multiply the matrix as dense arrays.
DENSE_PRECISION = 8192
#: Widths of factors are multiples of this, which matrix units ask for.
ALIGNED = 32


class ArrayEngine:
    """Everything that MNPCA's loops ask of a matrix Y (n x p) on any device.

    Parameters
    ----------
    matrix : array of shape (n, p)
        Of any library that follows the array API standard; kept without a copy.
    """

    def __init__(self, matrix: Array):
        self.matrix = matrix.detach() if is_torch(matrix) else matrix
        self.xp: Any = namespace(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""
        n, p = self.matrix.shape
        return int(n), int(p)

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry; not a number where any entry is none."""
        return float(self.xp.min(self.matrix)), float(self.xp.max(self.matrix))

    def column_means(self) -> FloatArray:
        """Return the mean row."""
        n, p = self.shape
        total = np.zeros(p)
        for part in pieces(n, p):
            total += to_numpy(self.xp.sum(self.matrix[part, :], axis=0, dtype=self.xp.float64))
        return total / n

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        """Return the mean of ``(y_ij - offset_j)^2`` of every column j."""
        n, p = self.shape
        row = like(offset, self.matrix, self.xp.float64)[None, :]
        total = np.zeros(p)
        for part in pieces(n, p):
            squares = (self._double(self.matrix[part, :]) - row) ** 2
            total += to_numpy(self.xp.sum(squares, axis=0))
        return total / n

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "ArrayEngine":
        """Return an engine that holds ``(y_ij - offset_j) / scale_j`` in float32."""
        n, p = self.shape
        row = like(offset, self.matrix, self.xp.float64)[None, :]
        unit = like(scale, self.matrix, self.xp.float64)[None, :]
        scaled = empty((n, p), self.matrix, self.xp.float32)
        for part in pieces(n, p):
            values = (self._double(self.matrix[part, :]) - row) / unit
            scaled[part, :] = self.xp.astype(values, self.xp.float32)
        return ArrayEngine(scaled)

    def block(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Return the entries of the given rows and columns as a float64 array on the host."""
        some = self.xp.take(self.matrix, indices(rows, self.matrix), axis=0)
        part = self.xp.take(some, indices(cols, self.matrix), axis=1)
        return to_numpy(part).astype(np.float64)

    def row_blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order as NumPy arrays of some rows each."""
        n, p = self.shape
        for part in pieces(n, p):
            yield to_numpy(self.matrix[part, :])

    def times(self, right: FloatArray) -> FloatArray:
        """Return ``Y V`` for a thin V."""
        return to_numpy(self.matrix @ like(right, self.matrix)).astype(np.float64)

    def transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``Y' U`` for a thin U."""
        factor = like(left, self.matrix)
        return to_numpy(self._summed(lambda part: self.matrix[part, :].T @ factor[part, :]))

    def squares(self) -> "DeviceSquares":
        """Return the squared entries of Y."""
        return DeviceSquares(self.matrix * self.matrix)

    def residual_squares(self, left: FloatArray, right: FloatArray) -> "DeviceSquares":
        """Return the squared entries of ``Y - left right'``."""
        residual = self._residual(left, right, 0)
        residual *= residual
        return DeviceSquares(residual)

    def weighted_norm(self, row_precision: Weights, col_precision: Weights) -> float:
        """Return ``tr(A Y B Y')``."""
        n, p = self.shape
        weighted = self._row_weighted(self.matrix, row_precision)
        multiply = self._column_weight(col_precision)
        total = 0.0
        for part in pieces(n, p):
            products = multiply(self.matrix[part, :]) * weighted(part)
            total += float(self.xp.sum(products, dtype=self.xp.float64))
        return total

    def row_gram(self, left, right, col_precision, thin, spread):
        """Return ``R B R' + thin spread thin'`` among rows, R = Y - left right'."""
        n, p = self.shape
        multiply = self._column_weight(col_precision)
        if n <= min(FORMED, LONG * p):
            residual = self._residual(left, right, 0)
            return self._formed(multiply(residual) @ residual.T, thin, spread)
        width = -(p + len(spread)) % ALIGNED + len(spread)
        residual = self._residual(left, right, width)
        filtered = empty(residual.shape, residual)
        for part in pieces(n, p):
            filtered[part, :p] = multiply(residual[part, :p])
        filtered[:, p:] = 0
        last = slice(p, p + len(spread))
        residual[:, last] = like(thin, residual)
        filtered[:, last] = like(thin @ spread, residual)
        return DeviceFactorGram(filtered, residual)

    def col_gram(self, left, right, row_precision, thin, spread):
        """Return ``R' A R + thin spread thin'`` among columns, R = Y - left right'."""
        n, p = self.shape
        residual = self._residual(left, right, 0)
        weighted = self._row_weighted(residual, row_precision)
        if p <= min(FORMED, LONG * n):
            gram = self._summed(lambda part: weighted(part).T @ residual[part, :])
            return self._formed(gram, thin, spread)
        width = -(n + len(spread)) % ALIGNED + len(spread)
        factors = [empty((p, n + width), residual) for _ in range(2)]
        for part in slices(n, SUMMED):
            factors[0][:, part] = weighted(part).T
            factors[1][:, part] = residual[part, :].T
        factors[0][:, n:], factors[1][:, n:] = 0, 0
        factors[0][:, n : n + len(spread)] = like(thin @ spread, residual)
        factors[1][:, n : n + len(spread)] = like(thin, residual)
        return DeviceFactorGram(*factors)

    def _formed(self, gram: Array, thin: FloatArray, spread: FloatArray) -> FormedGram:
        """Add ``thin spread thin'`` to a Gram matrix and make it symmetric to the last bit."""
        factor = like(thin, gram, self.xp.float64)
        gram = self._double(gram) + (factor @ like(spread, factor)) @ factor.T
        return FormedGram((gram + gram.T) / 2)

    def _residual(self, left: FloatArray, right: FloatArray, spare: int) -> Array:
        """Return ``Y - left right'`` followed by `spare` columns of zeros."""
        n, p = self.shape
        left, right = like(left, self.matrix), like(right, self.matrix)
        residual = empty((n, p + spare), self.matrix)
        for part in pieces(n, p):
            residual[part, :p] = self.matrix[part, :] - left[part, :] @ right.T
        residual[:, p:] = 0
        return residual

    def _column_weight(self, precision: Weights):
        """Return the function that maps rows to ``rows @ precision``."""
        if not sp.issparse(precision):
            weights = like(precision, self.matrix)[None, :]
            return lambda rows: rows * weights
        if precision.shape[0] <= DENSE_PRECISION:
            dense = like(precision.toarray(), self.matrix)
            return lambda rows: rows @ dense
        return lambda rows: sparse_times(precision, rows.T).T

    def _row_weighted(self, rows: Array, precision: Weights):
        """Return the function that gives a slice of ``precision @ rows``."""
        if not sp.issparse(precision):
            weights = like(precision, rows)[:, None]
            return lambda part: weights[part, :] * rows[part, :]
        product = sparse_times(precision, rows)
        return lambda part: product[part, :]

    def _summed(self, product) -> Array:
        """Add ``product(rows)`` up over slices of rows in float64."""
        total: Any = 0.0
        for part in slices(self.shape[0], SUMMED):
            total = total + self._double(product(part))
        return total

    def _double(self, array: Array) -> Array:
        return self.xp.astype(array, self.xp.float64)


class DeviceSquares:
    """Squared entries of a matrix, summed with weights along either side."""

    def __init__(self, squares: Array):
        self._squares = squares

    def row_sums(self, col_weights: FloatArray) -> FloatArray:
        """Return ``sum_j w_j y_ij^2`` of every row i."""
        return to_numpy(self._squares @ like(col_weights, self._squares)).astype(np.float64)

    def col_sums(self, row_weights: FloatArray) -> FloatArray:
        """Return ``sum_i w_i y_ij^2`` of every column j."""
        weights = like(row_weights, self._squares)
        total = np.zeros(self._squares.shape[1])
        for part in slices(len(row_weights), SUMMED):
            total += to_numpy(weights[part] @ self._squares[part, :])
        return total
