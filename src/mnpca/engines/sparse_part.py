"""The sparse part of a Gram matrix, added to what an engine computed of the rest."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.base import Pairs


def scaled(matrix: sp.csr_array | None, weights: FloatArray) -> sp.csr_array | None:
    """Multiply row and column i by ``weights[i]``."""
    if matrix is None:
        return None
    scale = sp.diags_array(weights)
    return sp.csr_array(scale @ matrix @ scale)


def sparse_entries(matrix: sp.csr_array | None, i: IntArray, j: IntArray) -> FloatArray:
    """Return ``matrix[i, j]`` entry by entry, for a symmetric matrix."""
    values = np.zeros(len(i))
    if matrix is None:
        return values
    # Most items have no entry at all; looking for one is what takes time.
    filled = np.diff(matrix.indptr) > 0
    there = np.flatnonzero(filled[i] & filled[j])
    if len(there) > 0:
        values[there] = np.asarray(matrix[i[there], j[there]]).ravel()
    return values


def component_pairs(
    order: IntArray, bounds: IntArray, offsets: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the items (i, j) of every entry of the flat blocks of components."""
    sizes = np.diff(bounds)
    component = np.repeat(np.arange(len(sizes)), sizes**2)
    place = np.arange(offsets[-1]) - offsets[component]
    first, size = bounds[component], sizes[component]
    return order[first + place // size], order[first + place % size]


def add_sparse_blocks(
    matrix: sp.csr_array | None,
    order: IntArray,
    bounds: IntArray,
    offsets: IntArray,
    flat: FloatArray,
) -> None:
    """Add the entries of a sparse matrix that lie inside a component to the flat blocks."""
    if matrix is None:
        return
    sizes = np.diff(bounds)
    component = np.full(matrix.shape[0], -1, np.int64)
    place = np.zeros(matrix.shape[0], np.int64)
    component[order] = np.repeat(np.arange(len(sizes)), sizes)
    place[order] = np.arange(len(order)) - np.repeat(bounds[:-1], sizes)
    entries = matrix.tocoo()
    i, j = entries.coords
    inside = (component[i] == component[j]) & (component[i] >= 0)
    i, j = i[inside], j[inside]
    where = offsets[component[i]] + place[i] * sizes[component[i]] + place[j]
    np.add.at(flat, where, entries.data[inside])


def large_with_sparse(
    found: Pairs,
    matrix: sp.csr_array | None,
    entries: Callable[[IntArray, IntArray], FloatArray],
    level: float,
    n_rows: int,
) -> Pairs:
    """Return the large entries of ``G + matrix`` from those of G.

    The sparse part can only change the pairs it has an entry for; these are looked at again.

    Parameters
    ----------
    found : Pairs
        Large entries of G.
    matrix : csr_array or None
        The sparse part.
    entries : callable
        Gives listed entries of ``G + matrix``.
    level : float
        What counts as large.
    n_rows : int
        Rows that are searched.
    """
    if matrix is None:
        return found
    size = matrix.shape[0]
    i, j = (np.asarray(side, np.int64) for side in sp.triu(matrix, k=1, format="coo").coords)
    i, j = i[i < n_rows], j[i < n_rows]
    values = entries(i, j)
    large = np.abs(values) > level
    other = ~np.isin(found.i * size + found.j, i * size + j)
    return Pairs(
        np.concatenate([found.i[other], i[large]]),
        np.concatenate([found.j[other], j[large]]),
        np.concatenate([found.value[other], values[large]]),
    )
