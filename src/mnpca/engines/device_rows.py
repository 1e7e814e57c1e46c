"""Rows of an array of torch, CuPy or another library of the array API standard."""

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import (
    Array,
    indices,
    is_torch,
    like,
    namespace,
    on_accelerator,
    pieces,
    rough_products,
    row_dots,
    to_numpy,
)
from mnpca.engines.rows import ArrayRows, Pairs, add_up, joined, large_in_tile
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

    run = staticmethod(map)

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

    def total_weighted(self, function, shared, precision, *along):
        if not sp.issparse(precision):
            return super().total_weighted(function, shared, precision, *along)
        return add_up([function(self.matrix, shared, precision, *along)])

    def beside(self, array, dtype=None):
        if sp.issparse(array):
            if array.shape[0] > DENSE_PRECISION:
                return array
            array = array.toarray()
        return like(array, self.matrix, dtype and getattr(namespace(self.matrix), dtype))

    def aligned(self, width):
        return width + (-width % ALIGNED if width != self.shape[1] else 0)

    def products(self, other, i, j):
        values = np.empty(len(i))
        for part in pieces(len(i), self.shape[1]):
            values[part] = to_numpy(row_dots(self.read(i[part]), other.read(j[part])))
        return values

    def large_products(self, other, level):
        # Only places and values of large entries leave the device.
        tile = DEVICE_TILE if on_accelerator(self.matrix) else HOST_TILE
        found = []
        with rough_products(self.matrix) as rough:
            near = level * (1.0 - ROUGH) if rough else level
            for strip in slices(self.shape[0], tile):
                rows = self.read(strip)
                for part in slices(other.shape[0], tile)[strip.start // tile :]:
                    product = rows @ other.read(part).T
                    found.append(large_in_tile(product, strip.start, part.start, near))
        pairs = joined(found)
        if not rough:
            return pairs
        values = self.products(other, pairs.i, pairs.j)
        large = np.abs(values) > level
        return Pairs(pairs.i[large], pairs.j[large], values[large])
