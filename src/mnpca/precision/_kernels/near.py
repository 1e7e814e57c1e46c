"""Compiled warm start: from an earlier solution to a certificate, where the two are near.

Nothing is factorized. The earlier precision T0 is positive definite, and so is every T of which a
line leads to T0 along which T W - I stays below 1 in some norm of matrices: no matrix on it is
singular. It is enough to know the two ends.
"""

import numpy as np
from numba import njit

from mnpca.precision._kernels.certificate import (
    distance_from_inverse,
    largest_gap,
    make_feasible,
    trace_of_square,
)
from mnpca.precision._kernels.descent import sweep_sparse
from mnpca.precision._kernels.shared import FAST, diagonal_of
from mnpca.precision._kernels.warm import list_regressions, recall, symmetric_rows

# What became of a start.
CERTIFIED, NOT_SWEPT, SWEPT, BROKEN = range(4)
# How far W is from the dual point of the earlier solution, in gaps to reach: up to the first number
# it is certified, up to the second a sweep over some columns may do, up to the third one over all.
_HOPEFUL, _NEAR, _FAR = 0.7, 16.0, 50.0
# Columns are swept until this share of the gap to reach, or so many shares divided by the number of
# variables, is left to the others: a sweep itself leaves more behind where there are more of them.
_LEFT, _SHARES = 0.2, 50.0
# Up to so many times the gap to reach, squares of T W - I are worth a closer look at it.
_WORTH = 10.0
# Row sums of |T - T0| |W| that are below 1 by more than those of T W - I prove T definite. The
# latter grow with the number of variables: with so many, the former alone are not tried.
_ROW_SUMS = 2000.0
# Rows whose products with each other bound the singular values of T W - I.
_PANEL = 16


@njit(cache=True, nogil=True, fastmath=FAST)
def solve_near(S, alpha, diagonal, earlier, index, number, place, W, work, goal, inner, most):
    """Recall an earlier solution, then sweep and certify.

    The first arguments are the component's problem, the next those of ``recall``, which fills W.
    ``work`` has room for T W - I or for one row of it, see ``distance_from_inverse``. ``inner`` is
    the accuracy of the column problems in each of the sweeps to make, relative to the conditional
    variance. There are none where the earlier precision has more than ``most`` nonzeros.

    Returns (status, precision, theta, cost, gap, sweeps). The status is CERTIFIED; NOT_SWEPT, where
    the start is far from a solution, with W moved to the dual point of the earlier precision;
    SWEPT, where the gap is still too large or the precision is not proven definite; BROKEN, where a
    conditional variance turned negative.
    """
    rows = recall(earlier, index, number, place, diagonal, W)
    theta = diagonal_of(rows[0], rows[1], rows[2])
    now = rows
    cost, parts, _, _ = make_feasible(S, alpha, diagonal, rows[0], rows[1], rows[2], W)
    off = 0.5 * parts.sum() / goal
    if off <= _HOPEFUL:
        relative = np.sqrt(parts + max(parts.mean(), 1e-300))
        parts, spread = distance_from_inverse(
            rows[0], rows[1], rows[2], theta, W, relative, work[:1]
        )
        gap = largest_gap(np.sqrt(parts.sum()), spread)
        if gap <= goal:
            return CERTIFIED, rows, theta, cost, gap, 0
    if off > _FAR or len(rows[2]) > most:
        return NOT_SWEPT, rows, theta, cost, np.inf, 0
    columns = _columns_to_sweep(parts, goal if off <= _NEAR else 0.0)
    regressions = list_regressions(rows[0], rows[1], rows[2], theta)
    for sweep in range(len(inner)):
        regressions, ok = sweep_sparse(S, alpha, W, regressions, theta, inner[sweep], columns)
        if not ok:
            return BROKEN, rows, theta, cost, np.inf, sweep + 1
        now = symmetric_rows(regressions, theta)
        cost, _, _, _ = make_feasible(S, alpha, diagonal, now[0], now[1], now[2], W)
        gap, definite, parts = _certify(rows, now, theta, W, goal, work)
        if gap <= goal:
            return CERTIFIED if definite else SWEPT, now, theta, cost, gap, sweep + 1
        columns = _columns_to_sweep(parts, goal)
    return SWEPT, now, theta, cost, np.inf, len(inner)


