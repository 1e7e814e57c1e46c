"""A matrix as rows in blocks, and functions applied to them wherever the blocks are.

The engine and the Gram matrices of residuals are written once, against `Rows`. A function gets the
rows of one block (or rows gathered from anywhere) as an array, then one `shared` object, then its
own share of each array in `along`. `ArrayRows` is a NumPy array in memory; `device_rows`,
`file_rows`, `dask_rows` and `sparse` have the others.
"""

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._components import label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels
from mnpca.engines.arrays import (
    Array,
    astype,
    empty,
    indices,
    like,
    namespace,
    pieces,
    sparse_times,
    to_numpy,
)
from mnpca.engines.threads import slices, stream

#: Rows of a pass over a matrix in memory, and rows and columns of a tile in a search. Sums in
#: float32 are over so many rows; the sums of these are in float64.
BLOCK = 1024
#: Bytes of a block of rows that are not in memory; a few of these are there per thread.
BLOCK_BYTES = 16 * 2**20
#: With so many times more rows than columns the Gram matrix of the columns is formed.
TALL = 4

Weights: TypeAlias = FloatArray | sp.csr_array
"""A precision: its diagonal where it has nothing else, otherwise CSR."""
Function: TypeAlias = Callable[..., Any]
Where: TypeAlias = slice | IntArray
"""Rows by number, or one of `Rows.parts`."""
Source: TypeAlias = Sequence[tuple["Rows", Where]]
"""What one call gets: rows of one matrix, or of several."""


class Pairs(NamedTuple):
    """Entries (i, j), i < j, of a symmetric matrix."""

    i: IntArray
    j: IntArray
    value: FloatArray


