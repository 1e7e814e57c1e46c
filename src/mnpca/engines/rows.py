"""A tall matrix as blocks of rows, and functions applied to them wherever the blocks are.

The chunked engine is written once, against `Rows`. `LocalRows` reads blocks from an array, usually
a memory-mapped file, and computes in this process; `mnpca.engines.dask_rows` leaves both to Dask.
A function gets the rows of one block (or rows gathered from anywhere) as an ndarray, then one
`shared` object, then its own share of each array in `along`.
"""

import functools
import operator
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.threads import each, slices, stream

#: Bytes of one block that is read from a file; a few of these are in memory per thread.
BLOCK_BYTES = 16 * 2**20
#: Blocks hold a multiple of this many rows, the length of a sum in float32.
ROW_UNIT = 1024

Function: TypeAlias = Callable[..., Any]
Corner: TypeAlias = tuple[int, int]


class Rows(Protocol):
    """The rows of an n x m matrix in blocks."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    parts: list[slice]
    """The rows of every block."""

    def map(self, function: Function, shared: Any, *along: Any) -> list[Any]:
        """Return ``function(block, shared, ...)`` of every block."""

    def total(self, function: Function, shared: Any, *along: Any) -> Any:
        """Return the sum of ``function(block, shared, ...)`` over the blocks."""

    def map_groups(
        self, function: Function, shared: Any, groups: list[IntArray], *along: Sequence[Any]
    ) -> list[Any]:
        """Return ``function(rows of the group, shared, ...)`` of every group of row numbers.

        `along` holds one object per group here.
        """

    def total_groups(
        self, function: Function, shared: Any, groups: list[IntArray], *along: Sequence[Any]
    ) -> Any:
        """Return the sum of what `map_groups` lists."""

    def map_two_groups(
        self,
        function: Function,
        shared: Any,
        groups: list[IntArray],
        other: "Rows",
        other_groups: list[IntArray],
        *along: Sequence[Any],
    ) -> list[Any]:
        """As `map_groups`, with rows of this matrix and rows of another one for every call."""

    def map_corners(
        self,
        function: Function,
        shared: Any,
        other: "Rows",
        corners: list[Corner],
        *along: Sequence[Any],
    ) -> list[Any]:
        """Return ``function(block b, other's block c, shared, ...)`` for every corner (b, c).

        `along` holds one object per corner. The corners come sorted.
        """

    def stream(self) -> Iterator[FloatArray]:
        """Yield the blocks in order."""

    def kept(self, function: Function, shared: Any, dtype: npt.DTypeLike) -> "Rows":
        """Return the rows ``function(rows, shared)``, computed once and kept."""

    def derived(self, width: int, function: Function, shared: Any, *along: Any) -> "Rows":
        """Return the rows ``function(rows, shared, ...)``, computed whenever they are read."""

    def mixed(self, mix: sp.csr_array, bounds: list[int]) -> "Rows":
        """Return the rows ``mix Z`` for a sparse `mix`, in blocks with the given bounds."""


class LocalRows:
    """Rows of an array, read block by block in the threads of `worker_threads`."""

    in_memory = False
    """Whether rows are cheap to read anew, so that what is derived from them is never stored."""

    def __init__(self, matrix: FloatArray):
        self.shape: tuple[int, int] = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype
        self.parts = slices(len(matrix), block_rows(matrix.shape[1]))
        self._matrix = matrix

    def read(self, where: slice | IntArray) -> FloatArray:
        """Return rows; a slice of them without a copy."""
        return np.asarray(self._matrix[where])

    def map(self, function, shared, *along):  # noqa: D102 - see Rows
        return each(self._on_part(function, shared, along), self.parts)

    def total(self, function, shared, *along):  # noqa: D102 - see Rows
        return _sum(stream(self._on_part(function, shared, along), self.parts))

    def map_groups(self, function, shared, groups, *along):  # noqa: D102 - see Rows
        call = self._on_group(function, shared)
        return each(call, zip(groups, *along, strict=True))

    def total_groups(self, function, shared, groups, *along):  # noqa: D102 - see Rows
        call = self._on_group(function, shared)
        return _sum(stream(call, zip(groups, *along, strict=True)))

    def map_two_groups(  # noqa: D102 - see Rows
        self, function, shared, groups, other, other_groups, *along
    ):
        def call(piece):
            group, other_group, *rest = piece
            return function(self.read(group), other.read(other_group), shared, *rest)

        return each(call, zip(groups, other_groups, *along, strict=True))

    def map_corners(self, function, shared, other, corners, *along):  # noqa: D102 - see Rows
        strips: dict[int, list[tuple[Any, ...]]] = {}
        for (b, c), *rest in zip(corners, *along, strict=True):
            strips.setdefault(b, []).append((c, *rest))

        def search(b: int) -> list[Any]:
            block = self.read(self.parts[b])  # once for the whole strip
            return [
                function(block, other.read(other.parts[c]), shared, *rest) for c, *rest in strips[b]
            ]

        return [result for strip in each(search, strips) for result in strip]

    def stream(self):  # noqa: D102 - see Rows
        return map(self.read, self.parts)

    def kept(self, function, shared, dtype):  # noqa: D102 - see Rows
        if self.in_memory:
            return DerivedRows(self, self.shape[1], function, shared, (), dtype)
        matrix = scratch(self.shape, dtype)

        def fill(part: slice) -> None:
            matrix[part] = function(self.read(part), shared)

        each(fill, self.parts)
        return LocalRows(matrix)

    def derived(self, width, function, shared, *along):  # noqa: D102 - see Rows
        return DerivedRows(self, width, function, shared, along)

    def mixed(self, mix, bounds):  # noqa: D102 - see Rows
        rows = _MixedRows(self, mix, bounds)
        return rows.kept(as_given, None, self.dtype)

    def _on_part(self, function: Function, shared: Any, along: Sequence[Any]) -> Function:
        return lambda part: function(self.read(part), shared, *(array[part] for array in along))

    def _on_group(self, function: Function, shared: Any) -> Function:
        return lambda piece: function(self.read(piece[0]), shared, *piece[1:])


class DerivedRows(LocalRows):
    """Rows computed from other rows at every reading: nothing of their size is stored."""

    def __init__(
        self,
        base: LocalRows,
        width: int,
        function: Function,
        shared: Any,
        along: Sequence[Any],
        dtype: npt.DTypeLike = None,
    ):
        self.shape = (base.shape[0], width)
        self.dtype = base.dtype if dtype is None else np.dtype(dtype)
        self.parts = base.parts
        self.in_memory = base.in_memory
        self._base = base
        self._function = function
        self._shared = shared
        self._along = along

    def read(self, where: slice | IntArray) -> FloatArray:
        """Return rows."""
        along = (array[where] for array in self._along)
        rows: FloatArray = self._function(self._base.read(where), self._shared, *along)
        return rows


class _MixedRows(LocalRows):
    """Sparse mixtures of other rows, computed at every reading."""

    def __init__(self, base: LocalRows, mix: sp.csr_array, bounds: list[int]):
        self.shape = (mix.shape[0], base.shape[1])
        self.dtype = base.dtype
        self.parts = [slice(a, b) for a, b in pairwise(bounds)]
        self.in_memory = base.in_memory
        self._base = base
        self._mix = mix

    def read(self, where: slice | IntArray) -> FloatArray:
        """Return rows."""
        used, mix = used_columns(self._mix[where].astype(self.dtype))
        return np.asarray(mix @ self._base.read(used))


def used_columns(matrix: sp.csr_array) -> tuple[IntArray, sp.csr_array]:
    """Return the columns of a sparse matrix that have an entry, and the matrix of these."""
    used, place = np.unique(matrix.indices, return_inverse=True)
    shape = (matrix.shape[0], len(used))
    return used, sp.csr_array((matrix.data, place, matrix.indptr), shape=shape)


def block_rows(width: int) -> int:
    """Return how many rows of float32 numbers make a block."""
    units = BLOCK_BYTES // (4 * max(width, 1) * ROW_UNIT)
    return max(int(units), 1) * ROW_UNIT


def scratch(shape: tuple[int, int], dtype: npt.DTypeLike) -> FloatArray:
    """Return an array in a nameless file in the folder for temporary files.

    The file goes with the array, or with the process.
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="mnpca-") as file:
        return np.memmap(file, dtype, "w+", shape=shape)


def as_given(rows: FloatArray, _: None) -> FloatArray:
    """Return the rows; whoever keeps them may change their type."""
    return rows


def _sum(terms: Any) -> Any:
    return functools.reduce(operator.iadd, terms)
