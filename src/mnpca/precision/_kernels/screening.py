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
def _check_tile(S, alpha, scale, i0, i1, j0, j1, turned, edges):
    """Count the pairs of rows i0:i1, columns j0:j1 that may be at fault; edges counts by rows.

    A tile's transpose is copied first, and indices are unsigned, so that the loop vectorises.
    """
    i0, i1, j0, j1 = uint64(i0), uint64(i1), uint64(j0), uint64(j1)
    for j in range(j0, j1):
        for i in range(i0, i1):
            turned[i - i0, j - j0] = S[j, i]
    doubtful = 0
    for i in range(i0, i1):
        own = uint64(0) if alpha.shape[0] == 1 else i
        count = 0
        for j in range(max(j0, i + uint64(1)), j1):
            x = abs(S[i, j])
            apart = abs(S[i, j] - turned[i - i0, j - j0])
            # False for NaN, for a difference of infinities and for an infinite size, too.
            doubtful += not apart < _ROUNDING * (scale[i] * scale[j] + x)
            count += x > alpha[own, j]
        edges[i - i0] = count
    return doubtful


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
    doubtful = uneven = joined = 0
    for i in range(p):
        doubtful += not np.isfinite(S[i, i])
    tile = 64
    turned, edges = np.empty((tile, tile)), np.empty(tile, np.int64)
    for i0 in range(0, p, tile):
        i1 = min(i0 + tile, p)
        for j0 in range(i0, p, tile):
            j1 = min(j0 + tile, p)
            doubtful += _check_tile(S, alpha, scale, i0, i1, j0, j1, turned, edges)
            for i in range(i0, i1):
                if edges[i - i0] == 0 or joined == p - 1:
                    continue
                own = 0 if alpha.shape[0] == 1 else i
                j = max(j0, i + 1)
                while edges[i - i0] > 0:
                    if abs(S[i, j]) > alpha[own, j]:
                        edges[i - i0] -= 1
                        if parent[i] != parent[j]:
                            u, v = _root(parent, i), _root(parent, j)
                            joined += u != v
                            parent[max(u, v)] = parent[i] = parent[j] = min(u, v)
                    j += 1
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
