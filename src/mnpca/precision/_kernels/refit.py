"""Compiled sweeps of modified regressions on a graph."""

import numpy as np
from numba import njit

from mnpca.precision._kernels.shared import FAST, add_rows, factorize, grow, seed, shuffle, store


@njit(cache=True, nogil=True, fastmath=FAST)
def _solve_definite(H, m, x):
    """X <- inv(H) x in place by Cholesky on the lower triangle of H's leading m x m block."""
    if not factorize(H, m):
        return False
    for i in range(m):
        row = H[i]
        total = x[i]
        for k in range(i):
            total -= row[k] * x[k]
        x[i] = total / row[i]
    for i in range(m - 1, -1, -1):
        x[i] /= H[i, i]
        row = H[i]
        for k in range(i):
            x[k] -= row[k] * x[i]
    return True


@njit(cache=True, nogil=True, fastmath=FAST)
def refit_sweeps(S, indptr, neighbors, W, B, theta, target, max_sweeps):
    """Sweep modified regressions (Hastie et al. 2009, algorithm 17.1) on a graph, in place.

    Column j regresses variable j on its neighbors with Gram matrix W, exactly. Progress and
    return values are those of ``descend``.
    """
    p = S.shape[0]
    order = np.arange(p)
    state = seed()
    sub = np.empty((16, 16))
    b = np.empty(p)
    g = np.empty(p)
    progress = np.inf
    for sweep in range(max_sweeps):
        shuffle(order, state)
        progress = 0.0
        for j in order:
            near = neighbors[indptr[j] : indptr[j + 1]]
            m = len(near)
            sub = grow(sub, m)
            for k in range(m):
                for i in range(m):
                    sub[k, i] = W[near[k], near[i]]
            beta = B[j]
            gained = 0.0
            for k in range(m):
                b[k] = S[j, near[k]]
                fitted = 0.0
                for i in range(m):
                    fitted += sub[k, i] * beta[near[i]]
                g[k] = b[k] - fitted
            if not _solve_definite(sub, m, b):
                return sweep + 1, np.inf, False
            for k in range(m):
                gained += 0.5 * g[k] * (b[k] - beta[near[k]])
                beta[near[k]] = b[k]
            for i in range(p):
                g[i] = 0.0
            add_rows(W, near, b, m, p, g)
            free = W[j, j]
            for k in range(m):
                free -= b[k] * S[j, near[k]]
            if not free > 1e-14 * W[j, j]:
                return sweep + 1, np.inf, False
            theta[j] = 1.0 / free
            progress += 2.0 * abs(gained) / free
            g[j] = W[j, j]
            store(g, j, W)
        if progress <= target:
            return sweep + 1, progress, True
    return max_sweeps, progress, True
