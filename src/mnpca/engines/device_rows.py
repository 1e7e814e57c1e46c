"""Rows of an array of torch, CuPy or another library of the array API standard."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import (
    Array,
    empty,
    indices,
    is_torch,
    like,
    namespace,
    on_accelerator,
    pieces,
    rough_products,
    row_dots,
    sparse_times,
    to_numpy,
)
from mnpca.engines.base import Pairs
from mnpca.engines.gram import large_in_tile, large_with_sparse
from mnpca.engines.rows import ArrayRows, add_up, joined
from mnpca.engines.threads import slices

#: Rows whose products are summed in the matrix's own type; the sums of these are float64.
SUMMED = 65536
#: Gram matrices of up to this many items are formed ...
FORMED = 8192
#: ... unless there are more than this many times as many items as observations.
LONG = 2
#: Precisions of up to this many columns multiply the matrix as dense arrays.
DENSE_PRECISION = 8192
#: Widths of factors are multiples of this, which matrix units ask for.
ALIGNED = 32
#: Rows and columns of one tile of a search, on an accelerator and on the host.
DEVICE_TILE, HOST_TILE = 8192, 1024
#: A search in TF32 proposes entries down to this share below the level; float32 decides.
ROUGH = 1e-3


class DeviceRows(ArrayRows):
    """An array on any device, whose operations run one after the other there."""

    def __init__(self, matrix: Array):
        super().__init__(matrix.detach() if is_torch(matrix) else matrix)
        n, m = self.shape
        self.parts = slices(n, min(SUMMED, pieces(n, m)[0].stop)) if n else []

    @property
    def forms_rows(self) -> bool:
        n, m = self.shape
        return n <= min(FORMED, LONG * m)

    @property
    def forms_columns(self) -> bool:
        n, m = self.shape
        return m <= min(FORMED, LONG * n)

    def read(self, where):
        if isinstance(where, slice):
            return self.matrix[where, :]
        return namespace(self.matrix).take(self.matrix, indices(where, self.matrix), axis=0)

    def map_groups(self, function, shared, groups, *along):
        return list(map(self._on_group(function, shared), zip(groups, *along, strict=True)))

    def total_groups(self, function, shared, groups, *along):
        return add_up(map(self._on_group(function, shared), zip(groups, *along, strict=True)))

    def map_pairs(self, function, shared, other, pairs, *along):
        return [
            function(self.read(first), other.read(second), shared, *own)
            for (first, second), *own in zip(pairs, *along, strict=True)
        ]

    def total_weighted(self, function, shared, precision):
        if not sp.issparse(precision):
            return super().total_weighted(function, shared, precision)
        weighted = sparse_times(precision, self.matrix)
        return self.total(lambda rows, _, own: function(rows, own, shared), None, weighted)

    def beside(self, array, dtype=None):
        if sp.issparse(array):
            if array.shape[0] > DENSE_PRECISION:
                return array
            array = array.toarray()
        return like(array, self.matrix, dtype and getattr(namespace(self.matrix), dtype))

    def _computed(self, width, dtype, function, shared, *along):
        name = dtype if isinstance(dtype, str) else None
        aligned = width + (-width % ALIGNED if width != self.shape[1] else 0)
        out = empty((self.shape[0], aligned), self.matrix, name)
        out[:, width:] = 0
        for part, *own in zip(self.parts, *self._cut(along), strict=True):
            out[part, :width] = function(self.matrix[part, :], shared, *own)
        return DeviceRows(out)

    def filtered(self, mix, rest):
        n_mixed, width = mix.shape[0], self.shape[1]
        out = empty((n_mixed + len(rest), width), self.matrix)
        out[:n_mixed, :] = sparse_times(mix, self.matrix)
        for part in pieces(len(rest), width):
            out[n_mixed + part.start : n_mixed + part.stop, :] = self.read(rest[part])
        return DeviceRows(out)

    def rescaled(self, weights):
        self.matrix *= like(weights, self.matrix)[:, None]
        return self

    def products(self, other, i, j):
        values = np.empty(len(i))
        for part in pieces(len(i), self.shape[1]):
            values[part] = to_numpy(row_dots(self.read(i[part]), other.read(j[part])))
        return values

    def blocks(self, other, order, bounds, offsets):
        sizes = np.diff(bounds)
        flat = np.zeros(offsets[-1])
        for size in np.unique(sizes):  # components of one size together
            chosen = np.flatnonzero(sizes == size)
            for part in pieces(len(chosen), size * self.shape[1]):
                some = chosen[part]
                items = order[bounds[some][:, None] + np.arange(size)].ravel()
                product = _batched(self.read(items), other.read(items), size)
                flat[offsets[some][:, None] + np.arange(size**2)] = product
        return flat

    def large_products(self, other, level, n_rows, extra):
        # Only places and values of large entries leave the device.
        tile = DEVICE_TILE if on_accelerator(self.matrix) else HOST_TILE
        found = []
        with rough_products(self.matrix) as rough:
            near = level * (1.0 - ROUGH) if rough else level
            for strip in slices(n_rows, tile):
                rows = self.read(strip)
                for part in slices(other.shape[0], tile)[strip.start // tile :]:
                    product = rows @ other.read(part).T
                    found.append(large_in_tile(product, strip.start, part.start, near))
        pairs = joined(found)
        if rough:
            values = self.products(other, pairs.i, pairs.j)
            large = np.abs(values) > level
            pairs = Pairs(pairs.i[large], pairs.j[large], values[large])

        def entries(i: Any, j: Any) -> Any:
            return self.products(other, i, j)

        return large_with_sparse(pairs, extra, entries, level, n_rows)


def _batched(left: Array, right: Array, size: int) -> Any:
    """Return the products of so many rows at a time, made symmetric, a row for each."""
    xp = namespace(left)
    shape = (-1, size, left.shape[1])
    left, right = xp.reshape(left, shape), xp.reshape(right, shape)
    product = to_numpy(left @ xp.permute_dims(right, (0, 2, 1))).astype(np.float64)
    return ((product + product.transpose(0, 2, 1)) / 2).reshape(len(product), -1)
