"""Compiled passes that turn earlier iterates into a start."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def recall(earlier, index, number, place, diagonal, W):
    """Recall the solution of a component from an earlier one for all variables, in new units.

    ``earlier`` is a precision with the groups and the working covariances of its components:
    (indptr, columns, values, bounds, number, place, offsets, covariances). ``index`` are the
    variables of the present component; ``number`` and ``place`` are those of all variables in the
    present groups. W, filled here, has the given diagonal, and the precision the same scales.
    Returns the precision's (indptr, columns, values).
    """
    indptr, columns, values, bounds, number_then, place_then, offsets, covariances = earlier
    p = len(index)
    scale = np.empty(p)
    blocks, places = number_then[index], place_then[index]
    room = 0
    alike, in_order = True, True
    for r in range(p):
        i, c = index[r], blocks[r]
        room += indptr[i + 1] - indptr[i]
        alike &= c == blocks[0]
        in_order &= places[r] == r
        variance = np.inf
        for k in range(indptr[i], indptr[i + 1]):
            if c < 0 and columns[k] == i:
                variance = 1.0 / values[k]  # of a variable that stood alone
        if c >= 0:
            variance = covariances[offsets[c] + places[r] * (bounds[c + 1] - bounds[c] + 1)]
        scale[r] = np.sqrt(diagonal[r] / variance)
    # Unsigned, so that compiled indexing does not look for negative indices.
    columns_then = places.astype(np.uint64)
    for r in range(p):
        c, row, unit = blocks[r], W[r], scale[r]
        size = bounds[c + 1] - bounds[c]
        source = covariances[offsets[c] + places[r] * size :][:size]
        if alike and in_order and c >= 0:  # the usual cases first: these loops vectorize
            for k in range(p):
                row[k] = source[k] * (unit * scale[k])
        elif alike and c >= 0:
            for k in range(p):
                row[k] = source[columns_then[k]] * (unit * scale[k])
        else:
            for k in range(p):
                row[k] = 0.0
                if blocks[k] == c and c >= 0:
                    row[k] = source[columns_then[k]] * (unit * scale[k])
        row[r] = diagonal[r]
    rows = np.zeros(p + 1, np.int64)
    listed = np.empty(room, np.int64)
    entries = np.empty(room)
    at = 0
    for r in range(p):
        i = index[r]
        for k in range(indptr[i], indptr[i + 1]):
            j = columns[k]
            if number[j] == number[i]:
                listed[at] = place[j]
                entries[at] = values[k] / (scale[r] * scale[place[j]])
                at += 1
        rows[r + 1] = at
    return rows, listed[:at], entries[:at]


@njit(cache=True, nogil=True)
def fill_regressions(indptr, columns, values, theta, B):
    """B_ij = -T_ij / T_ii for a sparse T; B is zero on entry."""
    for i in range(len(theta)):
        for k in range(indptr[i], indptr[i + 1]):
            if columns[k] != i:
                B[i, columns[k]] = -values[k] / theta[i]


@njit(cache=True, nogil=True)
def list_regressions(indptr, columns, values, theta):
    """Neighbors of each variable and their coefficients -T_ij / T_ii; see ``sweep_sparse``."""
    p = len(theta)
    start, count = indptr[:-1].copy(), np.empty(p, np.int64)
    near, coefficients = np.empty(2 * len(values), np.int64), np.empty(2 * len(values))
    for i in range(p):
        at = start[i]
        for k in range(indptr[i], indptr[i + 1]):
            if columns[k] != i:
                near[at], coefficients[at] = columns[k], -values[k] / theta[i]
                at += 1
        count[i] = at - start[i]
    return start, count, near, coefficients


@njit(cache=True, nogil=True)
def symmetric_rows(regressions, theta):
    """Row pointers, columns and values of the symmetric precision of listed regressions.

    An entry is kept where both regressions have it. Turning the lists over sorts them.
    """
    start, count, near, values = regressions
    p = len(theta)
    turned_start = np.zeros(p + 1, np.int64)
    for i in range(p):
        for k in range(start[i], start[i] + count[i]):
            turned_start[near[k] + 1] += 1
    turned_start = np.cumsum(turned_start)
    end = turned_start[:-1].copy()
    turned, turned_values = np.empty(turned_start[-1], np.int64), np.empty(turned_start[-1])
    for i in range(p):
        for k in range(start[i], start[i] + count[i]):
            j = near[k]
            turned[end[j]], turned_values[end[j]] = i, values[k]
            end[j] += 1
    indptr = np.zeros(p + 1, np.int64)
    columns, entries = np.empty(p + len(turned), np.int64), np.empty(p + len(turned))
    row = np.zeros(p)
    at = 0
    for i in range(p):
        for k in range(start[i], start[i] + count[i]):
            row[near[k]] = values[k]
        first, last = turned_start[i], turned_start[i + 1]
        k = first
        while k < last and turned[k] < i:
            j = turned[k]
            columns[at], entries[at] = j, -0.5 * (row[j] * theta[i] + turned_values[k] * theta[j])
            at += row[j] != 0.0
            k += 1
        columns[at], entries[at] = i, theta[i]
        at += 1
        while k < last:
            j = turned[k]
            columns[at], entries[at] = j, -0.5 * (row[j] * theta[i] + turned_values[k] * theta[j])
            at += row[j] != 0.0
            k += 1
        for k in range(start[i], start[i] + count[i]):
            row[near[k]] = 0.0
        indptr[i + 1] = at
    return indptr, columns[:at], entries[:at]


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