class Rows(ABC):
    """The rows of an n x m matrix Z in blocks."""

    shape: tuple[int, int]
    dtype: Any
    parts: list[slice]
    """The rows of every block."""
    matrix: Array = None
    """Z, where it is one array."""

    @property
    def forms_rows(self) -> bool:
        """Tell whether Gram matrices among rows are formed as arrays."""
        return False

    @property
    def forms_columns(self) -> bool:
        """Tell whether Gram matrices among columns are formed as arrays."""
        return True

    @abstractmethod
    def calls(
        self, function: Function, shared: Any, sources: Iterable[Source], along: Iterable[Any]
    ) -> Any:
        """Prepare ``function(rows, ..., shared, ...)`` for the rows of every source."""

    @abstractmethod
    def results(self, calls: Any) -> list[Any]:
        """Return what the calls return."""

    @abstractmethod
    def total_of(self, calls: Any) -> Any:
        """Return the sum of what the calls return, in float64."""

    @abstractmethod
    def stream(self) -> Iterator[FloatArray]:
        """Yield the blocks in order, as NumPy arrays."""

    @abstractmethod
    def kept(self, function: Function, shared: Any, dtype: str) -> "Rows":
        """Return the rows ``function(rows, shared)``, computed once and kept."""

    @abstractmethod
    def derived(self, width: int, function: Function, shared: Any, *along: Any) -> "Rows":
        """Return the rows ``function(rows, shared, ...)`` of the given width."""

    @abstractmethod
    def filtered(self, mix: sp.csr_array, rest: IntArray) -> "Rows":
        """Return the rows ``mix Z``, and then the rows `rest` (rising) of Z."""

    def map(self, function: Function, shared: Any, *along: Any) -> list[Any]:
        """Return ``function(block, shared, ...)`` of every block."""
        return self.results(self._on_groups(function, shared, self.parts, self._cut(along)))

    def stacked(self, function: Function, shared: Any, *along: Any) -> FloatArray:
        """Return what a function returns of every block, one under the other."""
        return np.concatenate(self.map(function, shared, *along))

    def map_pairs(
        self,
        function: Function,
        shared: Any,
        other: "Rows",
        pairs: Iterable[tuple[Where, Where]],
        *along: Any,
    ) -> list[Any]:
        """Return ``function(rows, rows of another matrix, shared, ...)`` of every pair."""
        sources = [((self, first), (other, second)) for first, second in pairs]
        return self.results(self.calls(function, shared, sources, along))

    def gathered(self, function: Function, shared: Any, where: Where) -> Any:
        """Return ``function(rows, shared)`` of some rows."""
        return self.results(self._on_groups(function, shared, [where], ()))[0]

    def total(self, function: Function, shared: Any, *along: Any) -> Any:
        """Return the sum of ``function(block, shared, ...)`` over the blocks, in float64."""
        return self.total_of(self._on_groups(function, shared, self.parts, self._cut(along)))

    def total_weighted(
        self, function: Function, shared: Any, precision: Weights, *along: Any
    ) -> Any:
        """Return the sum of ``function(Z_g, shared, P_g, ...)`` over groups g of rows.

        The precision P links no rows of different groups.
        """
        if not sp.issparse(precision):
            return self.total(function, shared, self.beside(precision), *along)
        groups, blocks = component_groups(precision, block_rows(self.shape[1]))
        own = [blocks, *(map(array.__getitem__, groups) for array in along)]
        return self.total_of(self._on_groups(function, shared, groups, own))

    def beside(self, array: Any, dtype: str | None = None) -> Any:
        """Return an array in the type of the rows, or a given one, where the rows are.

        A sparse precision may stay as it is.
        """
        return array if sp.issparse(array) else np.asarray(array, dtype=dtype or self.dtype)

    def rescaled(self, weights: FloatArray) -> "Rows":
        """Return the rows, each multiplied by its weight; a matrix in memory is changed."""
        return self.derived(self.shape[1], _rescale, None, weights.astype(self.dtype))

    def products(self, other: Any, i: IntArray, j: IntArray) -> FloatArray:
        """Return ``z_i' w_j`` of the listed pairs, w the rows of another matrix."""
        order = np.lexsort((j, i))
        pairs, places = [], []
        for part in slices(len(order), block_rows(self.shape[1])):
            first, a = np.unique(i[order[part]], return_inverse=True)
            second, b = np.unique(j[order[part]], return_inverse=True)
            pairs.append((first, second))
            places.append((a, b))
        found = self.map_pairs(_pair_products, None, other, pairs, places)
        values = np.empty(len(i))
        values[order] = np.concatenate([*found, np.zeros(0)])
        return values

    def large_products(self, other: Any, level: float) -> Pairs:
        """Return the entries of ``Z W'`` above the diagonal with ``|entry| > level``.

        One tile at a time is formed.
        """
        pairs = [
            (part, across)
            for part in self.parts
            for across in other.parts
            if across.stop > part.start
        ]
        corners = [(part.start, across.start) for part, across in pairs]
        return joined(self.map_pairs(_large_products, level, other, pairs, corners))

    def _on_groups(
        self, function: Function, shared: Any, groups: Iterable[Where], along: Iterable[Any]
    ) -> Any:
        return self.calls(function, shared, [[(self, group)] for group in groups], along)

    def _cut(self, along: Iterable[Any]) -> list[list[Any]]:
        return [[array[part, ...] for part in self.parts] for array in along]


class LocalRows(Rows):
    """Rows that this process reads, in the threads of `worker_threads`."""

    run = staticmethod(stream)
    """Yields a function of every piece in order."""

    @abstractmethod
    def read(self, where: Where) -> Array:
        """Return rows."""

    def calls(self, function, shared, sources, along):
        def call(piece: Any) -> Any:
            source, *own = piece
            return function(*(rows.read(where) for rows, where in source), shared, *own)

        return self.run(call, zip(sources, *along, strict=True))

    def results(self, calls):
        return list(calls)

    def stacked(self, function, shared, *along):
        # One array, never the list of blocks beside it.
        out = None
        found = self._on_groups(function, shared, self.parts, self._cut(along))
        for part, values in zip(self.parts, found, strict=True):
            if out is None:
                out = np.empty((self.shape[0], *values.shape[1:]), values.dtype)
            out[part] = values
        return out

    def total_of(self, calls):
        return add_up(calls)

    def stream(self):
        return (to_numpy(self.read(part)) for part in self.parts)


