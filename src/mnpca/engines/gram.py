"""A Gram matrix that is never formed: only the entries that somebody asks for."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels
from mnpca.engines.base import Pairs
from mnpca.engines.formed_gram import joined
from mnpca.engines.sparse_part import add_sparse_blocks, scaled, sparse_entries
from mnpca.engines.threads import each

#: Rows and columns of one dense tile of the screening pass.
TILE = 1024
#: Components up to this size are multiplied out in one compiled loop, larger ones by BLAS.
SMALL = 64


class FactorGram:
    """The symmetric matrix ``left right' + extra`` of q items, kept as its factors.

    ``left`` and ``right`` are q x m (residuals, once filtered by the other side's precision and
    once not), ``extra`` is sparse. The q x q matrix itself is never an array; its diagonal,
    listed entries, blocks and the list of its large entries are computed on demand.
    """

    def __init__(self, left: FloatArray, right: FloatArray, extra: sp.csr_array | None = None):
        self.left = left
        self.right = right
        self.extra = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self.right.shape[0])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``left right'`` (without ``extra``)."""
        return np.einsum("ij,ij->i", self.left, self.right).astype(np.float64)

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``, in place."""
        column = weights.astype(self.left.dtype)[:, None]
        self.left *= column
        self.right *= column
        self.extra = scaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        values: FloatArray = _kernels.pair_dots(self.left, self.right, i, j)
        return values + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array.

        Component c holds the items ``order[bounds[c]:bounds[c + 1]]`` and its block, row by row,
        lies at ``offsets[c]:offsets[c + 1]``.
        """
        flat = np.zeros(offsets[-1])
        _kernels.small_blocks(self.left, self.right, order, bounds, offsets, SMALL, flat)
        for c in np.flatnonzero(np.diff(bounds) > SMALL):
            items = order[bounds[c] : bounds[c + 1]]
            product = (self.left[items] @ self.right[items].T).astype(np.float64)
            flat[offsets[c] : offsets[c + 1]] = ((product + product.T) / 2).ravel()
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level``.

        Only the first `n_rows` rows are searched (all by default). One tile at a time is formed.
        """
        n_rows = self.size if n_rows is None else n_rows
        strips = {i0: self._extra_rows(i0, n_rows) for i0 in range(0, n_rows, TILE)}

        def search(corner: tuple[int, int]) -> list[Pairs]:
            i0, j0 = corner
            tile = self.left[i0 : min(i0 + TILE, n_rows)] @ self.right[j0 : j0 + TILE].T
            strip = strips[i0]
            if strip is not None:
                part = strip[:, j0 : j0 + TILE].tocoo()
                tile[part.coords] += part.data.astype(tile.dtype)
            return pick(tile, i0, j0, level)

        corners = [(i0, j0) for i0 in strips for j0 in range(i0, self.size, TILE)]
        return joined([pairs for tile in each(search, corners) for pairs in tile])

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FactorGram":
        """Return the leading rows of ``N G N' + extra``, N the rows of `mix` and then `rest`."""
        mix = mix.astype(self.right.dtype)
        n_mixed = mix.shape[0]
        right = np.empty((n_mixed + len(rest), self.right.shape[1]), self.right.dtype)
        right[:n_mixed] = mix @ self.right
        right[n_mixed:] = self.right[rest]
        return FactorGram(mix @ self.left, right, extra)

    def _extra_rows(self, i0: int, n_rows: int) -> sp.csc_array | None:
        return None if self.extra is None else self.extra[i0 : min(i0 + TILE, n_rows)].tocsc()


def pick(tile: FloatArray, i0: int, j0: int, level: float) -> list[Pairs]:
    """Return the large entries of one tile whose first entry is (i0, j0)."""
    capacity = 60 * TILE
    while True:
        i, j = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        value = np.empty(capacity)
        count = _kernels.pick_large(tile, i0, j0, level, i, j, value)
        if count <= capacity:
            break
        capacity = count
    if count == 0:
        return []
    return [Pairs(i[:count].copy(), j[:count].copy(), value[:count].copy())]
