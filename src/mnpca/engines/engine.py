"""What the solvers ask of the data matrix, wherever it lives: written once for all kinds of rows.

Only the n x p matrix and its residuals belong to an engine. Everything thin (n x k, p x k, vectors,
k x k) goes in and comes out as float64 NumPy arrays on the host, and precisions as one-dimensional
arrays (a diagonal) or scipy CSR arrays, so that the solvers are the same for every engine.

Memory beside the matrix is bounded by a block of rows and the thin arrays (n x k) where the rows
are not in memory. Functions whose name begins with an underscore run where the rows are.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels
from mnpca.engines.arrays import Array, astype, empty, namespace, row_dots, sparse_times, to_numpy
from mnpca.engines.gram import FactorGram, FormedGram, Gram
from mnpca.engines.rows import BLOCK, ArrayRows, Rows, Weights, add_up
from mnpca.engines.threads import slices


class Engine:
    """An n x p matrix Y and the operations on it that grow with n p, block by block of its rows."""

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
        """Return the mean row ``Y'1 / n``."""
        return to_numpy(self.rows.total(_column_sums, None)) / self.shape[0]

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        """Return the mean of ``(y_ij - offset_j)^2`` of every column j."""
        offset = self.rows.beside(offset, "float64")
        return to_numpy(self.rows.total(_sums_of_squares, offset)) / self.shape[0]

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "Engine":
        """Return an engine that holds ``(y_ij - offset_j) / scale_j`` in float32."""
        # Computed once: from then on a pass reads half the bytes of the original, and whatever
        # made the original (decompression, a lazy expression) is not repeated.
        shared = tuple(self.rows.beside(each, "float64") for each in (offset, scale))
        return Engine(self.rows.kept(_standardize, shared, "float32"))

    def rows_divided(self, units: FloatArray) -> "Engine":
        """Return an engine that holds every row divided by its unit."""
        return Engine(self.rows.derived(self.shape[1], _divide, None, self.rows.beside(units)))

    def block(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Return the entries of the given rows and columns as a float64 array on the host."""
        return np.asarray(self.rows.gathered(_columns, cols, rows))

    def columns(self, cols: IntArray) -> "Engine":
        """Return an engine that holds the given columns."""
        return Engine(self.rows.derived(len(cols), _pick, cols))

    def row_blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order as NumPy arrays of some rows each, in Y's own type."""
        return self.rows.stream()

    def times(self, right: FloatArray) -> FloatArray:
        """Return ``Y V`` for a thin V, or a vector."""
        return self.rows.stacked(_times, self.rows.beside(right))

    def transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``Y' U`` for a thin U, or a vector."""
        return to_numpy(self.rows.total(_transposed_times, None, self.rows.beside(left)))

    def squares(self) -> "Engine":
        """Return an engine that holds the squared entries of Y."""
        return Engine(self.rows.derived(self.shape[1], _squares, None))

    def weighted_norm(self, row_precision: Weights, col_precision: Weights) -> float:
        """Return ``tr(A Y B Y')``."""
        weights = self.rows.beside(col_precision)
        return float(self.rows.total_weighted(_weighted_norm, weights, row_precision))

    def row_norms(self, left: FloatArray, right: FloatArray, col_precision: Weights) -> FloatArray:
        """Return the diagonal of ``R B R'``, R = Y - left right'."""
        shared = self.rows.beside(right.T), self.rows.beside(col_precision)
        return self.rows.stacked(_row_norms, shared, self.rows.beside(left))

    def col_norms(self, left: FloatArray, right: FloatArray, row_precision: Weights) -> FloatArray:
        """Return the diagonal of ``R' A R``, R = Y - left right'."""
        signal = self.rows.beside(right.T), self.rows.beside(left)
        return to_numpy(self.rows.total_weighted(_col_norms, signal[0], row_precision, signal[1]))

    def row_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        col_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> Gram:
        """Return ``R B R' + thin spread thin'`` among rows, R = Y - left right'."""
        rows = self.rows
        width = self.shape[1] + thin.shape[1]
        signal = rows.beside(right.T), rows.beside(left), rows.beside(thin)
        residual = rows.derived(width, _residual, *signal)
        filtered = residual.derived(
            residual.shape[1],
            _filter,
            residual.beside(col_precision),
            residual.beside(thin @ spread),
        )
        if self.rows.forms_rows:
            return FormedGram.of(filtered.matrix @ residual.matrix.T)
        return FactorGram(filtered, residual)

    def col_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        row_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> Gram:
        """Return ``R' A R + thin spread thin'`` among columns, R = Y - left right'."""
        if not self.rows.forms_columns:
            assert isinstance(self.rows, ArrayRows)
            columns = Engine(self.rows.transposed())
            return columns.row_gram(right, left, row_precision, thin, spread)
        rows = self.rows
        products = rows.total_weighted(
            _col_products, rows.beside(right.T), row_precision, rows.beside(left)
        )
        factor = rows.beside(thin, "float64")
        products += factor @ rows.beside(spread, "float64") @ factor.T
        return FormedGram.of(products)


class DenseEngine(Engine):
    """A NumPy array in memory, in the given type.

    float32 halves the time and the memory; the thin algebra of the solver stays in float64.
    """

    def __init__(self, matrix: FloatArray, dtype: npt.DTypeLike = np.float32):
        super().__init__(ArrayRows(np.ascontiguousarray(matrix, dtype=dtype)))


def filter_rows(rows: Array, precision: Array | sp.csr_array) -> Array:
    """Return ``rows @ precision``, for a precision that is an array or sparse."""
    if not sp.issparse(precision):
        return rows @ precision if precision.ndim > 1 else rows * precision
    if not isinstance(rows, np.ndarray):
        return sparse_times(precision, rows.T).T
    data = precision.data.astype(rows.dtype)
    return _kernels.times_sparse(rows, precision.indptr, precision.indices, data)


def weigh_rows(precision: Weights, rows: Array) -> Array:
    """Return ``precision @ rows``, for a precision of these rows that is an array or sparse."""
    return sparse_times(precision, rows) if sp.issparse(precision) else precision[:, None] * rows


def _units(rows: Array) -> list[slice]:
    """Cut the rows of a block where sums in float32 end; a device takes them together."""
    n = rows.shape[0]
    return slices(n, BLOCK if isinstance(rows, np.ndarray) else n)


def _extremes(rows: Array, _: None) -> tuple[float, float]:
    xp = namespace(rows)
    return float(xp.min(rows)), float(xp.max(rows))


def _column_sums(rows: Array, _: None) -> Array:
    xp = namespace(rows)
    return add_up(xp.sum(rows[part, :], axis=0, dtype=xp.float64) for part in _units(rows))


def _sums_of_squares(rows: Array, offset: Array) -> Array:
    xp = namespace(rows)
    parts = (astype(rows[part, :], "float64") - offset[None, :] for part in _units(rows))
    return add_up(xp.sum(part**2, axis=0) for part in parts)


def _standardize(rows: Array, shared: tuple[Array, Array]) -> Array:
    """Return ``(y_ij - offset_j) / scale_j`` in float32."""
    offset, scale = shared
    scaled = empty(rows.shape, rows, "float32")
    for part in _units(rows):
        values = (astype(rows[part, :], "float64") - offset) / scale
        scaled[part, :] = astype(values, "float32")
    return scaled


def _divide(rows: Array, _: None, units: Array) -> Array:
    return rows / units[:, None]


def _pick(rows: Array, cols: IntArray) -> Array:
    return rows[:, cols]


def _columns(rows: Array, cols: IntArray) -> FloatArray:
    return to_numpy(rows)[:, cols].astype(np.float64)


def _times(rows: Array, right: Array) -> FloatArray:
    products = [to_numpy(rows[part, :] @ right) for part in _units(rows)]
    return np.concatenate(products).astype(np.float64)


def _transposed_times(rows: Array, _: None, left: Array) -> Array:
    return _long_sums(rows, left)


def _long_sums(rows: Array, left: Array) -> Array:
    """Return ``rows' left``, the sums over many rows in float64."""
    products = (rows[part, :].T @ left[part, ...] for part in _units(rows))
    # What adds these up converts a single one as it goes.
    return next(products) if rows.shape[0] <= BLOCK else add_up(products)


def _squares(rows: Array, _: None) -> Array:
    return rows * rows


def _residual(rows: Array, right_t: Array, left: Array, thin: Array | None = None) -> Array:
    """Return ``Y - left right'``, and thin columns beside it."""
    thin = left[:, :0] if thin is None else thin
    n, p = rows.shape
    residual = empty((n, p + thin.shape[1]), rows)
    for part in _units(rows):
        residual[part, :p] = rows[part, :] - left[part, :] @ right_t
    residual[:, p:] = thin
    return residual


def _filter(rows: Array, precision: Array | sp.csr_array, thin: Array) -> Array:
    """Return residuals times a precision, and other thin columns beside them."""
    p = precision.shape[0]
    filtered = empty(rows.shape, rows)
    for part in _units(rows):
        filtered[part, :p] = filter_rows(rows[part, :p], precision)
    filtered[:, p:] = 0  # there may be columns for alignment
    filtered[:, p : p + thin.shape[1]] = thin
    return filtered


def _weighted_norm(rows: Array, col_precision: Weights, row_precision: Weights) -> float:
    xp = namespace(rows)
    products = row_dots(filter_rows(rows, col_precision), weigh_rows(row_precision, rows))
    return float(xp.sum(products, dtype=xp.float64))


def _row_norms(rows: Array, shared: tuple[Array, Weights], left: Array) -> FloatArray:
    right_t, col_precision = shared
    residual = _residual(rows, right_t, left)
    norms = (
        row_dots(filter_rows(residual[part, :], col_precision), residual[part, :])
        for part in _units(rows)
    )
    return np.concatenate([to_numpy(each) for each in norms]).astype(np.float64)


def _col_norms(rows: Array, right_t: Array, row_precision: Weights, left: Array) -> Array:
    xp, residual = namespace(rows), _residual(rows, right_t, left)
    weighted = weigh_rows(row_precision, residual)
    weighted *= residual
    return add_up(xp.sum(weighted[part, :], axis=0, dtype=xp.float64) for part in _units(rows))


def _col_products(rows: Array, right_t: Array, row_precision: Weights, left: Array) -> Array:
    """Return ``R' A R``."""
    residual = _residual(rows, right_t, left)
    return _long_sums(residual, weigh_rows(row_precision, residual))
