"""A Gram matrix that is formed: cheap where one side is short."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import Array, like, namespace, to_numpy
from mnpca.engines.base import Pairs
from mnpca.engines.device import indices, sparse_times
from mnpca.engines.sparse_part import (
    add_sparse_blocks,
    component_pairs,
    large_with_sparse,
    scaled,
    sparse_entries,
)
from mnpca.engines.threads import slices

#: Rows that a search looks at in one go.
STRIP = 1024


class FormedGram:
    """The leading rows of a symmetric matrix ``gram + extra``, an array (float64) anywhere.

    See `mnpca.engines.base.Gram` for the methods.
    """

    def __init__(self, gram: Array, extra: sp.csr_array | None = None):
        self.gram = gram
        self.extra = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self.gram.shape[1])

    def diagonal(self) -> FloatArray:
        """Return the diagonal without `extra`."""
        return np.array(to_numpy(namespace(self.gram).linalg.diagonal(self.gram)), np.float64)

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``, in place."""
        weight = like(weights, self.gram)
        self.gram *= weight[None, :]
        self.gram *= weight[:, None]
        self.extra = scaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        return self._entries(i, j) + sparse_entries(self.extra, i, j)

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array."""
        flat = self._entries(*component_pairs(order, bounds, offsets))
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level``."""
        n_rows = self.gram.shape[0] if n_rows is None else n_rows
        strips = slices(n_rows, STRIP)
        found = joined(
            [large_in_tile(self.gram[s, s.start :], s.start, s.start, level) for s in strips]
        )
        return large_with_sparse(found, self.extra, self.entries, level, n_rows)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FormedGram":
        """Return the leading rows of ``N G N' + extra``, N the rows of `mix` and then `rest`."""
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


def joined(found: list[Pairs]) -> Pairs:
    """Return lists of entries as one."""
    nothing = np.zeros(0, np.int64)
    found = [*found, Pairs(nothing, nothing, np.zeros(0))]
    return Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
