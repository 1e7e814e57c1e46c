"""Compiled passes that fill a primal and a dual point and measure how far apart they are."""

import numpy as np
from numba import njit, uint64

from mnpca.precision._kernels.shared import FAST, add_rows, diagonal_of


@njit(cache=True, nogil=True)
def fill_dual(S, alpha, diagonal, W, B, on_support, out):
    """Fill the lower triangle of out with a dual feasible point near W.

    W is clipped to [S - alpha, S + alpha]. With ``on_support`` it becomes S + alpha sign(T) on the
    support of the precision, where the solution's covariance lies.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, b, o = S[i], W[i], B[i], out[i]
        for j in range(i):
            o[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        for j in range(i if on_support else 0):
            if b[j] != 0.0 and B[j, i] != 0.0:
                o[j] = s[j] - np.copysign(a[j], b[j])
        o[i] = diagonal[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def make_feasible(S, alpha, diagonal, indptr, columns, values, W):
    """Move W, in place, to the dual point that belongs to a sparse precision T.

    It is S + alpha sign(T) on the support of T and W clipped to [S - alpha, S + alpha] elsewhere.
    Returns tr(T W) = tr(S T) + |alpha o T|_1; then, in units in which T has diagonal one, the
    squares' sum of each row of the move, its largest row sum, and that of |T|.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    weight = np.sqrt(diagonal_of(indptr, columns, values))
    before, parts = np.empty(p), np.empty(p)
    cost, moved, largest = 0.0, 0.0, 0.0
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w = S[i], W[i]
        first, last = indptr[i], indptr[i + 1]
        for k in range(first, last):
            before[k - first] = w[columns[k]]
        squares, total = 0.0, 0.0
        for j in range(p):
            x = min(max(w[j], s[j] - a[j]), s[j] + a[j])
            step = weight[j] * (x - w[j])
            squares += step * step
            total += abs(step)
            w[j] = x
        size = 0.0
        for k in range(first, last):
            j = columns[k]
            x = diagonal[i] if j == i else s[j] + np.copysign(a[j], values[k])
            clip = weight[j] * (w[j] - before[k - first])
            step = weight[j] * (x - before[k - first])
            squares += step * step - clip * clip
            total += abs(step) - abs(clip)
            w[j] = x
            cost += values[k] * x
            size += abs(values[k]) / weight[j]
        parts[i] = weight[i] * weight[i] * squares
        moved = max(moved, weight[i] * total)
        largest = max(largest, size / weight[i])
    return cost, parts, moved, largest


@njit(cache=True, nogil=True)
def fill_primal(S, alpha, diagonal, B, theta, out):
    """Lower triangle of out = the symmetric precision of the regressions; returns its linear cost.

    An entry is kept where both regressions have it. The cost is tr(S T) + |alpha o T|_1, the
    diagonal's penalty being part of ``diagonal``.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    cost = 0.0
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, b, o = S[i], B[i], out[i]
        for j in range(i):
            value = 0.0
            if b[j] != 0.0 and B[j, i] != 0.0:
                value = -0.5 * (b[j] * theta[i] + B[j, i] * theta[j])
                cost += 2.0 * (s[j] * value + a[j] * abs(value))
            o[j] = value
        o[i] = theta[i]
        cost += diagonal[i] * theta[i]
    return cost


@njit(cache=True, nogil=True, fastmath=FAST)
def distance_from_inverse(indptr, columns, values, theta, W, relative, out):
    """Fill out with T W - I for a sparse T, unless it has room for one row only.

    Returns the squares' sum of each row and the largest row sum of |T W - I|, in units in which T
    has diagonal one: T_ij / sqrt(theta_i theta_j). Entry j of row i of |T W - I| counts
    relative_j / relative_i times: any such sum bounds the eigenvalues, and one with about the row
    sums of |T W - I| bounds them better.
    """
    p = W.shape[0]
    parts = np.empty(p)
    weight = np.sqrt(theta)
    spread = 0.0
    for i in range(p):
        row = out[i % len(out)]
        first, last = indptr[i], indptr[i + 1]
        for j in range(p):
            row[j] = 0.0
        row[i] = -1.0
        add_rows(W, columns[first:last], values[first:last], last - first, p, row)
        squares, total = 0.0, 0.0
        for j in range(p):
            x = weight[j] * row[j]
            squares += x * x
            total += abs(x) * relative[j]
        parts[i] = squares / theta[i]
        spread = max(spread, total / (weight[i] * relative[i]))
    return parts, spread


@njit(cache=True, nogil=True)
def largest_gap(distance, radius):
    """Return the largest gap of a pair with eigenvalues up to radius and this root of squares.

    These are the eigenvalues of T W - I, none of which is larger than the root of the sum of their
    squares. The gap is infinite where they may reach -1.
    """
    largest = min(distance, radius)
    if largest == 0.0 or largest >= 1.0:
        return 0.0 if largest == 0.0 else np.inf
    return (distance / largest) ** 2 * (-largest - np.log1p(-largest))


@njit(cache=True, nogil=True, fastmath=FAST)
def _turned_product(R, i0, i1, j0, j1, turned):
    """Sum of R_ij R_ji over rows i0:i1, columns j0:j1.

    A tile's transpose is copied first, and indices are unsigned, so that the loop vectorizes.
    """
    i0, i1, j0, j1 = uint64(i0), uint64(i1), uint64(j0), uint64(j1)
    for i in range(i0, i1):
        for j in range(j0, j1):
            turned[i - i0, j - j0] = R[j, i]
    total = 0.0
    for i in range(i0, i1):
        for j in range(j0, j1):
            total += R[i, j] * turned[i - i0, j - j0]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def trace_of_square(R):
    """tr(R R), in tiles: the sum of the squared eigenvalues."""
    p = R.shape[0]
    tile = 64
    turned = np.empty((tile, tile))
    total = 0.0
    for i0 in range(0, p, tile):
        i1 = min(i0 + tile, p)
        total += _turned_product(R, i0, i1, i0, i1, turned)
        for j0 in range(i1, p, tile):
            total += 2.0 * _turned_product(R, i0, i1, j0, min(j0 + tile, p), turned)
    return total


@njit(cache=True, nogil=True)
def support_size(B):
    """Count the nonzeros of B."""
    count = 0
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            count += B[i, j] != 0.0
    return count


@njit(cache=True, nogil=True)
def to_csr(B, theta):
    """Row pointers, columns and values of the symmetric precision of the regressions."""
    p = B.shape[0]
    listed = np.empty(p + 1, np.int64)
    indptr = np.zeros(p + 1, np.int64)
    room = p + support_size(B)
    columns = np.empty(room, np.int64)
    values = np.empty(room)
    at = 0
    for i in range(p):
        n = 0
        for j in range(p):
            listed[n] = j
            n += (B[i, j] != 0.0) | (j == i)
        for k in range(n):
            j = listed[k]
            columns[at] = j
            if j == i:
                values[at] = theta[i]
                at += 1
            elif B[j, i] != 0.0:
                values[at] = -0.5 * (B[i, j] * theta[i] + B[j, i] * theta[j])
                at += 1
        indptr[i + 1] = at
    return indptr, columns[:at], values[:at]
