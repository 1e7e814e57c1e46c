"""Gram matrices of the rows of a matrix in blocks: entries, tiles and components on demand.

The factors of a Gram matrix ``left right'`` are read block by block, as in `FactorGram`. Functions
whose name begins with an underscore and whose first argument is an array of rows run where the
blocks are.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._components import label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels
from mnpca.engines.base import Pairs
from mnpca.engines.formed_gram import joined
from mnpca.engines.gram import TILE, FactorGram, pick
from mnpca.engines.rows import Rows, block_rows
from mnpca.engines.sparse_part import large_with_sparse, scaled, sparse_entries
from mnpca.engines.threads import slices


class Corner(NamedTuple):
    """What a search has to know of one pair of blocks, beside their rows."""

    first_row: int
    n_rows: int
    first_col: int
    cols: IntArray | None
    """The rows of the second block that count, all by default."""


class RowGram:
    """The matrix ``left right' + extra`` of rows, of which only parts are computed.

    See `mnpca.engines.base.Gram` for the methods.

    Parameters
    ----------
    left, right : Rows
        Factors, in the same blocks.
    """

    def __init__(self, left: Rows, right: Rows):
        self.left = left
        self.right = right
        self.extra: sp.csr_array | None = None
        self._known = _Known()

    @property
    def size(self) -> int:
        """Return the number of items."""
        return self.right.shape[0]

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``left right'`` (without `extra`)."""
        corners = [(b, b) for b in range(len(self.left.parts))]
        return np.concatenate(self.left.map_corners(_diagonal, None, self.right, corners))

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i by ``weights[i]``."""
        width, factors = self.right.shape[1], weights.astype(self.right.dtype)
        self.left = self.left.derived(width, _scale, None, factors)
        self.right = self.right.derived(width, _scale, None, factors)
        self.extra = scaled(self.extra, weights)
        self._known = _Known()

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries."""
        keys = i * self.size + j
        new = self._known.missing(keys)
        self._known.add(new, pair_entries(self.left, self.right, *np.divmod(new, self.size)))
        return np.asarray(self._known[keys] + sparse_entries(self.extra, i, j))

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return the diagonal blocks of the components, one after the other in a flat array."""
        ends = cut(bounds[1:], block_rows(self.right.shape[1]))
        groups, pieces = [], []
        for a, b in pairwise(np.searchsorted(bounds, [0, *ends])):
            items = order[bounds[a] : bounds[b]]
            extra = None if self.extra is None else self.extra[items][:, items]
            own = slice(a, b + 1)
            groups.append(items)
            pieces.append((bounds[own] - bounds[a], offsets[own] - offsets[a], extra))
        blocks = self.left.map_two_groups(
            _component_blocks, None, groups, self.right, groups, pieces
        )
        return np.concatenate([*blocks, np.zeros(0)])

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level``, tile by tile."""
        n_rows = self.size if n_rows is None else n_rows
        found = search_upper(self.left, self.right, level, n_rows)
        return large_with_sparse(found, self.extra, self.entries, level, n_rows)

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "MixedGram":
        """Return the leading rows of ``N G N' + extra``, N the rows of `mix` and then `rest`."""
        return MixedGram(self.left, self.right, mix, rest, extra)


class MixedGram:
    """The leading rows of ``N left right' N' + extra``, N a sparse `mix` over unit rows `rest`.

    The mixed rows are computed and kept once, in an order that has the components of `mix`
    together; the rest is read where it is. Of a Gram it has only what leading rows are asked for.
    """

    def __init__(
        self, left: Rows, right: Rows, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array
    ):
        self._right = right
        self._rest = rest
        self._n_mixed = mix.shape[0]
        label = _components(mix)
        order = np.argsort(label, kind="stable")
        self._place = np.argsort(order)
        self._numbers = np.concatenate([order, np.arange(self._n_mixed, self.size)])
        mix, label = sp.csr_array(mix)[order], label[order]
        # Rows that stand together use the same rows: blocks end where a component does.
        bounds = [0, *cut(_run_ends(label), block_rows(right.shape[1]))]
        self._mixed_left, self._mixed_right = (rows.mixed(mix, bounds) for rows in (left, right))
        self.extra: sp.csr_array | None = extra

    @property
    def size(self) -> int:
        """Return the number of items."""
        return int(self._n_mixed + len(self._rest))

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries, i among the mixed rows."""
        values = np.empty(len(i))
        inside = j < self._n_mixed
        first, second = self._place[i], j.copy()
        second[inside] = self._place[j[inside]]
        second[~inside] = self._rest[j[~inside] - self._n_mixed]
        for chosen, right in ((inside, self._mixed_right), (~inside, self._right)):
            values[chosen] = pair_entries(self._mixed_left, right, first[chosen], second[chosen])
        return np.asarray(values + sparse_entries(self.extra, i, j))

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries above the diagonal with ``|entry| > level`` in the mixed rows."""
        found = (
            search_upper(self._mixed_left, self._mixed_right, level, self._n_mixed),
            search_beside(self._mixed_left, self._right, level, *self._rest_of_blocks()),
        )
        i, j, value = (np.concatenate(parts) for parts in zip(*found, strict=True))
        first, second = self._numbers[i], self._numbers[j]
        pairs = Pairs(np.minimum(first, second), np.maximum(first, second), value)
        return large_with_sparse(pairs, self.extra, self.entries, level, self._n_mixed)

    def _rest_of_blocks(self) -> tuple[list[int], list[IntArray]]:
        """For every block: the number in N of its first row of the rest, and their places."""
        starts = np.array([part.start for part in self._right.parts])
        bounds = np.searchsorted(self._rest, [*starts, self._right.shape[0]])
        chosen = [
            self._rest[a:b] - start for start, (a, b) in zip(starts, pairwise(bounds), strict=True)
        ]
        return [int(self._n_mixed + a) for a in bounds[:-1]], chosen


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


