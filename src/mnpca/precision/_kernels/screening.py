"""Compiled pass over S: check it and find its connected components."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def screen(S, alpha, slack):
    """One pass over S in tiles: check it and join variables with |S_ij| > alpha_ij.

    Returns (problem, i, j, labels); problem is 0, or 1 for a non-finite entry and 2 for an
    asymmetric pair at (i, j). Labels number the connected components in order of appearance.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    parent = np.arange(p)
    scale = np.empty(p)
    labels = np.full(p, -1)
    for i in range(p):
        if not np.isfinite(S[i, i]):
            return 1, i, i, labels
        scale[i] = np.sqrt(abs(S[i, i]))
    tile = 64
    for i0 in range(0, p, tile):
        for j0 in range(i0, p, tile):
            for i in range(i0, min(i0 + tile, p)):
                a = alpha[0] if shared_row else alpha[i]
                for j in range(max(j0, i + 1), min(j0 + tile, p)):
                    x = S[i, j]
                    if not np.isfinite(x) or not np.isfinite(S[j, i]):
                        return 1, i, j, labels
                    if abs(x - S[j, i]) > slack * (scale[i] * scale[j] + abs(x)):
                        return 2, i, j, labels
                    if abs(x) > a[j]:
                        u, v = _root(parent, i), _root(parent, j)
                        if u < v:
                            parent[v] = u
                        elif v < u:
                            parent[u] = v
    count = 0
    for i in range(p):
        r = _root(parent, i)
        if labels[r] < 0:
            labels[r] = count
            count += 1
        labels[i] = labels[r]
    return 0, 0, 0, labels
