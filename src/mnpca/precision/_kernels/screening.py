"""Compiled pass over S: check it and find its connected components."""

import numpy as np
from numba import njit, uint64

# A relative difference of two halves of S that rounding explains.
_ROUNDING = 1e-13


@njit(cache=True, nogil=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def _find_fault(S, scale, slack):
    """Return (1, i, j) at the first non-finite entry, (2, i, j) at the first asymmetric pair.

    Or (0, n, n), n the number of pairs that differ by more than rounding.
    """
    uneven = 0
    for i in range(S.shape[0]):
        for j in range(i + 1):
            x, y = S[i, j], S[j, i]
            if not np.isfinite(x) or not np.isfinite(y):
                return 1, j, i
            apart, size = abs(x - y), scale[i] * scale[j] + abs(x)
            if apart > slack * size:
                return 2, j, i
            uneven += apart > _ROUNDING * size
    return 0, uneven, uneven


@njit(cache=True, nogil=True)
def _check_run(S, turned, alpha, scale, parent, i, j0, j1, first):
    """Count the pairs of row i, columns j0:j1 that may be at fault, and those that may join.

    ``turned`` is the transpose's row from column first on. Indices are unsigned, so that the loop
    vectorises.
    """
    i, j0, j1, first = uint64(i), uint64(j0), uint64(j1), uint64(first)
    doubtful = edges = 0
    own = parent[i]
    for j in range(j0, j1):
        x = abs(S[i, j])
        apart = abs(S[i, j] - turned[j - first])
        # False for NaN, for a difference of infinities and for an infinite size, too.
        doubtful += not apart < _ROUNDING * (scale[i] * scale[j] + x)
        edges += (x > alpha[j]) & (parent[j] != own)
    return doubtful, edges


@njit(cache=True, nogil=True)
def _turn(S, i0, i1, j0, j1, turned):
    """Copy the transpose of rows j0:j1, columns i0:i1."""
    i0, i1, j0, j1 = uint64(i0), uint64(i1), uint64(j0), uint64(j1)
    for i in range(i0, i1):
        for j in range(j0, j1):
            turned[i - i0, j - j0] = S[j, i]


@njit(cache=True, nogil=True)
def screen(S, alpha, slack):
    """One pass over S in tiles: check it and join variables with |S_ij| > alpha_ij.

    Returns (fault, i, j, uneven, labels); fault is 0, or 1 for a non-finite entry and 2 for an
    asymmetric pair at (i, j); uneven counts pairs that differ by more than rounding. Labels number
    the connected components in order of appearance.
    """
    p = S.shape[0]
    parent = np.arange(p)
    labels = np.full(p, -1)
    scale = np.sqrt(np.abs(np.diag(S)))
    doubtful = uneven = 0
    for i in range(p):
        doubtful += not np.isfinite(S[i, i])
    # Wide tiles, so that rows are read in long runs.
    tile, wide = 16, 512
    turned = np.empty((tile, wide))
    for i0 in range(0, p, tile):
        i1 = min(i0 + tile, p)
        for j0 in range(i0, p, wide):
            j1 = min(j0 + wide, p)
            _turn(S, i0, i1, j0, j1, turned)
            for i in range(i0, i1):
                a = alpha[0] if alpha.shape[0] == 1 else alpha[i]
                parent[i] = _root(parent, i)
                first = max(j0, i + 1)
                faults, edges = _check_run(S, turned[i - i0], a, scale, parent, i, first, j1, j0)
                doubtful += faults
                for j in range(first, j1 if edges > 0 else first):
                    if abs(S[i, j]) > a[j] and parent[i] != parent[j]:
                        u, v = _root(parent, i), _root(parent, j)
                        parent[max(u, v)] = parent[i] = parent[j] = min(u, v)
    if doubtful > 0:
        fault, i, j = _find_fault(S, scale, slack)
        if fault > 0:
            return fault, i, j, 0, labels
        uneven = i
    count = 0
    for i in range(p):
        r = _root(parent, i)
        if labels[r] < 0:
            labels[r] = count
            count += 1
        labels[i] = labels[r]
    return 0, 0, 0, uneven, labels