class ArrayRows(LocalRows):
    """A NumPy array in memory. What is derived from it is computed at once."""

    def __init__(self, matrix: Array):
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype
        self.parts = slices(self.shape[0], BLOCK)

    @property
    def forms_columns(self) -> bool:
        return self.shape[0] >= TALL * self.shape[1]

    def transposed(self) -> "ArrayRows":
        """Return the columns as rows."""
        return type(self)(self.matrix.T)

    def read(self, where):
        return self.matrix[where]

    def kept(self, function, shared, dtype):
        return self._computed(self.shape[1], dtype, function, shared)

    def derived(self, width, function, shared, *along):
        return self._computed(width, None, function, shared, *along)

    def _computed(
        self, width: int, dtype: str | None, function: Function, shared: Any, *along: Any
    ) -> Any:
        """Return the rows of a function, with columns of zeros where the array is to be wider."""
        out = empty((self.shape[0], self.aligned(width)), self.matrix, dtype)
        out[:, width:] = 0

        def fill(piece: Any) -> None:
            part, *own = piece
            out[part, :width] = function(self.read(part), shared, *own)

        list(self.run(fill, zip(self.parts, *self._cut(along), strict=True)))
        return type(self)(out)

    def aligned(self, width: int) -> int:
        """Return how wide an array for so many columns is."""
        return width

    def filtered(self, mix, rest):
        n_mixed, width = mix.shape[0], self.shape[1]
        out = empty((n_mixed + len(rest), width), self.matrix)
        out[:n_mixed, :] = sparse_times(mix, self.matrix)
        for part in pieces(len(rest), width):
            out[n_mixed + part.start : n_mixed + part.stop, :] = self.read(rest[part])
        return type(self)(out)

    def rescaled(self, weights):
        self.matrix *= like(weights, self.matrix)[:, None]
        return self

    def products(self, other, i, j):
        return np.asarray(_kernels.pair_dots(self.matrix, other.matrix, i, j))


def add_up(terms: Iterable[Any]) -> Any:
    """Add up arrays, or numbers, in float64."""
    terms = iter(terms)
    first = next(terms)
    # The first one may be a temporary in float64 already.
    first = first if isinstance(first, float) else astype(first, "float64")
    return functools.reduce(operator.iadd, terms, first)


def joined(found: Sequence[Pairs]) -> Pairs:
    """Return several lists of entries as one."""
    nobody = np.zeros(0, np.int64)
    lists = zip(Pairs(nobody, nobody, np.zeros(0)), *found, strict=True)
    return Pairs(*(np.concatenate(parts) for parts in lists))


def block_rows(width: int) -> int:
    """Return how many rows of float32 numbers make a block that is not in memory."""
    units = BLOCK_BYTES // (4 * max(width, 1) * BLOCK)
    return max(int(units), 1) * BLOCK


def component_groups(
    precision: sp.csr_array, length: int
) -> tuple[list[IntArray], list[sp.csr_array]]:
    """Cut items into groups of about `length` that hold whole components of a graph.

    Returns the items of every group and the precision among them: with all of a component at
    hand, products with the precision need no other rows.
    """
    label = label_components(precision)
    order = np.argsort(label, kind="stable")
    ordered = precision[order][:, order]
    ends = np.flatnonzero(np.diff(label[order], append=-1)) + 1
    pieces = [slice(a, b) for a, b in pairwise([0, *cut(ends, length)])]
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


def _rescale(rows: FloatArray, _: None, weights: FloatArray) -> FloatArray:
    return rows * weights[:, None]


def _pair_products(
    left: FloatArray, right: FloatArray, _: None, places: tuple[IntArray, IntArray]
) -> FloatArray:
    return np.asarray(_kernels.pair_dots(left, right, *places))


def _large_products(
    left: FloatArray, right: FloatArray, level: float, corner: tuple[int, int]
) -> Pairs:
    found: list[Pairs] = []
    for a in slices(len(left), BLOCK):
        for c in slices(len(right), BLOCK):
            i, j = corner[0] + a.start, corner[1] + c.start
            if j + BLOCK > i:  # not below the diagonal
                found.append(large_in_tile(left[a] @ right[c].T, i, j, level))
    return joined(found)


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
