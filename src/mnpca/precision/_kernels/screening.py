"""Compiled pass over S: check it and find its connected components."""

import numpy as np
from numba import njit, uint64

from mnpca.precision._kernels.shared import FAST, seed, uniform

# A relative difference of two halves of S that rounding explains.
_ROUNDING = 1e-13
# The same for the sums of p entries, times p.
_SUM_ROUNDING = 1e-15


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


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_rows(S, i, weights, rows, columns):
    """Four rows of S from i on: rows_i = sum_j S_ij weights_j, columns_j += weights_i S_ij."""
    r0, r1, r2, r3 = S[i], S[i + 1], S[i + 2], S[i + 3]
    w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
    t0 = t1 = t2 = t3 = 0.0
    for j in range(S.shape[1]):
        w = weights[j]
        t0 += r0[j] * w
        t1 += r1[j] * w
        t2 += r2[j] * w
        t3 += r3[j] * w
        columns[j] += w0 * r0[j] + w1 * r1[j] + w2 * r2[j] + w3 * r3[j]
    rows[i], rows[i + 1], rows[i + 2], rows[i + 3] = t0, t1, t2, t3


@njit(cache=True, nogil=True, fastmath=FAST)
def _add_row(S, i, weights, rows, columns):
    """One row of S, likewise."""
    rows[i] = 0.0
    for j in range(S.shape[1]):
        rows[i] += S[i, j] * weights[j]
        columns[j] += weights[i] * S[i, j]


@njit(cache=True, nogil=True)
def _new_edges(row, alpha, parent, own, first):
    """Count the entries from the first on that are above alpha and may join another component.

    Indices are unsigned, so that the loop vectorizes.
    """
    count = 0
    for j in range(uint64(first), uint64(row.shape[0])):
        count += (abs(row[j]) > alpha[j]) & (parent[j] != own)
    return count


@njit(cache=True, nogil=True)
def screen(S, alpha, slack):
    """One pass over the rows of S: check it and join variables with |S_ij| > alpha_ij.

    S r is compared with S' r for a random r (Freivalds): S is symmetric if they agree, and the
    columns of S, which are far apart in memory, are not read. r is in units of the variables. Where
    they do not agree, or are not finite, every pair is looked at.

    Returns (fault, i, j, uneven, labels); fault is 0, or 1 for a non-finite entry and 2 for an
    asymmetric pair at (i, j); uneven counts pairs that differ by more than rounding. Labels number
    the connected components in order of appearance.
    """
    p = S.shape[0]
    parent = np.arange(p)
    labels = np.full(p, -1)
    scale = np.sqrt(np.abs(np.diag(S)))
    weights, columns, rows = np.empty(p), np.zeros(p), np.empty(p)
    state = seed()
    for i in range(p):
        weights[i] = (1.0 + uniform(state)) / max(scale[i], 1e-300)
    for i in range(p):
        row = S[i]
        if i % 4 == 0 and i + 3 < p:
            _add_rows(S, i, weights, rows, columns)
        elif i >= p - p % 4:
            _add_row(S, i, weights, rows, columns)
        a = alpha[0] if alpha.shape[0] == 1 else alpha[i]
        parent[i] = _root(parent, i)
        if _new_edges(row, a, parent, parent[i], i + 1) == 0:
            continue
        for j in range(i + 1, p):
            if abs(row[j]) > a[j] and parent[i] != parent[j]:
                u, v = _root(parent, i), _root(parent, j)
                parent[max(u, v)] = parent[i] = parent[j] = min(u, v)
    doubtful = 0
    for i in range(p):
        # False for NaN and for infinite sums, too.
        doubtful += not abs(rows[i] - columns[i]) <= _SUM_ROUNDING * p * scale[i]
    uneven = 0
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
