"""Gram matrices of residuals: from factors, entry by entry as they are asked for, or formed.

See `mnpca.engines.base.Gram` for the methods. Both have a sparse part `extra`, which is added to
what is computed of the rest.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import (
    Array,
    astype,
    indices,
    like,
    namespace,
    row_dots,
    sparse_times,
    to_numpy,
)
from mnpca.engines.base import Pairs
from mnpca.engines.rows import ArrayRows, Rows, joined
from mnpca.engines.threads import slices

#: Rows of a formed matrix that a search looks at in one go.
STRIP = 1024
#: Entries of blocks that are listed at a time: a list has several numbers for each of them.
LISTED = 2**20

Entries: TypeAlias = Callable[[IntArray, IntArray], FloatArray]


class FactorGram:
    """The symmetric matrix ``left right' + extra`` of q items, kept as its factors.

    These are residuals (rows, or arrays), once filtered by the other side's precision and once not.
    Where left has fewer rows, the matrix has its leading rows only.
    """

    def __init__(
        self,
        left: Rows | FloatArray,
        right: Rows | FloatArray,
        extra: sp.csr_array | None = None,
    ):
        self._left, self._right = (
            each if isinstance(each, Rows) else ArrayRows(each) for each in (left, right)
        )
        self.extra = extra
        self._known = _Known()

    @property
    def left(self) -> Any:
        """Return the first factor, where it is an array."""
        return self._left.matrix

    @property
    def right(self) -> Any:
        """Return the second factor, where it is an array."""
        return self._right.matrix

    @property
    def size(self) -> int:
        return self._right.shape[0]

    def diagonal(self) -> FloatArray:
        parts = [(part, part) for part in self._left.parts]
        return np.concatenate(self._left.map_pairs(_diagonal, None, self._right, parts))

    def rescale(self, weights: FloatArray) -> None:
        self._left, self._right = (each.rescaled(weights) for each in (self._left, self._right))
        self.extra = _rescaled(self.extra, weights)
        self._known = _Known()

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        if self._left.matrix is not None:
            values = self._left.products(self._right, i, j)
        else:  # rows that are computed whenever they are read
            keys = i * self.size + j
            new = self._known.missing(keys)
            places = np.divmod(new, self.size)
            self._known.add(new, self._left.products(self._right, *places))
            values = self._known[keys]
        return values + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        flat = self._left.blocks(self._right, order, bounds, offsets)
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def rows(self, items: IntArray) -> FloatArray:
        """Return some rows as a dense array, where the factors are arrays."""
        rows = np.asarray(self.left[items] @ self.right.T)
        return rows if self.extra is None else rows + self.extra[items].toarray()

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        n_rows = self._left.shape[0] if n_rows is None else n_rows
        return self._left.large_products(self._right, level, n_rows, self.extra)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FactorGram":
        left = self._left.filtered(mix, rest[:0])
        return FactorGram(left, self._right.filtered(mix, rest), extra)


class FormedGram:
    """The leading rows of a symmetric matrix ``gram + extra``, an array (float64) anywhere."""

    def __init__(self, gram: Array, extra: sp.csr_array | None = None):
        self.gram = gram
        self.extra = extra

    @classmethod
    def of(cls, products: Array) -> "FormedGram":
        """Make products symmetric to the last bit."""
        products = astype(products, "float64")
        products = products + products.T
        products *= 0.5
        return cls(products)

    @property
    def size(self) -> int:
        return int(self.gram.shape[1])

    def diagonal(self) -> FloatArray:
        return np.array(to_numpy(namespace(self.gram).linalg.diagonal(self.gram)), np.float64)

    def rescale(self, weights: FloatArray) -> None:
        weight = like(weights, self.gram)
        self.gram *= weight[None, :]
        self.gram *= weight[:, None]
        self.extra = _rescaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        return self._entries(i, j) + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        flat = blocks_of_entries(self._entries, order, bounds, offsets)
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        n_rows = self.gram.shape[0] if n_rows is None else n_rows
        strips = slices(n_rows, STRIP)
        found = [large_in_tile(self.gram[s, s.start :], s.start, s.start, level) for s in strips]
        return large_with_sparse(joined(found), self.extra, self._entries, level, n_rows)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FormedGram":
        xp = namespace(self.gram)
        half = sparse_times(mix, self.gram)
        others = xp.take(half, indices(rest, half), axis=1)
        return FormedGram(xp.concat([sparse_times(mix, half.T).T, others], axis=1), extra)

    def _entries(self, i: IntArray, j: IntArray) -> FloatArray:
        if isinstance(self.gram, np.ndarray):
            return np.asarray(self.gram[i, j])
        xp = namespace(self.gram)
        flat = xp.reshape(self.gram, (-1,))
        places = np.asarray(i, np.int64) * self.size + j
        return to_numpy(xp.take(flat, indices(places, flat))).astype(np.float64)


class _Known:
    """Entries that were computed before, by key."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._values = np.zeros(0)

    def missing(self, keys: IntArray) -> IntArray:
        return np.setdiff1d(keys, self._keys)

    def add(self, keys: IntArray, values: FloatArray) -> None:
        every = np.concatenate([self._keys, keys])
        order = np.argsort(every)
        self._keys = every[order]
        self._values = np.concatenate([self._values, values])[order]

    def __getitem__(self, keys: IntArray) -> FloatArray:
        return np.asarray(self._values[np.searchsorted(self._keys, keys)])