@njit(cache=True, nogil=True)
def _columns_to_sweep(parts, goal):
    """Return the columns with the largest parts of the gap: squares of W's move, or of T W - I.

    The largest come last: nothing undoes what they mend, and the sweep leaves a much smaller gap
    than one in random order. A sweep over a column mends its row and its column: where the other
    rows have a share s of the squares, about s^2 of them lie in the other columns too.
    """
    order = np.argsort(parts)
    left = min(_LEFT, _SHARES / len(parts))
    enough = np.sqrt(2.0 * left * goal * parts.sum())
    first, below = 0, 0.0
    while first < len(order) - 1 and below + parts[order[first]] < enough:
        below += parts[order[first]]
        first += 1
    return order[first:]


@njit(cache=True, nogil=True, fastmath=FAST)
def _certify(before, now, theta, W, goal, work):
    """Bound the gap of a precision T and its dual point W, and prove that they are definite.

    ``before`` is an earlier precision T0, known to be definite; theta are units. Returns (gap,
    definite, squares' sum of each row of T W - I).
    """
    p = len(theta)
    change, relative = _change(before, now, theta)
    # |T0 W - I| is at most |T W - I| + |T - T0| |W|, row by row.
    moved = np.max(_row_sums(change, W, relative, theta) / relative)
    if moved < 1.0 - p / _ROW_SUMS:
        parts, spread = distance_from_inverse(now[0], now[1], now[2], theta, W, relative, work)
        definite = spread + moved < 1.0
        first = np.inf
    else:
        parts, spread, first = _both_distances(change, theta, W, work)
        definite = False
    square = parts.sum()
    norm = np.sqrt(square)
    gap = largest_gap(norm, spread)
    if goal < gap and square < _WORTH * goal:
        if len(work) < p:
            work = np.empty((p, p))
            distance_from_inverse(now[0], now[1], now[2], theta, W, relative, work)
        # The eigenvalues' squares add up to the trace of the square, which may be much less.
        square = min(square, abs(trace_of_square(work)))
        norm = _norm(work, theta)
        gap = largest_gap(np.sqrt(square), min(spread, norm))
    if gap <= goal and not definite and norm < 1.0:
        if first == np.inf:
            _, _, first = _both_distances(change, theta, W, work)
        definite = first < 1.0
    return gap, definite, parts


@njit(cache=True, nogil=True, fastmath=FAST)
def _change(before, now, theta):
    """Rows of an earlier precision T0 and of T on the support of both: indptr, columns, T, T0.

    Also weights in proportion to the row sums of |T - T0|, in units in which T has diagonal one.
    """
    p = len(theta)
    weight = 1.0 / np.sqrt(theta)
    indptr = np.zeros(p + 1, np.int64)
    columns = np.empty(len(before[2]) + len(now[2]), np.int64)
    values, values_before = np.empty(len(columns)), np.empty(len(columns))
    relative = np.zeros(p)
    at = 0
    for i in range(p):
        k, last = now[0][i], now[0][i + 1]
        m, last_before = before[0][i], before[0][i + 1]
        while k < last or m < last_before:
            j = now[1][k] if k < last else p
            j_before = before[1][m] if m < last_before else p
            columns[at] = min(j, j_before)
            values[at] = now[2][k] if j <= j_before else 0.0
            values_before[at] = before[2][m] if j_before <= j else 0.0
            k += j <= j_before
            m += j_before <= j
            at += 1
        for k in range(indptr[i], at):
            relative[i] += weight[columns[k]] * abs(values[k] - values_before[k])
        relative[i] *= weight[i]
        indptr[i + 1] = at
    change = indptr, columns[:at], values[:at], values_before[:at]
    return change, relative + max(relative.mean(), 1e-300)


