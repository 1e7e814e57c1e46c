"""Compiled passes over a primal and a dual point."""

import numpy as np
from numba import njit

from mnpca.precision._kernels.shared import FAST, add_rows


@njit(cache=True, nogil=True)
def to_csr(B, theta):
    """Row pointers, columns and values of the symmetric precision of the regressions.

    An entry is kept where both regressions have it.
    """
    p = B.shape[0]
    listed = np.empty(p + 1, np.int64)
    indptr = np.zeros(p + 1, np.int64)
    room = p
    for i in range(p):
        for j in range(p):
            room += B[i, j] != 0.0
    columns, values = np.empty(room, np.int64), np.empty(room)
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


@njit(cache=True, nogil=True)
def fill_dual(S, alpha, diagonal, W, indptr, columns, values, on_support, out):
    """Fill out, which may be W, with a dual feasible point near W.

    W is clipped to [S - alpha, S + alpha]. With ``on_support`` it becomes S + alpha sign(T) on the
    support of the sparse precision T, where the solution's covariance lies.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, o = S[i], W[i], out[i]
        for j in range(p):
            o[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        if on_support:
            for k in range(indptr[i], indptr[i + 1]):
                j = columns[k]
                o[j] = s[j] + np.copysign(a[j], values[k])
        o[i] = diagonal[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def distance_from_inverse(indptr, columns, values, theta, W, out):
    """Fill out with T W - I for a sparse T with diagonal theta.

    Returns the sum of squares and the largest row sum of |T W - I|, in units in which T has
    diagonal one: T_ij / sqrt(theta_i theta_j).
    """
    p = W.shape[0]
    weight = np.sqrt(theta)
    square, spread = 0.0, 0.0
    for i in range(p):
        row = out[i]
        first, last = indptr[i], indptr[i + 1]
        for j in range(p):
            row[j] = 0.0
        row[i] = -1.0
        add_rows(W, columns[first:last], values[first:last], last - first, p, row)
        squares, total = 0.0, 0.0
        for j in range(p):
            x = weight[j] * row[j]
            squares += x * x
            total += abs(x)
        square += squares / theta[i]
        spread = max(spread, total / weight[i])
    return square, spread
