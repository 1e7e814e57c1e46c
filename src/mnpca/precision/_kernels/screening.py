"""Compiled pass over S: check it and find its connected components."""

import numpy as np
from numba import njit

# A relative difference of two halves of S that rounding explains.
_ROUNDING = 1e-13


@njit(cache=True, nogil=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def _first_fault(S, scale, slack):
    """Return (1, i, j) at the first non-finite entry, (2, i, j) at the first asymmetric pair."""
    p = S.shape[0]
    for i in range(p):
        for j in range(i + 1):
            x, y = S[i, j], S[j, i]
            if not np.isfinite(x) or not np.isfinite(y):
                return 1, j, i
            if not abs(x - y) <= slack * (scale[i] * scale[j] + abs(x)):
                return 2, j, i
    return 0, 0, 0


@njit(cache=True, nogil=True)
def screen(S, alpha, slack):
    """One pass over S in tiles: check it and join variables with |S_ij| > alpha_ij.

    Returns (fault, i, j, uneven, labels); fault is 0, or 1 for a non-finite entry and 2 for an
    asymmetric pair at (i, j); uneven counts pairs that differ by more than rounding. Labels number
    the connected components in order of appearance.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    parent = np.arange(p)
    labels = np.full(p, -1)
    scale = np.sqrt(np.abs(np.diag(S)))
    bad = uneven = joined = 0
    for i in range(p):
        bad += not np.isfinite(S[i, i])
    tile = 64
    for i0 in range(0, p, tile):
        for j0 in range(i0, p, tile):
            j1 = min(j0 + tile, p)
            for i in range(i0, min(i0 + tile, p)):
                a = alpha[0] if shared_row else alpha[i]
                first = max(j0, i + 1)
                edges = 0
                # The comparison is false for NaN and for a difference of infinities.
                for j in range(first, j1):
                    x = S[i, j]
                    apart, size = abs(x - S[j, i]), scale[i] * scale[j] + abs(x)
                    bad += not apart <= slack * size
                    bad += not abs(x) < np.inf
                    uneven += apart > _ROUNDING * size
                    edges += abs(x) > a[j]
                if edges == 0 or joined == p - 1:
                    continue
                for j in range(first, j1):
                    if abs(S[i, j]) > a[j] and parent[i] != parent[j]:
                        u, v = _root(parent, i), _root(parent, j)
                        joined += u != v
                        parent[max(u, v)] = parent[i] = parent[j] = min(u, v)
    if bad > 0:
        fault, i, j = _first_fault(S, scale, slack)
        return fault, i, j, uneven, labels
    count = 0
    for i in range(p):
        r = _root(parent, i)
        if labels[r] < 0:
            labels[r] = count
            count += 1
        labels[i] = labels[r]
    return 0, 0, 0, uneven, labels