@njit(cache=True, nogil=True, fastmath=FAST)
def _row_sums(change, W, relative, theta):
    """|T - T0| |W| relative, in units in which T has diagonal one."""
    indptr, columns, values, values_before = change
    weight = np.sqrt(theta)
    weighted = weight * relative
    inner, sums = np.empty(len(theta)), np.zeros(len(theta))
    for i in range(len(theta)):
        for j in range(len(theta)):
            sums[i] += abs(W[i, j]) * weighted[j]
    for i in range(len(theta)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += abs(values[k] - values_before[k]) * sums[columns[k]]
        inner[i] = total / weight[i]
    return inner


@njit(cache=True, nogil=True, fastmath=FAST)
def _both_distances(change, theta, W, out):
    """Fill out with X = T W - I, as ``distance_from_inverse`` does, and see how far T0 is from it.

    The rows of W are read once for both, which is what a product costs. Returns the squares' sum
    of each row of X, its largest row sum, and a bound on the norm of T0 W - I.
    """
    indptr, columns, values, values_before = change
    p = len(theta)
    weight = np.sqrt(theta)
    parts, panel = np.empty(p), np.empty((_PANEL, p))
    spread, bound = 0.0, 0.0
    for i in range(p):
        row, other = out[i % len(out)], panel[i % _PANEL]
        for j in range(p):
            row[j] = other[j] = 0.0
        row[i] = other[i] = -1.0
        k = indptr[i]
        while k < indptr[i + 1]:
            more = k + 1 < indptr[i + 1]
            r0, r1 = W[columns[k]], W[columns[k + more]]
            a0, b0 = values[k], values_before[k]
            a1, b1 = more * values[k + more], more * values_before[k + more]
            for j in range(p):
                row[j] += a0 * r0[j] + a1 * r1[j]
                other[j] += b0 * r0[j] + b1 * r1[j]
            k += 2
        squares, total = 0.0, 0.0
        for j in range(p):
            x = weight[j] * row[j]
            squares += x * x
            total += abs(x)
            other[j] *= weight[j] / weight[i]
        parts[i] = squares / theta[i]
        spread = max(spread, total / weight[i])
        if (i + 1) % _PANEL == 0 or i + 1 == p:
            bound += _largest_square(panel, i % _PANEL + 1)
    return parts, spread, np.sqrt(bound)


@njit(cache=True, nogil=True, fastmath=FAST)
def _norm(X, theta):
    """Bound the largest singular value of X_ij sqrt(theta_j / theta_i)."""
    p = len(theta)
    weight = np.sqrt(theta)
    panel = np.empty((_PANEL, p))
    total = 0.0
    for first in range(0, p, _PANEL):
        m = min(_PANEL, p - first)
        for r in range(m):
            for j in range(p):
                panel[r, j] = X[first + r, j] * weight[j] / weight[first + r]
        total += _largest_square(panel, m)
    return np.sqrt(total)


@njit(cache=True, nogil=True, fastmath=FAST)
def _largest_square(panel, m):
    """Bound the largest squared singular value of the first m rows.

    That is the largest eigenvalue of G, their products with each other: at most the largest row
    sum of |G|, and at most the root of the norm of G^2, which is no more than the sum of all
    squares. For all rows of a matrix, such bounds add up to one on its own.
    """
    G = np.empty((m, m))
    for r in range(m):
        for c in range(r + 1):
            dot = 0.0
            for j in range(panel.shape[1]):
                dot += panel[r, j] * panel[c, j]
            G[r, c] = G[c, r] = dot
    largest, squares = 0.0, 0.0
    for r in range(m):
        size = 0.0
        for c in range(m):
            size += abs(G[r, c])
            dot = 0.0
            for k in range(m):
                dot += G[r, k] * G[k, c]
            squares += dot * dot
        largest = max(largest, size)
    return min(largest, np.sqrt(np.sqrt(squares)))
