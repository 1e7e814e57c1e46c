"""What the solvers ask of a Gram matrix of residuals, whatever it is made of.

Only the n x p matrix and its residuals are kept by an engine (`mnpca.engines.engine`). Everything
thin (n x k, p x k, vectors, k x k) goes in and comes out as float64 NumPy arrays on the host, and
precisions as one-dimensional arrays (a diagonal) or scipy CSR arrays, so that the solvers are the
same for every engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.threads import slices

Weights: TypeAlias = FloatArray | sp.csr_array
"""A precision: its diagonal where it has nothing else, otherwise CSR."""

#: Blocks of components up to this size are made of listed entries, larger ones are one product.
SMALL = 16
#: Entries of blocks that are listed at a time: a list has several numbers for each of them.
LISTED = 2**20


class Pairs(NamedTuple):
    """Entries (i, j), i < j, of a symmetric matrix."""

    i: IntArray
    j: IntArray
    value: FloatArray


def joined(found: Sequence[Pairs]) -> Pairs:
    """Return several lists of entries as one."""
    nobody = np.zeros(0, np.int64)
    lists = zip(Pairs(nobody, nobody, np.zeros(0)), *found, strict=True)
    return Pairs(*(np.concatenate(parts) for parts in lists))


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
        return self._products(i, j) + self._extra_entries(i, j)

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

    def _extra_entries(self, i: IntArray, j: IntArray) -> FloatArray:
        values = np.zeros(len(i))
        if self.extra is None:
            return values
        # Most items have no entry at all; looking for one is what takes time.
        filled = np.diff(self.extra.indptr) > 0
        there = np.flatnonzero(filled[i] & filled[j])
        if len(there) > 0:
            values[there] = np.asarray(self.extra[i[there], j[there]]).ravel()
        return values

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


def as_array(gram: Gram) -> FloatArray:
    """Return all entries of a small Gram matrix, with `extra`."""
    size = gram.size
    ends = np.array([[0, size], [0, size**2]])
    return gram.component_blocks(np.arange(size), *ends).reshape(size, size)
