"""Compiled passes that turn earlier iterates into a start."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def recall_block(block, position, diagonal, scale, W):
    """Write a component's covariance to W, scaled so that it has the given diagonal.

    ``position`` is the place of each of its variables in W, or -1. ``scale`` gets the scales.
    """
    for r in range(len(position)):
        if position[r] >= 0:
            scale[position[r]] = np.sqrt(diagonal[position[r]] / block[r, r])
    in_order = True
    for r in range(len(position)):
        in_order &= position[r] == r
    for r in range(len(position)):
        if position[r] < 0:
            continue
        source, row, unit = block[r], W[position[r]], scale[position[r]]
        if in_order:  # the usual case, and a loop that vectorises
            for c in range(len(position)):
                row[c] = source[c] * (unit * scale[c])
        else:
            for c in range(len(position)):
                if position[c] >= 0:
                    row[position[c]] = source[c] * (unit * scale[position[c]])


@njit(cache=True, nogil=True)
def recall_rows(indptr, columns, values, index, position, scale):
    """Rows of a sparse precision T for the variables in index.

    ``position`` is the place of each variable in index, or -1. T_ij is divided by scale_i scale_j.
    Returns compressed rows and the diagonal.
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
    return rows, places[:at], entries[:at], theta


@njit(cache=True, nogil=True)
def fill_regressions(indptr, columns, values, theta, B):
    """B_ij = -T_ij / T_ii for a sparse T; B is zero on entry."""
    for i in range(len(theta)):
        for k in range(indptr[i], indptr[i + 1]):
            if columns[k] != i:
                B[i, columns[k]] = -values[k] / theta[i]


@njit(cache=True, nogil=True)
def extrapolate(W, theta, indptr, columns, values, before, theta_before, t, B):
    """Go on from an earlier iterate through the last one by t times their distance, in place.

    The last precision comes by its compressed rows, the one before as (W, indptr, columns,
    values). B, zero on entry, gets the regressions: they may shrink to zero, but neither appear
    nor change sign.
    """
    W_before, indptr_before, columns_before, values_before = before
    p = theta.shape[0]
    row = np.zeros(p)
    for i in range(p):
        w, w_before = W[i], W_before[i]
        for j in range(p):
            w[j] += t * (w[j] - w_before[j])
        for k in range(indptr_before[i], indptr_before[i + 1]):
            row[columns_before[k]] = -values_before[k] / theta_before[i]
        for k in range(indptr[i], indptr[i + 1]):
            j = columns[k]
            if j != i:
                now = -values[k] / theta[i]
                ahead = now + t * (now - row[j]) if row[j] != 0.0 else now
                B[i, j] = ahead if ahead * now > 0.0 else 0.0
        for k in range(indptr_before[i], indptr_before[i + 1]):
            row[columns_before[k]] = 0.0
    for i in range(p):
        theta[i] *= (theta[i] / theta_before[i]) ** t
