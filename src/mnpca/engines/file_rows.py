"""Rows that are computed when they are read: from a mapped file, or from other such rows.

Memory is bounded by a few blocks. What is kept goes to a nameless file.
"""

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.rows import Function, LocalRows, Where, block_rows
from mnpca.engines.threads import each, slices


class LazyRows(LocalRows):
    """Rows that are not in memory."""

    in_memory = False
    """Whether rows are cheap to read anew, so that what is derived from them is never stored."""

    def kept(self, function, shared, dtype):
        if self.in_memory:
            return DerivedRows(self, self.shape[1], function, shared, (), dtype)
        matrix = scratch(self.shape, dtype)

        def fill(part: slice) -> None:
            matrix[part] = function(self.read(part), shared)

        each(fill, self.parts)
        return FileRows(matrix)

    def derived(self, width, function, shared, *along):
        return DerivedRows(self, width, function, shared, along)

    def filtered(self, mix, rest):
        return FilteredRows(self, mix, rest)


class FileRows(LazyRows):
    """Rows of a memory-mapped array."""

    def __init__(self, matrix: FloatArray):
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = matrix.dtype
        self.parts = slices(len(matrix), block_rows(matrix.shape[1]))
        self._mapped = matrix

    def read(self, where: Where) -> FloatArray:
        return np.asarray(self._mapped[where])


class DerivedRows(LazyRows):
    """Rows computed from other rows at every reading: nothing of their size is stored."""

    def __init__(
        self,
        base: LazyRows,
        width: int,
        function: Function,
        shared: Any,
        along: Sequence[Any],
        dtype: str | None = None,
    ):
        self.shape = (base.shape[0], width)
        self.dtype = base.dtype if dtype is None else np.dtype(dtype)
        self.parts = base.parts
        self.in_memory = base.in_memory
        self._base = base
        self._call = (function, shared, along)

    def read(self, where: Where) -> FloatArray:
        function, shared, along = self._call
        own = (array[where] for array in along)
        rows: FloatArray = function(self._base.read(where), shared, *own)
        return rows


class FilteredRows(LazyRows):
    """Sparse mixtures of other rows, kept where these are not in memory, and then some of these."""

    def __init__(self, base: LazyRows, mix: sp.csr_array, rest: IntArray):
        n_mixed, width = mix.shape[0], base.shape[1]
        self.shape = (n_mixed + len(rest), width)
        self.dtype = base.dtype
        self.in_memory = base.in_memory
        self._base, self._mix, self._rest = base, mix.astype(base.dtype), rest
        starts = np.searchsorted(rest, [0, *(part.stop for part in base.parts)])
        mixed = slices(n_mixed, block_rows(width))
        others = [slice(n_mixed + a, n_mixed + b) for a, b in pairwise(starts) if b > a]
        self.parts = mixed + others
        self._kept: FloatArray | None = None
        if not base.in_memory:
            kept = scratch((n_mixed, width), base.dtype)

            def fill(part: slice) -> None:
                kept[part] = self._mixtures(part)

            each(fill, mixed)
            self._kept = kept

    def read(self, where: Where) -> FloatArray:
        n_mixed = self._mix.shape[0]
        items = np.arange(self.shape[0])[where]
        above = items < n_mixed
        others = self._base.read(self._rest[items[~above] - n_mixed])
        if not above.any():
            return others
        mixed = self._mixtures(items[above])
        if above.all():
            return mixed
        rows = np.empty((len(items), self.shape[1]), self.dtype)
        rows[above], rows[~above] = mixed, others
        return rows

    def _mixtures(self, where: Where) -> FloatArray:
        if self._kept is not None:
            return np.asarray(self._kept[where])
        used, mix = used_columns(self._mix[where])
        return np.asarray(mix @ self._base.read(used))


def used_columns(matrix: sp.csr_array) -> tuple[IntArray, sp.csr_array]:
    """Return the columns of a sparse matrix that have an entry, and the matrix of these."""
    used, place = np.unique(matrix.indices, return_inverse=True)
    shape = (matrix.shape[0], len(used))
    return used, sp.csr_array((matrix.data, place, matrix.indptr), shape=shape)


def scratch(shape: tuple[int, int], dtype: Any) -> FloatArray:
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
