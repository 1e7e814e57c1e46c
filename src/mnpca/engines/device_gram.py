"""Gram matrices of residuals on a device, as factors."""

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
from mnpca.engines.formed_gram import joined, large_in_tile
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
                    found.append(large_in_tile(product, strip.start, part.start, near))
        pairs = joined(found)
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
