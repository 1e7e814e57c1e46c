"""Rows that are computed when they are read: from a mapped file, or from other such rows.

Memory is bounded by a few blocks. What is kept goes to a nameless file.
"""

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.rows import Function, LocalRows, Where, block_rows
from mnpca.engines.threads import each, slices


class LazyRows(LocalRows):
    """Rows that are not in memory."""

    def kept(self, function, shared, dtype):
        matrix = scratch(self.shape, dtype)

        def fill(part: slice) -> None:
            matrix[part] = function(self.read(part), shared)

        each(fill, self.parts)
        return FileRows(matrix)

    def derived(self, width, function, shared, *along):
        return DerivedRows(self, width, function, shared, along)

    def filtered(self, mix, rest):
        width = self.shape[1]
        matrix = scratch((mix.shape[0] + len(rest), width), self.dtype)

        def fill(part: slice) -> None:
            used, weights = used_columns(mix[part].astype(self.dtype))
            matrix[part] = weights @ self.read(used)

        def copy(part: slice) -> None:
            matrix[mix.shape[0] :][part] = self.read(rest[part])

        each(fill, slices(mix.shape[0], block_rows(width)))
        each(copy, slices(len(rest), block_rows(width)))
        return FileRows(matrix)


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
    ):
        self.shape = (base.shape[0], width)
        self.dtype = base.dtype
        self.parts = base.parts
        self._base = base
        self._call = (function, shared, along)

    def read(self, where: Where) -> FloatArray:
        function, shared, along = self._call
        own = (array[where] for array in along)
        rows: FloatArray = function(self._base.read(where), shared, *own)
        return rows


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