def _diagonal(left: Array, right: Array, _: None) -> FloatArray:
    return to_numpy(row_dots(left, right)).astype(np.float64)


def _rescaled(matrix: sp.csr_array | None, weights: FloatArray) -> sp.csr_array | None:
    """Multiply row and column i by ``weights[i]``."""
    if matrix is None:
        return None
    scale = sp.diags_array(weights)
    return sp.csr_array(scale @ matrix @ scale)


def sparse_entries(matrix: sp.csr_array | None, i: IntArray, j: IntArray) -> FloatArray:
    """Return ``matrix[i, j]`` entry by entry, for a symmetric matrix."""
    values = np.zeros(len(i))
    if matrix is None:
        return values
    # Most items have no entry at all; looking for one is what takes time.
    filled = np.diff(matrix.indptr) > 0
    there = np.flatnonzero(filled[i] & filled[j])
    if len(there) > 0:
        values[there] = np.asarray(matrix[i[there], j[there]]).ravel()
    return values


def blocks_of_entries(
    entries: Entries, order: IntArray, bounds: IntArray, offsets: IntArray
) -> FloatArray:
    """Return the flat blocks of components from listed entries, some of them at a time."""
    flat = np.empty(offsets[-1])
    for part in slices(len(flat), LISTED):
        place = np.arange(part.start, part.stop)
        component = np.searchsorted(offsets, place, side="right") - 1
        place -= offsets[component]
        first, size = bounds[component], np.diff(bounds)[component]
        flat[part] = entries(order[first + place // size], order[first + place % size])
    return flat


def add_sparse_blocks(
    matrix: sp.csr_array | None,
    order: IntArray,
    bounds: IntArray,
    offsets: IntArray,
    flat: FloatArray,
) -> None:
    """Add the entries of a sparse matrix that lie inside a component to the flat blocks."""
    if matrix is None:
        return
    sizes = np.diff(bounds)
    component = np.repeat(np.arange(len(sizes)), sizes)
    entries = matrix[order][:, order].tocoo()
    inside = component[entries.coords[0]] == component[entries.coords[1]]
    i, j = (side[inside] for side in entries.coords)
    c = component[i]
    np.add.at(flat, offsets[c] + (i - bounds[c]) * sizes[c] + j - bounds[c], entries.data[inside])


def large_in_tile(tile: Array, i0: int, j0: int, level: float) -> Pairs:
    """Return the large entries above the diagonal of a tile whose first entry is (i0, j0)."""
    xp, level = namespace(tile), float(level)
    large = (tile > level) | (tile < -level)
    if j0 < i0 + tile.shape[0]:
        rows = indices(i0 + np.arange(tile.shape[0]), tile)
        cols = indices(j0 + np.arange(tile.shape[1]), tile)
        large = large & (cols[None, :] > rows[:, None])
    i, j = (to_numpy(side) for side in xp.nonzero(large))
    return Pairs(i + i0, j + j0, to_numpy(tile[large]).astype(np.float64))


def large_with_sparse(
    found: Pairs,
    matrix: sp.csr_array | None,
    entries: Entries,
    level: float,
    n_rows: int,
) -> Pairs:
    """Return the large entries in the first rows of ``G + matrix`` from those of G.

    The sparse part can only change the pairs it has an entry for; these are looked at again.
    `entries` gives listed entries of G.
    """
    if matrix is None:
        return found
    size = matrix.shape[0]
    i, j = (np.asarray(side, np.int64) for side in sp.triu(matrix, k=1, format="coo").coords)
    i, j = i[i < n_rows], j[i < n_rows]
    values = entries(i, j) + sparse_entries(matrix, i, j)
    large = np.abs(values) > level
    other = ~np.isin(found.i * size + found.j, i * size + j)
    kept = Pairs(found.i[other], found.j[other], found.value[other])
    return joined([kept, Pairs(i[large], j[large], values[large])])
