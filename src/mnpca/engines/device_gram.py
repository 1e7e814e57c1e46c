"""Gram matrices of residuals on a device: whole where few items meet, otherwise as factors."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import Array, like, namespace, to_numpy
from mnpca.engines.base import Pairs
from mnpca.engines.device import (
    empty,
    indices,
    on_accelerator,
    pieces,
    rough_products,
    sparse_times,
)
from mnpca.engines.sparse_part import (
    add_sparse_blocks,
    large_with_sparse,
    scaled,
    sparse_entries,
)
from mnpca.engines.threads import slices

#: Rows and columns of one tile of the screening pass, on an accelerator and on the host.
DEVICE_TILE = 8192
HOST_TILE = 1024
#: A search in TF32 proposes entries down to this share below the level; float32 decides.
ROUGH = 1e-3


class DeviceFormedGram:
    """The symmetric matrix ``G + extra`` with G a q x q array (float64) wherever it was formed."""

    def __init__(self, gram: Array, extra: sp.csr_array | None = None):
        self.gram = gram
        self.extra = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self.gram.shape[0])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G (without `extra`)."""
        return to_numpy(namespace(self.gram).linalg.diagonal(self.gram)).astype(np.float64)

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``."""
        weight = like(weights, self.gram)
        self.gram = self.gram * (weight[:, None] * weight[None, :])
        self.extra = scaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        return self._entries(i, j) + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array."""
        sizes = np.diff(bounds)
        component = np.repeat(np.arange(len(sizes)), sizes**2)
        place = np.arange(offsets[-1]) - offsets[component]
        first = bounds[component]
        rows = order[first + place // sizes[component]]
        flat = self._entries(rows, order[first + place % sizes[component]])
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level`` in the first rows."""
        n_rows = self.size if n_rows is None else n_rows
        found = _large(self.gram[:n_rows, :], 0, 0, level)
        return large_with_sparse(found, self.extra, self.entries, level, n_rows)

    def filtered(
        self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array
    ) -> "DeviceFormedGram":
        """Return ``N G N' + extra``, N the rows of `mix` and then unit rows for `rest`."""
        ones = (np.ones(len(rest)), (np.arange(len(rest)), rest))
        unit = sp.csr_array(ones, shape=(len(rest), self.size))
        mix = sp.csr_array(sp.vstack([mix, unit]))
        half = sparse_times(mix, self.gram)
        return DeviceFormedGram(sparse_times(mix, half.T), extra)

    def _entries(self, i: IntArray, j: IntArray) -> FloatArray:
        xp = namespace(self.gram)
        flat = xp.reshape(self.gram, (-1,))
        places = np.asarray(i, np.int64) * self.size + j
        return to_numpy(xp.take(flat, indices(places, flat))).astype(np.float64)


class DeviceFactorGram:
    """The symmetric matrix ``left right' + extra`` of q items, kept as its factors (q x m)."""

    def __init__(self, left: Array, right: Array, extra: sp.csr_array | None = None):
        self.left = left
        self.right = right
        self.extra = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self.right.shape[0])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``left right'`` (without `extra`)."""
        xp = namespace(self.left)
        width = self.right.shape[1]
        sums = [
            xp.sum(self.left[part, :] * self.right[part, :], axis=1)
            for part in pieces(self.size, width)
        ]
        return np.concatenate([to_numpy(part) for part in sums]).astype(np.float64)

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``, in place."""
        column = like(weights, self.left)[:, None]
        self.left *= column
        self.right *= column
        self.extra = scaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        xp = namespace(self.left)
        values = np.empty(len(i))
        for part in pieces(len(i), self.right.shape[1]):
            a = xp.take(self.left, indices(i[part], self.left), axis=0)
            a *= xp.take(self.right, indices(j[part], self.left), axis=0)
            values[part] = to_numpy(xp.sum(a, axis=1))
        return values + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array."""
        sizes = np.diff(bounds)
        flat = np.zeros(offsets[-1])
        for size in np.unique(sizes):
            chosen = np.flatnonzero(sizes == size)
            for part in pieces(len(chosen), size * self.right.shape[1]):
                some = chosen[part]
                items = order[bounds[some][:, None] + np.arange(size)]
                places = offsets[some][:, None] + np.arange(size**2)
                flat[places] = self._blocks(items).reshape(len(some), -1)
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level`` in the first rows.

        One tile at a time is formed; only places and values of large entries leave the device.
        """
        n_rows = self.size if n_rows is None else n_rows
        tile = DEVICE_TILE if on_accelerator(self.left) else HOST_TILE
        found = []
        with rough_products(self.left) as rough:
            near = level * (1.0 - ROUGH) if rough else level
            for strip in slices(n_rows, tile):
                rows = self.left[strip, :]
                for part in slices(self.size, tile)[strip.start // tile :]:
                    product = rows @ self.right[part, :].T
                    found.append(_large(product, strip.start, part.start, near))
        pairs = Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        if rough:
            values = self.entries(pairs.i, pairs.j)
            values -= sparse_entries(self.extra, pairs.i, pairs.j)
            large = np.abs(values) > level
            pairs = Pairs(pairs.i[large], pairs.j[large], values[large])
        return large_with_sparse(pairs, self.extra, self.entries, level, n_rows)

    def filtered(
        self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array
    ) -> "DeviceFactorGram":
        """Return the leading rows of ``N G N' + extra``, N the rows of `mix` and then `rest`."""
        n_mixed = mix.shape[0]
        right = empty((n_mixed + len(rest), self.right.shape[1]), self.right)
        right[:n_mixed, :] = sparse_times(mix, self.right)
        for part in pieces(len(rest), self.right.shape[1]):
            rows = namespace(right).take(self.right, indices(rest[part], right), axis=0)
            right[n_mixed + part.start : n_mixed + part.stop, :] = rows
        return DeviceFactorGram(sparse_times(mix, self.left), right, extra)

    def _blocks(self, items: IntArray) -> FloatArray:
        """Return the blocks (c x s x s) of c components of s items each."""
        xp = namespace(self.left)
        shape = (*items.shape, self.right.shape[1])
        places = indices(items.ravel(), self.left)
        left, right = (
            xp.reshape(xp.take(factor, places, axis=0), shape) for factor in (self.left, self.right)
        )
        product = to_numpy(left @ xp.permute_dims(right, (0, 2, 1))).astype(np.float64)
        return np.asarray((product + product.transpose(0, 2, 1)) / 2)


def _large(tile: Array, i0: int, j0: int, level: float) -> Pairs:
    """Return the large entries above the diagonal of a tile whose first entry is (i0, j0)."""
    xp, level = namespace(tile), float(level)
    large = (tile > level) | (tile < -level)
    if j0 < i0 + tile.shape[0]:
        rows = indices(i0 + np.arange(tile.shape[0]), tile)
        cols = indices(j0 + np.arange(tile.shape[1]), tile)
        large = large & (cols[None, :] > rows[:, None])
    i, j = (to_numpy(side) for side in xp.nonzero(large))
    return Pairs(i + i0, j + j0, to_numpy(tile[large]).astype(np.float64))
