"""A Gram matrix that is formed: cheap where one side is short."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.base import Pairs
from mnpca.engines.sparse_part import add_sparse_blocks, scaled, sparse_entries
from mnpca.engines.threads import slices

#: Rows that a search looks at in one go.
STRIP = 256


class FormedGram:
    """The leading rows of a symmetric matrix ``matrix + extra``, in float64.

    See `mnpca.engines.base.Gram` for the methods.
    """

    def __init__(self, matrix: FloatArray, extra: sp.csr_array | None = None):
        self.matrix = matrix
        self.extra = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self.matrix.shape[1])

    def diagonal(self) -> FloatArray:
        """Return the diagonal without `extra`."""
        return np.diagonal(self.matrix).copy()

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``, in place."""
        self.matrix *= weights
        self.matrix *= weights[:, None]
        self.extra = scaled(self.extra, weights)

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        return np.asarray(self.matrix[i, j] + sparse_entries(self.extra, i, j))

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array."""
        flat = np.zeros(offsets[-1])
        for c in range(len(bounds) - 1):
            items = order[bounds[c] : bounds[c + 1]]
            flat[offsets[c] : offsets[c + 1]] = self.matrix[np.ix_(items, items)].ravel()
        add_sparse_blocks(self.extra, order, bounds, offsets, flat)
        return flat

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level``."""
        n_rows = len(self.matrix) if n_rows is None else n_rows
        found = [self._large_in_strip(level, strip) for strip in slices(n_rows, STRIP)]
        nothing = np.zeros(0, np.int64)
        found.append(Pairs(nothing, nothing, np.zeros(0)))
        return Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "FormedGram":
        """Return the leading rows of ``N G N' + extra``, N the rows of `mix` and then `rest`."""
        half = mix @ self.matrix
        return FormedGram(np.hstack([(mix @ half.T).T, half[:, rest]]), extra)

    def _large_in_strip(self, level: float, strip: slice) -> Pairs:
        values = self.matrix[strip]
        if self.extra is not None:
            values = values + self.extra[strip].toarray()
        i, j = np.nonzero(np.abs(values) > level)
        above = j > i + strip.start
        i, j = i[above], j[above]
        return Pairs(i + strip.start, j, values[i, j])
