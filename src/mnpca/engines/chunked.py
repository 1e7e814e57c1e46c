"""A data matrix that is read in blocks of rows: from a file, or by Dask.

Memory is bounded by the size of a block and the thin arrays (n x k); the p x p Gram matrix of the
columns is formed, nothing of size n x p or n x n ever is. Functions whose name begins with an
underscore run where the blocks are.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.base import Weights
from mnpca.engines.chunked_gram import RowGram, component_groups
from mnpca.engines.formed_gram import FormedGram
from mnpca.engines.row_products import BLOCK, filter_rows, long_sums
from mnpca.engines.rows import Rows
from mnpca.engines.threads import slices


class ChunkedEngine:
    """Everything that MNPCA's loops ask of the data matrix, block by block.

    Parameters
    ----------
    rows : Rows
        The matrix.
    """

    def __init__(self, rows: Rows):
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""
        return self.rows.shape

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry; not a number where any entry is none."""
        pairs = np.array(self.rows.map(_extremes, None))
        return float(pairs[:, 0].min()), float(pairs[:, 1].max())

    def column_means(self) -> FloatArray:
        """Return the mean row."""
        return np.asarray(self.rows.total(_column_sums, None) / self.shape[0])

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        """Return the mean of ``(y_ij - offset_j)^2`` of every column j."""
        return np.asarray(self.rows.total(_sums_of_squares, offset) / self.shape[0])

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "ChunkedEngine":
        """Return an engine that holds ``(y_ij - offset_j) / scale_j`` in float32.

        It is computed once: from then on a pass reads half the bytes of the original, and
        whatever made the original (decompression, a lazy expression) is not repeated.
        """
        return ChunkedEngine(self.rows.kept(_standardize, (offset, scale), np.float32))

    def block(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Return the entries of the given rows and columns in float64."""
        (found,) = self.rows.map_groups(_columns, cols, [rows])
        return np.asarray(found)

    def row_blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order, some at a time."""
        return self.rows.stream()

    def times(self, right: FloatArray) -> FloatArray:
        """Return ``Y V`` for a thin V."""
        return np.concatenate(self.rows.map(_times, right.astype(self.rows.dtype)))

    def transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``Y' U`` for a thin U."""
        left = left.astype(self.rows.dtype)
        return np.asarray(self.rows.total(_transposed_times, None, left))

    def squares(self) -> "ChunkedSquares":
        """Return the squared entries of Y, for weighted sums along both sides."""
        return ChunkedSquares(self.rows)

    def residual_squares(self, left: FloatArray, right: FloatArray) -> "ChunkedSquares":
        """Return the squared entries of ``Y - left right'``."""
        return ChunkedSquares(self._residual(left, right))

    def weighted_norm(self, row_precision: Weights, col_precision: Weights) -> float:
        """Return ``tr(A Y B Y')``."""
        if not sp.issparse(row_precision):
            return float(self.rows.total(_weighted_norm, col_precision, row_precision))
        groups, blocks = component_groups(row_precision, self.rows.shape[1])
        return float(self.rows.total_groups(_weighted_norm, col_precision, groups, blocks))

    def row_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        col_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> RowGram:
        """Return ``R B R' + thin spread thin'`` among rows, R = Y - left right'."""
        kind = self.rows.dtype
        width = self.shape[1] + len(spread)
        scores, right_t = left.astype(kind), _transposed(right, kind)
        filtered = self.rows.derived(
            width,
            _filtered_residual,
            (right_t, col_precision),
            scores,
            (thin @ spread).astype(kind),
        )
        residual = self.rows.derived(width, _residual, right_t, scores, thin.astype(kind))
        return RowGram(filtered, residual)

    def col_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        row_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> FormedGram:
        """Return ``R' A R + thin spread thin'`` among columns, R = Y - left right'."""
        residual = self._residual(left, right)
        if sp.issparse(row_precision):
            groups, blocks = component_groups(row_precision, self.shape[1])
            products = residual.total_groups(_col_products, None, groups, blocks)
        else:
            products = residual.total(_col_products, None, row_precision)
        products += thin @ spread @ thin.T
        return FormedGram((products + products.T) / 2)

    def _residual(self, left: FloatArray, right: FloatArray) -> Rows:
        kind = self.rows.dtype
        thin = np.empty((len(left), 0), kind)
        right_t = _transposed(right, kind)
        return self.rows.derived(self.shape[1], _residual, right_t, left.astype(kind), thin)


class ChunkedSquares:
    """Squared entries of a matrix in blocks, summed with weights along either side."""

    def __init__(self, rows: Rows):
        self._rows = rows

    def row_sums(self, col_weights: FloatArray) -> FloatArray:
        """Return ``sum_j w_j y_ij^2`` of every row i."""
        sums = self._rows.map(_squares_times, col_weights.astype(self._rows.dtype))
        return np.concatenate(sums).astype(np.float64)

    def col_sums(self, row_weights: FloatArray) -> FloatArray:
        """Return ``sum_i w_i y_ij^2`` of every column j."""
        weights = row_weights.astype(self._rows.dtype)
        return np.asarray(self._rows.total(_squares_transposed_times, None, weights))


def _extremes(rows: FloatArray, _: None) -> tuple[float, float]:
    return float(rows.min()), float(rows.max())


def _column_sums(rows: FloatArray, _: None) -> FloatArray:
    return np.asarray(rows.sum(axis=0, dtype=np.float64))


def _sums_of_squares(rows: FloatArray, offset: FloatArray) -> FloatArray:
    parts = slices(len(rows), BLOCK)
    return np.asarray(sum(np.sum((rows[part] - offset) ** 2, axis=0) for part in parts))


def _standardize(rows: FloatArray, shared: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return ``(y_ij - offset_j) / scale_j`` in float32."""
    offset, scale = shared
    scaled = np.empty(rows.shape, np.float32)
    for part in slices(len(rows), BLOCK):
        scaled[part] = (rows[part] - offset) / scale
    return scaled


def _columns(rows: FloatArray, cols: IntArray) -> FloatArray:
    return rows[:, cols].astype(np.float64)


def _times(rows: FloatArray, right: FloatArray) -> FloatArray:
    product = np.empty((len(rows), *right.shape[1:]))
    for part in slices(len(rows), BLOCK):
        product[part] = rows[part] @ right
    return product


def _transposed_times(rows: FloatArray, _: None, left: FloatArray) -> FloatArray:
    return long_sums(rows, left)


def _squares_times(rows: FloatArray, right: FloatArray) -> FloatArray:
    return (rows * rows) @ right


def _squares_transposed_times(rows: FloatArray, _: None, left: FloatArray) -> FloatArray:
    return long_sums(rows * rows, left)


def _transposed(right: FloatArray, kind: np.dtype) -> FloatArray:
    return np.ascontiguousarray(right.T.astype(kind))


def _residual(
    rows: FloatArray, right_t: FloatArray, left: FloatArray, thin: FloatArray
) -> FloatArray:
    """Return ``Y - left right'``, and the thin columns beside it."""
    p = rows.shape[1]
    residual = np.empty((len(rows), p + thin.shape[1]), rows.dtype)
    for part in slices(len(rows), BLOCK):
        np.subtract(rows[part], left[part] @ right_t, out=residual[part, :p])
    residual[:, p:] = thin
    return residual


def _filtered_residual(
    rows: FloatArray, shared: tuple[FloatArray, Weights], left: FloatArray, thin: FloatArray
) -> FloatArray:
    """Return ``(Y - left right') B``, and the thin columns beside it."""
    right_t, col_precision = shared
    residual = _residual(rows, right_t, left, thin)
    p = rows.shape[1]
    for part in slices(len(rows), BLOCK):
        residual[part, :p] = filter_rows(residual[part, :p], col_precision)
    return residual


def _weighted_norm(rows: FloatArray, col_precision: Weights, row_precision: Weights) -> float:
    filtered = filter_rows(rows, col_precision)
    if sp.issparse(row_precision):
        rows = row_precision.astype(rows.dtype) @ rows
        return float(np.einsum("ij,ij->i", filtered, rows).sum(dtype=np.float64))
    return float(np.einsum("ij,ij->i", filtered, rows).astype(np.float64) @ row_precision)


def _col_products(rows: FloatArray, _: None, row_precision: Weights) -> FloatArray:
    """Return ``R' A R``; sums over many rows are in float64."""
    if sp.issparse(row_precision):
        weighted = row_precision.astype(rows.dtype) @ rows
    else:
        weighted = row_precision.astype(rows.dtype)[:, None] * rows
    return long_sums(rows, weighted)
