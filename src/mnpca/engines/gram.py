"""Gram matrices of residuals: from factors, entry by entry as they are asked for, or formed.

Solvers ask for what `Gram` has, whatever it is made of.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import Array, astype, indices, like, namespace, sparse_times, to_numpy
from mnpca.engines.rows import ArrayRows, Pairs, Rows, joined, large_in_tile
from mnpca.engines.threads import slices

#: Rows of a formed matrix that a search looks at in one go.
STRIP = 1024
#: Large components whose products are computed at once: they are there twice for a while.
AT_ONCE = 8
#: Blocks of components up to this size are made of listed entries, larger ones are one product.
SMALL = 16
#: Entries of blocks that are listed at a time: a list has several numbers for each of them.
LISTED = 2**20


class Gram(ABC):
    """A symmetric q x q matrix ``G + extra`` of which only the entries asked for are computed.

    G is a Gram matrix of residuals, such as ``R B R' + F spread F'``; `extra` is sparse. After
    `filtered` it has its first `n_rows` rows only.
    """

    extra: sp.csr_array | None = None
    size: int
    """The number of items q."""
    n_rows: int

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G (without `extra`)."""
        every = np.arange(self.size)
        return self._products(every, every)

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i of ``G + extra`` by ``weights[i]``, in place."""
        self._rescale(weights)
        if self.extra is not None:
            scale = sp.diags_array(weights)
            self.extra = sp.csr_array(scale @ self.extra @ scale)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries of ``G + extra``."""
        return self._products(i, j) + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return diagonal blocks of ``G + extra``, one after the other in a flat array.

        Component c holds the items ``order[bounds[c]:bounds[c + 1]]`` and its block, row by row,
        lies at ``offsets[c]:offsets[c + 1]``.
        """
        flat = np.empty(offsets[-1])
        sizes = np.diff(bounds)
        listed = np.flatnonzero(np.repeat(sizes <= SMALL, np.diff(offsets)))
        for part in slices(len(listed), LISTED):
            places = listed[part]
            component = np.searchsorted(offsets, places, side="right") - 1
            first = bounds[component]
            row, col = np.divmod(places - offsets[component], sizes[component])
            # Either half from the same products, so that blocks are symmetric to the last bit.
            i, j = order[first + np.minimum(row, col)], order[first + np.maximum(row, col)]
            flat[places] = self._products(i, j)
        large = np.flatnonzero(sizes > SMALL)
        items = [order[bounds[c] : bounds[c + 1]] for c in large]
        for c, block in zip(large, self._blocks(items), strict=True):
            flat[offsets[c] : offsets[c + 1]] = ((block + block.T) / 2).ravel()
        self._add_extra_blocks(order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float) -> Pairs:
        """Return the entries (i, j), i < j, of ``G + extra`` with ``|entry| > level``."""
        found = self._large_products(level)
        if self.extra is None:
            return found
        # The sparse part can only change the pairs it has an entry for: these are looked at again.
        upper = sp.triu(self.extra, k=1, format="coo")
        i, j = (np.asarray(side, np.int64) for side in upper.coords)
        i, j = i[i < self.n_rows], j[i < self.n_rows]
        values = self.entries(i, j)
        large = np.abs(values) > level
        other = ~np.isin(found.i * self.size + found.j, i * self.size + j)
        kept = Pairs(found.i[other], found.j[other], found.value[other])
        return joined([kept, Pairs(i[large], j[large], values[large])])

    @abstractmethod
    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "Gram":
        """Return the leading rows of ``N G N' + extra`` where N stacks `mix` on unit rows.

        `mix` is sparse, l x q; the other rows of N pick the items `rest` one by one. Only rows
        ``i < l`` of the result can be asked for. `extra` is in the new order; the old `extra` is
        left out.
        """

    @abstractmethod
    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries of G."""

    @abstractmethod
    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        """Yield the block of G among the items of every component."""

    @abstractmethod
    def _large_products(self, level: float) -> Pairs:
        """Return the large entries of G above the diagonal."""

    @abstractmethod
    def _rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i of G by ``weights[i]``."""

    def _add_extra_blocks(
        self, order: IntArray, bounds: IntArray, offsets: IntArray, flat: FloatArray
    ) -> None:
        """Add the entries of `extra` that lie inside a component to the flat blocks."""
        if self.extra is None:
            return
        sizes = np.diff(bounds)
        component = np.repeat(np.arange(len(sizes)), sizes)
        entries = self.extra[order][:, order].tocoo()
        inside = component[entries.coords[0]] == component[entries.coords[1]]
        i, j = (side[inside] for side in entries.coords)
        c = component[i]
        places = offsets[c] + (i - bounds[c]) * sizes[c] + j - bounds[c]
        np.add.at(flat, places, entries.data[inside])


class FactorGram(Gram):
    """The symmetric matrix ``left right' + extra`` of q items, kept as its factors.

    These are residuals (rows, or arrays), once filtered by the other side's precision and once not.
    """

    _keys: IntArray
    _values: FloatArray

    def __init__(
        self,
        left: Rows | FloatArray,
        right: Rows | FloatArray,
        extra: sp.csr_array | None = None,
    ):
        self._left, self._right = (
            each if isinstance(each, Rows) else ArrayRows(each) for each in (left, right)
        )
        self.n_rows, self.size = self._left.shape[0], self._right.shape[0]
        self.extra = extra
        self._forget()

    @property
    def left(self) -> Any:
        """Return the first factor, where it is an array."""
        return self._left.matrix

    @property
    def right(self) -> Any:
        """Return the second factor, where it is an array."""
        return self._right.matrix

    def dense_rows(self, items: IntArray) -> FloatArray:
        """Return some rows as a dense array, where the factors are arrays."""
        rows = np.asarray(self.left[items] @ self.right.T)
        return rows if self.extra is None else rows + self.extra[items].toarray()

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FactorGram":
        left = self._left.filtered(mix, rest[:0])
        return FactorGram(left, self._right.filtered(mix, rest), extra)

    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        if self._left.matrix is not None:
            return self._left.products(self._right, i, j)
        # Rows that are computed whenever they are read: products are computed once.
        keys = i * self.size + j
        new = np.setdiff1d(keys, self._keys)
        if len(new) > 0:
            values = self._left.products(self._right, *np.divmod(new, self.size))
            every = np.concatenate([self._keys, new])
            order = np.argsort(every)
            self._keys = every[order]
            self._values = np.concatenate([self._values, values])[order]
        return np.asarray(self._values[np.searchsorted(self._keys, keys)])

    def _forget(self) -> None:
        self._keys, self._values = np.zeros(0, np.int64), np.zeros(0)

    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        pairs = [(items, items) for items in components]
        for some in slices(len(pairs), AT_ONCE):
            yield from self._left.map_pairs(_all_products, None, self._right, pairs[some])

    def _large_products(self, level: float) -> Pairs:
        return self._left.large_products(self._right, level)

    def _rescale(self, weights: FloatArray) -> None:
        self._left, self._right = (each.rescaled(weights) for each in (self._left, self._right))
        self._forget()


class FormedGram(Gram):
    """The leading rows of a symmetric matrix ``gram + extra``, an array (float64) anywhere."""

    def __init__(self, gram: Array, extra: sp.csr_array | None = None):
        self.gram = gram
        self.n_rows, self.size = (int(length) for length in gram.shape)
        self.extra = extra

    @classmethod
    def of(cls, products: Array) -> "FormedGram":
        """Make products symmetric to the last bit."""
        products = astype(products, "float64")
        products = products + products.T
        products *= 0.5
        return cls(products)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FormedGram":
        xp = namespace(self.gram)
        half = sparse_times(mix, self.gram)
        others = xp.take(half, indices(rest, half), axis=1)
        return FormedGram(xp.concat([sparse_times(mix, half.T).T, others], axis=1), extra)

    def _products(self, i: IntArray, j: IntArray) -> FloatArray:
        if isinstance(self.gram, np.ndarray):
            return np.asarray(self.gram[i, j])
        xp = namespace(self.gram)
        flat = xp.reshape(self.gram, (-1,))
        places = np.asarray(i, np.int64) * self.size + j
        return to_numpy(xp.take(flat, indices(places, flat))).astype(np.float64)

    def _blocks(self, components: list[IntArray]) -> Iterator[FloatArray]:
        xp = namespace(self.gram)
        for items in components:
            where = indices(items, self.gram)
            yield to_numpy(xp.take(xp.take(self.gram, where, axis=0), where, axis=1))

    def _large_products(self, level: float) -> Pairs:
        strips = slices(self.n_rows, STRIP)
        return joined(
            [large_in_tile(self.gram[s, s.start :], s.start, s.start, level) for s in strips]
        )

    def _rescale(self, weights: FloatArray) -> None:
        weight = like(weights, self.gram)
        self.gram *= weight[None, :]
        self.gram *= weight[:, None]


def as_array(gram: Gram) -> FloatArray:
    """Return all entries of a small Gram matrix, with `extra`."""
    size = gram.size
    ends = np.array([[0, size], [0, size**2]])
    return gram.component_blocks(np.arange(size), *ends).reshape(size, size)


def _all_products(left: Array, right: Array, _: None) -> FloatArray:
    return to_numpy(left @ right.T).astype(np.float64)


def sparse_entries(matrix: sp.csr_array | None, i: IntArray, j: IntArray) -> FloatArray:
    """Return the listed entries of a sparse matrix, zeros where there is none."""
    values = np.zeros(len(i))
    if matrix is None:
        return values
    # Most items have no entry at all; looking for one is what takes time.
    filled = np.diff(matrix.indptr) > 0
    there = np.flatnonzero(filled[i] & filled[j])
    if len(there) > 0:
        values[there] = np.asarray(matrix[i[there], j[there]]).ravel()
    return values
