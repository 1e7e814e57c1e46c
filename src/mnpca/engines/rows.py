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
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._components import label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines import _kernels
from mnpca.engines.arrays import Array, astype, empty, like, pieces, sparse_times, to_numpy
from mnpca.engines.base import Pairs, Weights, joined
from mnpca.engines.threads import slices, stream

#: Rows of a pass over a matrix in memory, and rows and columns of a tile in a search. Sums in
#: float32 are over so many rows; the sums of these are in float64.
BLOCK = 1024
#: Bytes of a block of rows that are not in memory; a few of these are there per thread.
BLOCK_BYTES = 16 * 2**20
#: With so many times more rows than columns the Gram matrix of the columns is formed.
TALL = 4

Function: TypeAlias = Callable[..., Any]
Where: TypeAlias = slice | IntArray
"""Rows by number, or one of `Rows.parts`."""


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
    def map_groups(
        self, function: Function, shared: Any, groups: Sequence[Where], *along: Iterable[Any]
    ) -> list[Any]:
        """Return ``function(rows of the group, shared, ...)``; `along` has an object per group."""

    @abstractmethod
    def total_groups(
        self, function: Function, shared: Any, groups: Sequence[Where], *along: Iterable[Any]
    ) -> Any:
        """Return the sum of what `map_groups` lists, in float64."""

    @abstractmethod
    def map_pairs(
        self,
        function: Function,
        shared: Any,
        other: Any,
        pairs: Sequence[tuple[Where, Where]],
        *along: Iterable[Any],
    ) -> list[Any]:
        """As `map_groups`, with rows of this matrix and rows of another one for every call."""

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
        return self.map_groups(function, shared, self.parts, *self._cut(along))

    def total(self, function: Function, shared: Any, *along: Any) -> Any:
        """Return the sum of ``function(block, shared, ...)`` over the blocks, in float64."""
        return self.total_groups(function, shared, self.parts, *self._cut(along))

    def total_weighted(self, function: Function, shared: Any, precision: Weights) -> Any:
        """Return the sum of ``function(Z_g, (P Z)_g, shared)`` over groups g of rows."""
        if not sp.issparse(precision):
            return self.total(_weigh, (function, shared), self.beside(precision))
        groups, blocks = component_groups(precision, block_rows(self.shape[1]))
        return self.total_groups(_weigh, (function, shared), groups, blocks)

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

    def _cut(self, along: Iterable[Any]) -> list[list[Any]]:
        return [[array[part, ...] for part in self.parts] for array in along]


class LocalRows(Rows):
    """Rows that this process reads, in the threads of `worker_threads`."""

    run = staticmethod(stream)
    """Yields a function of every piece in order."""

    @abstractmethod
    def read(self, where: Where) -> Array:
        """Return rows."""

    def map_groups(self, function, shared, groups, *along):
        return list(self._on_groups(function, shared, groups, along))

    def total_groups(self, function, shared, groups, *along):
        return add_up(self._on_groups(function, shared, groups, along))

    def map_pairs(self, function, shared, other, pairs, *along):
        def call(piece: Any) -> Any:
            (first, second), *own = piece
            return function(self.read(first), other.read(second), shared, *own)

        return list(self.run(call, zip(pairs, *along, strict=True)))

    def stream(self):
        return (to_numpy(self.read(part)) for part in self.parts)

    def _on_groups(self, function: Function, shared: Any, groups: Any, along: Any) -> Iterator[Any]:
        def call(piece: Any) -> Any:
            group, *own = piece
            return function(self.read(group), shared, *own)

        return self.run(call, zip(groups, *along, strict=True))


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


def _weigh(rows: Array, task: tuple[Function, Any], precision: Any) -> Any:
    function, shared = task
    if sp.issparse(precision):
        return function(rows, precision.astype(rows.dtype) @ rows, shared)
    return function(rows, precision[:, None] * rows, shared)


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
                found.append(_pick(left[a] @ right[c].T, i, j, level))
    return joined(found)


def _pick(tile: FloatArray, i0: int, j0: int, level: float) -> Pairs:
    """Return the large entries of one tile whose first entry is (i0, j0)."""
    count = capacity = 60 * BLOCK
    while count >= capacity:
        capacity = count + 1
        i, j = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        value = np.empty(capacity)
        count = _kernels.pick_large(tile, i0, j0, level, i, j, value)
    return Pairs(i[:count].copy(), j[:count].copy(), value[:count].copy())
