"""Compiled passes that fill a dual and a primal point."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_dual(S, alpha, diagonal, W, out):
    """Lower triangle of out = W clipped to [S - alpha, S + alpha], with the given diagonal."""
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, o = S[i], W[i], out[i]
        for j in range(i):
            o[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        o[i] = diagonal[i]


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


@njit(cache=True, nogil=True)
def to_csr(B, theta):
    """Row pointers, columns and values of the symmetric precision of the regressions."""
    p = B.shape[0]
    indptr = np.zeros(p + 1, np.int64)
    for i in range(p):
        n = 1
        for j in range(p):
            if B[i, j] != 0.0 and B[j, i] != 0.0:
                n += 1
        indptr[i + 1] = indptr[i] + n
    columns = np.empty(indptr[p], np.int64)
    values = np.empty(indptr[p])
    at = 0
    for i in range(p):
        for j in range(p):
            if i == j:
                columns[at] = j
                values[at] = theta[i]
                at += 1
            elif B[i, j] != 0.0 and B[j, i] != 0.0:
                columns[at] = j
                values[at] = -0.5 * (B[i, j] * theta[i] + B[j, i] * theta[j])
                at += 1
    return indptr, columns, values
