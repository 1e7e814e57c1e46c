"""Compiled passes that turn earlier iterates into a start."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def recall_rows(indptr, columns, values, index, position, scale, B):
    """Rows of a sparse precision T for the variables in index, and their regressions.

    ``position`` is the place of each variable in index, or -1. T_ij is divided by scale_i scale_j.
    B, zero on entry, gets -T_ij / T_ii. Returns compressed rows and the diagonal.
    """
    p = len(index)
    room = 0
    for i in index:
        room += indptr[i + 1] - indptr[i]
    rows = np.zeros(p + 1, np.int64)
    places = np.empty(room, np.int64)
    entries = np.empty(room)
    theta = np.empty(p)
    at = 0
    for r in range(p):
        i = index[r]
        for k in range(indptr[i], indptr[i + 1]):
            c = position[columns[k]]
            if c >= 0:
                places[at] = c
                entries[at] = values[k] / (scale[r] * scale[c])
                if c == r:
                    theta[r] = entries[at]
                at += 1
        rows[r + 1] = at
        for k in range(rows[r], at):
            if places[k] != r:
                B[r, places[k]] = -entries[k] / theta[r]
    return rows, places[:at], entries[:at], theta


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
