"""What the solvers ask of the data matrix, wherever it lives.

Only the n x p matrix and its residuals belong to an engine. Everything thin (n x k, p x k, vectors,
k x k) goes in and comes out as float64 NumPy arrays on the host, and precisions as one-dimensional
arrays (a diagonal) or scipy CSR arrays, so that the solvers are the same for every engine.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray

Weights: TypeAlias = FloatArray | sp.csr_array
"""A precision: its diagonal where it has nothing else, otherwise CSR."""


class Pairs(NamedTuple):
    """Entries (i, j), i < j, of a symmetric matrix."""

    i: IntArray
    j: IntArray
    value: FloatArray


class Squares(Protocol):
    """Squared entries of an n x p matrix, summed with weights along either side."""

    def row_sums(self, col_weights: FloatArray) -> FloatArray:
        """Return ``sum_j w_j y_ij^2`` of every row i."""

    def col_sums(self, row_weights: FloatArray) -> FloatArray:
        """Return ``sum_i w_i y_ij^2`` of every column j."""


class Gram(Protocol):
    """A symmetric q x q matrix ``G + extra`` of which only the entries asked for are computed.

    G is a Gram matrix of residuals, such as ``R B R' + F spread F'``; `extra` is sparse.
    """

    extra: sp.csr_array | None

    @property
    def size(self) -> int:
        """Return the number of items q."""

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G (without `extra`)."""

    def rescale(self, weights: FloatArray) -> None:
        """Multiply row and column i of ``G + extra`` by ``weights[i]``, in place."""

    def entries(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the listed entries of ``G + extra``."""

    def component_blocks(self, order: IntArray, bounds: IntArray, offsets: IntArray) -> FloatArray:
        """Return diagonal blocks of ``G + extra``, one after the other in a flat array.

        Component c holds the items ``order[bounds[c]:bounds[c + 1]]`` and its block, row by row,
        lies at ``offsets[c]:offsets[c + 1]``.
        """

    def large_entries(self, level: float, n_rows: int | None = None) -> Pairs:
        """Return the entries (i, j), i < j, of ``G + extra`` with ``|entry| > level``.

        Only the rows ``i < n_rows`` are searched (all by default).
        """

    def filtered(self, mix: sp.csr_array, rest: IntArray, extra: sp.csr_array) -> "Gram":
        """Return the leading rows of ``N G N' + extra`` where N stacks `mix` on unit rows.

        `mix` is sparse, l x q; the other rows of N pick the items `rest` one by one. Only rows
        ``i < l`` of the result will be asked for (``large_entries`` with ``n_rows=l``, and
        ``entries`` with ``i < l``). `extra` is in the new order; the old `extra` is left out.
        """


def as_array(gram: Gram) -> FloatArray:
    """Return all entries of a small Gram matrix, with `extra`."""
    size = gram.size
    ends = np.array([[0, size], [0, size**2]])
    return gram.component_blocks(np.arange(size), *ends).reshape(size, size)


@runtime_checkable
class Engine(Protocol):
    """An n x p matrix Y and the operations on it that grow with n p."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest entry; not a number where any entry is none."""

    def column_means(self) -> FloatArray:
        """Return the mean row ``Y'1 / n``."""

    def column_mean_squares(self, offset: FloatArray) -> FloatArray:
        """Return the mean of ``(y_ij - offset_j)^2`` of every column j."""

    def standardized(self, offset: FloatArray, scale: FloatArray) -> "Engine":
        """Return an engine that holds ``(y_ij - offset_j) / scale_j`` in float32.

        An engine that reads its matrix in pieces does so piece by piece, without a copy.
        """

    def block(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Return the entries of the given rows and columns as a float64 array on the host."""

    def columns(self, cols: IntArray) -> "Engine":
        """Return an engine that holds the given columns."""

    def row_blocks(self) -> Iterator[FloatArray]:
        """Yield the rows in order as NumPy arrays of some rows each, in Y's own type."""

    def times(self, right: FloatArray) -> FloatArray:
        """Return ``Y V`` for a thin V."""

    def transposed_times(self, left: FloatArray) -> FloatArray:
        """Return ``Y' U`` for a thin U."""

    def squares(self) -> Squares:
        """Return the squared entries of Y."""

    def residual_squares(self, left: FloatArray, right: FloatArray) -> Squares:
        """Return the squared entries of ``Y - left right'``."""

    def weighted_norm(self, row_precision: Weights, col_precision: Weights) -> float:
        """Return ``tr(A Y B Y')``."""

    def row_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        col_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> Gram:
        """Return ``R B R' + thin spread thin'`` among rows, R = Y - left right'."""

    def col_gram(
        self,
        left: FloatArray,
        right: FloatArray,
        row_precision: Weights,
        thin: FloatArray,
        spread: FloatArray,
    ) -> Gram:
        """Return ``R' A R + thin spread thin'`` among columns, R = Y - left right'."""
