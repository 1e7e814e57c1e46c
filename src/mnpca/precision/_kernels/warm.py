"""Compiled passes that turn earlier iterates into a start."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def make_feasible(S, alpha, diagonal, B, W):
    """Move W, in place, to the nearest point that the dual allows: see ``fill_dual``.

    A start outside |W - S| <= alpha may make a conditional variance negative later on.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, b = S[i], W[i], B[i]
        for j in range(p):
            w[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        for j in range(p):
            if b[j] != 0.0 and B[j, i] != 0.0:
                w[j] = s[j] - np.copysign(a[j], b[j])
        w[i] = diagonal[i]


@njit(cache=True, nogil=True)
def extrapolate(W, B, theta, W_before, B_before, theta_before, t):
    """Go on from an earlier iterate through the last one by t times their distance, in place.

    Regressions may shrink to zero, but neither appear nor change sign.
    """
    p = theta.shape[0]
    for i in range(p):
        theta[i] *= (theta[i] / theta_before[i]) ** t
        w, w_before = W[i], W_before[i]
        for j in range(p):
            w[j] += t * (w[j] - w_before[j])
        for j in range(p):
            now, before = B[i, j], B_before[i, j]
            if now != 0.0 and before != 0.0:
                ahead = now + t * (now - before)
                B[i, j] = ahead if ahead * now > 0.0 else 0.0