def search_upper(left: Rows, right: Rows, level: float, n_rows: int) -> Pairs:
    """Return the large entries above the diagonal in the first rows of ``left right'``."""
    pairs, corners = [], []
    for b, part in enumerate(left.parts):
        length = min(part.stop, n_rows) - part.start
        for c in range(b, len(right.parts) if length > 0 else 0):
            pairs.append((b, c))
            corners.append(Corner(part.start, length, right.parts[c].start, None))
    return joined(left.map_corners(_large, level, right, pairs, corners))


def search_beside(
    left: Rows, right: Rows, level: float, firsts: list[int], chosen: list[IntArray]
) -> Pairs:
    """Return the large entries of ``left right'`` in chosen rows of right.

    The chosen rows of block c of right are numbered from ``firsts[c]`` on.
    """
    pairs, corners = [], []
    for b, part in enumerate(left.parts):
        for c, cols in enumerate(chosen):
            if len(cols) > 0:
                pairs.append((b, c))
                corners.append(Corner(part.start, part.stop - part.start, firsts[c], cols))
    return joined(left.map_corners(_large, level, right, pairs, corners))


def pair_entries(left: Rows, right: Rows, i: IntArray, j: IntArray) -> FloatArray:
    """Return ``left_i' right_j`` of the listed pairs, some at a time in the order of i."""
    order = np.lexsort((j, i))
    groups, others, places = [], [], []
    for part in slices(len(order), block_rows(left.shape[1])):
        first, a = np.unique(i[order[part]], return_inverse=True)
        second, b = np.unique(j[order[part]], return_inverse=True)
        groups.append(first)
        others.append(second)
        places.append((a, b))
    found = left.map_two_groups(_pair_entries, None, groups, right, others, places)
    values = np.empty(len(i))
    values[order] = np.concatenate([*found, np.zeros(0)])
    return values


def component_groups(
    precision: sp.csr_array, width: int
) -> tuple[list[IntArray], list[sp.csr_array]]:
    """Cut items into groups of about a block that hold whole components of a graph.

    Returns the items of every group and the precision among them: with all of a component at
    hand, products with the precision need no other rows.
    """
    label = label_components(precision)
    order = np.argsort(label, kind="stable")
    ordered = precision[order][:, order]
    bounds = [0, *cut(_run_ends(label[order]), block_rows(width))]
    pieces = [slice(a, b) for a, b in pairwise(bounds)]
    return [order[piece] for piece in pieces], [ordered[piece][:, piece] for piece in pieces]


def cut(ends: IntArray, length: int) -> list[int]:
    """Choose from the ends of consecutive runs those where groups of at most `length` items end.

    A run that is longer is a group of its own.
    """
    chosen: list[int] = []
    start = 0
    while len(ends) > 0 and start < ends[-1]:
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, start + length, side="right")) - 1
        start = int(ends[max(first, last)])
        chosen.append(start)
    return chosen


def _run_ends(labels: IntArray) -> IntArray:
    """Return where runs of equal labels end."""
    return np.flatnonzero(np.diff(labels, append=-1)) + 1


def _components(mix: sp.csr_array) -> IntArray:
    """Label the rows of a sparse matrix so that rows with a column in common agree."""
    n_rows = mix.shape[0]
    both_sides = sp.block_array([[None, mix], [mix.T, None]], format="csr")
    return label_components(both_sides)[:n_rows]


def _scale(rows: FloatArray, _: None, weights: FloatArray) -> FloatArray:
    return rows * weights[:, None]


def _diagonal(left: FloatArray, right: FloatArray, _: None) -> FloatArray:
    return np.einsum("ij,ij->i", left, right).astype(np.float64)


def _pair_entries(
    left: FloatArray, right: FloatArray, _: None, places: tuple[IntArray, IntArray]
) -> FloatArray:
    return np.asarray(_kernels.pair_dots(left, right, *places))


def _component_blocks(
    left: FloatArray,
    right: FloatArray,
    _: None,
    piece: tuple[IntArray, IntArray, sp.csr_array | None],
) -> FloatArray:
    bounds, offsets, extra = piece
    gram = FactorGram(left, right, extra)
    return gram.component_blocks(np.arange(len(left)), bounds, offsets)


def _large(left: FloatArray, right: FloatArray, level: float, corner: Corner) -> Pairs:
    """Return the large entries of ``left right'``, tile by tile."""
    if corner.cols is not None:
        right = right[corner.cols]
    found: list[Pairs] = []
    for a in slices(corner.n_rows, TILE):
        for c in slices(len(right), TILE):
            i, j = corner.first_row + a.start, corner.first_col + c.start
            if j + TILE > i:  # not below the diagonal
                found += pick(left[a] @ right[c].T, i, j, level)
    return joined(found)
