"""The data matrix as a scipy CSR array that stays sparse.

Means and scales of columns are never applied to it. Products use the nonzeros: with S the stored
matrix, ``R = S D - L W'`` is the residual, D the scales, L and W thin (the means are a column of
W). The search for large entries among all pairs multiplies nonzeros by a few dense rows at a time.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels as kernels
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.engines.file_rows import LazyRows
from mnpca.engines.gram import FormedGram, Gram
from mnpca.engines.rows import Pairs, Weights, Where, block_rows, joined, large_in_tile
from mnpca.engines.threads import each, slices

#: Gram matrices of up to this many columns are formed.
FORMED = 4096
#: Pairs whose products one piece of work computes.
PAIRS = 2**13
#: Rows that are copied at a time.
COPIED = 2**13
#: Items that are dense at a time: so many, and their products with a slice of the others, stay near
#: the processor.
STRIP = 128
#: A search in float32 proposes entries down to this share below the level; float64 decides.
ROUGH = 1e-3


class SparseRows(LazyRows):
    """Rows of a CSR array, ``(y - offset) / scale`` in float32, dense while they are read."""

    def __init__(
        self,
        matrix: sp.csr_array,
        offset: FloatArray | None = None,
        scale: FloatArray | None = None,
    ):
        n, p = (int(size) for size in matrix.shape)
        self.shape = (n, p)
        self.dtype = matrix.dtype if scale is None else np.dtype(np.float32)
        self.parts = slices(n, block_rows(p))
        self._offset = np.zeros(p) if offset is None else offset
        self._scale = np.ones(p) if scale is None else scale
        self._matrix = matrix

    def read(self, where: Where) -> FloatArray:
        rows = np.arange(self.shape[0])[where]
        dense = np.empty((len(rows), self.shape[1]), self.dtype)
        kernels.dense_rows(*_parts(self._matrix), rows, self._offset, self._scale, dense)
        return dense


class SparseEngine(Engine):
    """Everything that MNPCA's loops ask of a sparse matrix ``(y_ij - offset_j) / scale_j``.

    The matrix is kept without a copy where it is CSR with each entry stored once.
    """

    def __init__(
        self, matrix: Any, offset: FloatArray | None = None, scale: FloatArray | None = None
    ):
        matrix = sp.csr_array(matrix)
        if matrix.dtype.kind != "f":
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        self.matrix = matrix
        self._given = (offset, scale)
        self._offset = np.zeros(matrix.shape[1]) if offset is None else offset
        self._scale = np.ones(matrix.shape[1]) if scale is None else scale
        super().__init__(SparseRows(matrix, offset, scale))

    def extremes(self) -> tuple[float, float]:
        return float(self.matrix.min()), float(self.matrix.max())

    def column_means(self) -> FloatArray:
        return self._column_sums(lambda values, _: values) / self.shape[0]

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        n = self.shape[0]
        squares = self._column_sums(lambda values, cols: (values - offset[cols]) ** 2)
        zeros = n - self._column_sums(lambda values, _: np.ones(len(values)))
        return (squares + zeros * offset**2) / n

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "SparseEngine":
        return SparseEngine(self.matrix, offset, scale)

    def rows_divided(self, units: FloatArray) -> "SparseEngine":
        if self._given != (None, None):
            raise ValueError("Rows are divided before columns are standardized.")
        return SparseEngine(sp.csr_array(sp.diags_array(1.0 / units) @ self.matrix))

    def columns(self, cols: IntArray) -> "SparseEngine":
        given = (None if each is None else each[cols] for each in self._given)
        return SparseEngine(self.matrix[:, cols], *given)

    def times(self, right: FloatArray) -> FloatArray:
        right = right / self._scale[:, None]
        product = self._stored_times(right)
        if self._offset.any():
            product -= self._offset @ right
        return product

    def transposed_times(self, left: FloatArray) -> FloatArray:
        product = self._stored_transposed_times(left)
        product -= np.outer(self._offset, left.sum(axis=0))
        return product / self._scale[:, None]

    def weighted_norm(self, row_precision: Weights, col_precision: Weights) -> float:
        n, p = self.shape
        no_thin = np.zeros((n, 0))
        items = self._row_items(no_thin, np.zeros((p, 0)), col_precision, no_thin, np.zeros((0, 0)))
        entries = _matrix(row_precision).tocoo()
        row, col = entries.coords
        return float(entries.data @ items.products(row, items, col))

    def row_norms(self, left, right, col_precision) -> FloatArray:
        nothing, every = np.zeros((self.shape[0], 0)), np.arange(self.shape[0])
        items = self._row_items(left, right, col_precision, nothing, np.zeros((0, 0)))
        return items.products(every, items, every)

    def col_norms(self, left, right, row_precision) -> FloatArray:
        precision = _indexed_as(self.matrix, _matrix(row_precision))
        norms = np.zeros(self.shape[1])
        for part in slices(self.shape[0], COPIED):
            norms += (self.matrix[part] * (precision[part] @ self.matrix)).sum(axis=0)
        left, right = self._with_means(left, right)
        weighted = np.asarray(precision @ left)
        crossed = self._stored_transposed_times(weighted) / self._scale[:, None]
        norms /= self._scale**2
        norms += np.einsum("jk,jk->j", right @ (left.T @ weighted) - 2.0 * crossed, right)
        return norms

    def row_gram(self, left, right, col_precision, thin, spread) -> "SparseGram":
        items = self._row_items(left, right, col_precision, thin, spread)
        return SparseGram(items, items)

    def col_gram(self, left, right, row_precision, thin, spread) -> Gram:
        long_left, long_right = self._with_means(left, right)
        weighted = np.asarray(_matrix(row_precision) @ long_left)
        crossed = self._stored_transposed_times(weighted) / self._scale[:, None]
        inner = long_left.T @ weighted
        if self.shape[1] <= FORMED:
            products = self._stored_products(row_precision)
            products /= self._scale
            products /= self._scale[:, None]
            # Thin matrices side by side: one dense product of their size at a time.
            factors, core = _factors(crossed, long_right, inner, thin, spread)
            products += factors @ core @ factors.T
            return FormedGram.of(products)
        columns, metric = sp.csr_array(self.matrix.T), _matrix(row_precision)
        factors, core = _factors(crossed, long_right, inner, thin, spread)
        items = SparseItems(columns, metric, factors, core, 1.0 / self._scale)
        return SparseGram(items, items)

    def _row_items(self, left, right, col_precision, thin, spread) -> "SparseItems":
        """Return the rows of the residual in the metric B, with thin columns beside them."""
        left, right = self._with_means(left, right)
        metric = _matrix(col_precision)
        weighted = np.asarray(metric @ right)
        crossed = self._stored_times(weighted / self._scale[:, None])
        factors, core = _factors(crossed, left, right.T @ weighted, thin, spread)
        scale = sp.diags_array(1.0 / self._scale)
        metric = sp.csr_array(scale @ metric @ scale)
        return SparseItems(self.matrix, metric, factors, core, np.ones(self.shape[0]))

    def _with_means(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return L and W of the residual ``S D - L W'``."""
        if not self._offset.any():
            return left, right
        means = self._offset / self._scale
        return np.column_stack([left, np.ones(len(left))]), np.column_stack([right, means])

    def _stored_times(self, right: FloatArray) -> FloatArray:
        """Return ``S V``."""
        product = np.empty((self.shape[0], right.shape[1]))

        def fill(part: slice) -> None:
            kernels.csr_times(*_parts(self.matrix), right, part.start, part.stop, product)

        each(fill, slices(self.shape[0], thin.ROWS))
        return product

    def _stored_transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``S' U``."""

        def partial(part: slice) -> FloatArray:
            total = np.zeros((self.shape[1], left.shape[1]))
            kernels.csr_transposed_times(*_parts(self.matrix), left, part.start, part.stop, total)
            return total

        return np.asarray(sum(each(partial, slices(self.shape[0], thin.ROWS))))

    def _stored_products(self, row_precision: Weights) -> FloatArray:
        """Return ``S' A S``, some rows of ``A S`` at a time; threads share its rows out."""
        n, p = self.shape
        precision = _indexed_as(self.matrix, _matrix(row_precision))
        total = np.zeros((p, p))
        for part in slices(n, COPIED):
            some = _parts(self.matrix[part])
            weighted = _parts(sp.csr_array(precision[part] @ self.matrix))
            cols = slices(p, max(p // 8, 1))
            pieces = [(some, weighted, own.start, own.stop, total) for own in cols]
            each(lambda piece: kernels.col_products(*piece), pieces)
        return total

    def _column_sums(self, function: Callable[[FloatArray, IntArray], FloatArray]) -> FloatArray:
        """Add up a function of stored values and their columns, some rows at a time."""
        indptr, indices, data = _parts(self.matrix)
        total = np.zeros(self.shape[1])
        for part in slices(self.shape[0], COPIED):
            some = slice(indptr[part.start], indptr[part.stop])
            values, cols = data[some].astype(np.float64), indices[some]
            total += np.bincount(cols, function(values, cols), len(total))
        return total


class SparseItems:
    """Items with products ``c_i c_j s_i' B s_j + f_i' J f_j``: sparse s, thin f, scales c.

    With `mix` they are sparse mixtures of rows s, which are made when they are needed.
    """

    def __init__(
        self,
        matrix: sp.csr_array,
        metric: sp.csr_array,
        factors: FloatArray,
        core: FloatArray,
        scale: FloatArray,
        mix: sp.csr_array | None = None,
    ):
        self.matrix, self.metric = matrix, metric
        self.factors, self.core = factors, core
        self.scale = scale
        self.mix = mix

    def products(self, i: IntArray, other: "SparseItems", j: IntArray) -> FloatArray:
        """Return the products of items i with items j of others in the same metric."""
        order = np.argsort(i, kind="stable")
        first, second = i[order], j[order]
        values = np.empty(len(order))
        metric = _parts(self.metric)

        def fill(part: slice) -> None:
            a, b = first[part], second[part]
            (left, at), (right, to) = self._rows(a), other._rows(b)
            found = values[part]
            kernels.pair_products(left, right, metric, at, to, 0, len(a), found)
            found *= self.scale[a] * other.scale[b]
            found += np.einsum("ij,ij->i", self.factors[a] @ self.core, other.factors[b])

        each(fill, slices(len(order), PAIRS))
        result = np.empty(len(order))
        result[order] = values
        return result

    def tile(self, i: Where, other: "SparseItems", j: Where, dtype: Any) -> FloatArray:
        """Return the products of items j of others, in rows, with items i, in columns."""
        chosen, thin = other._chosen(j), other.factors[j].astype(dtype)
        scale = other.scale[j].astype(dtype)[:, None]
        found = np.empty((len(thin), len(self.scale[i])), dtype)
        for part in slices(found.shape[1], STRIP):
            own = np.arange(len(self.scale))[i][part]
            dense = (self._chosen(own) @ self.metric).toarray() * self.scale[own, None]
            dense = np.ascontiguousarray(dense.T, dtype=dtype)
            strip = np.empty((len(thin), len(own)), dtype)
            kernels.csr_times(*_parts(chosen), dense, 0, len(strip), strip)
            strip *= scale
            strip += thin @ (self.factors[own] @ self.core).astype(dtype).T
            found[:, part] = strip
        return found

    def _rows(self, items: IntArray) -> tuple[Any, IntArray]:
        """Return a CSR matrix that has the items, and where."""
        if self.mix is None:
            return _parts(self.matrix), items
        used, place = np.unique(items, return_inverse=True)
        return _parts(self._chosen(used)), place

    def _chosen(self, items: Where) -> sp.csr_array:
        """Return the sparse part of some items."""
        if self.mix is None:
            return self.matrix[items]
        return sp.csr_array(self.mix[items] @ self.matrix)

    def rescaled(self, weights: FloatArray) -> "SparseItems":
        """Return the items, each multiplied by its weight."""
        factors = self.factors * weights[:, None]
        return SparseItems(
            self.matrix, self.metric, factors, self.core, self.scale * weights, self.mix
        )

    def mixed(self, mix: sp.csr_array) -> "SparseItems":
        """Return sparse mixtures of the items, which are no mixtures themselves."""
        weights = _indexed_as(self.matrix, mix @ sp.diags_array(self.scale))
        factors, ones = mix @ self.factors, np.ones(mix.shape[0])
        return SparseItems(self.matrix, self.metric, factors, self.core, ones, weights)


class SparseGram(Gram):
    """The Gram matrix of sparse items: from their nonzeros and thin factors."""

    def __init__(self, left: SparseItems, right: SparseItems, extra: sp.csr_array | None = None):
        self._left, self._right = left, right
        self.n_rows, self.size = len(left.scale), len(right.scale)
        self.extra = extra

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "SparseGram":
        units = sp.eye_array(self.size, format="csr")[rest]
        left, right = (self._left.mixed(each) for each in (mix, sp.vstack([mix, units])))
        return SparseGram(left, right, extra)

    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        return self._left.products(i, self._right, j)

    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        return (self._left.tile(items, self._right, items, np.float64) for items in components)

    def _large_products(self, level: float) -> Pairs:
        pieces = [
            (rows, cols)
            for rows in slices(self.n_rows, STRIP * 8)
            for cols in slices(self.size, COPIED)
            if cols.stop > rows.start
        ]

        def search(piece: tuple[slice, slice]) -> Pairs:
            rows, cols = piece
            tile = self._left.tile(rows, self._right, cols, np.float32).T
            return large_in_tile(tile, rows.start, cols.start, level * (1.0 - ROUGH))

        near = joined(each(search, pieces))
        value = self._products(near.i, near.j)
        large = np.abs(value) > level
        return Pairs(near.i[large], near.j[large], value[large])

    def _rescale(self, weights: FloatArray) -> None:
        self._left = self._right = self._left.rescaled(weights)


def _factors(
    crossed: FloatArray, own: FloatArray, inner: FloatArray, thin: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return F and J: the products of residuals ``s - L W'`` are ``s B s' + F J F'``.

    F is [S B W, L, thin], with ``L (W'BW) L' - S B W L' - L W'B S'`` and `spread` in J.
    """
    k = own.shape[1]
    core = np.zeros((2 * k + len(spread),) * 2)
    core[:k, k : 2 * k] = core[k : 2 * k, :k] = -np.eye(k)
    core[k : 2 * k, k : 2 * k] = inner
    core[2 * k :, 2 * k :] = spread
    return np.column_stack([crossed, own, thin]), core


def _matrix(precision: Weights) -> sp.csr_array:
    return precision if sp.issparse(precision) else sp.csr_array(sp.diags_array(precision))


def _indexed_as(matrix: sp.csr_array, other: Any) -> sp.csr_array:
    """Return another matrix with index arrays of the same type: a product copies none of them."""
    other, kind = sp.csr_array(other), matrix.indices.dtype
    indices = (other.indices.astype(kind), other.indptr.astype(kind))
    return sp.csr_array((other.data, *indices), shape=other.shape)


def _parts(matrix: sp.csr_array) -> tuple[IntArray, IntArray, FloatArray]:
    return matrix.indptr, matrix.indices, matrix.data
