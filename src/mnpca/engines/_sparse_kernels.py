"""Compiled loops over the nonzeros of a CSR matrix (numba only)."""

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True)
def dense_rows(indptr, indices, data, rows, offset, scale, by_row, out):
    """Write the listed rows as ``(y - offset) / scale``, both of the columns or of the rows."""
    kind = out.dtype.type
    background = np.empty(out.shape[1], out.dtype)
    if not by_row:
        for j in range(out.shape[1]):
            background[j] = kind(-offset[j] / scale[j])
    for r in range(len(rows)):
        i = rows[r]
        if by_row:
            background[:] = kind(-offset[i] / scale[i])
        target = out[r]
        target[:] = background
        for u in range(indptr[i], indptr[i + 1]):
            j = indices[u]
            k = i if by_row else j
            target[j] = kind((data[u] - offset[k]) / scale[k])


@njit(cache=True, nogil=True, fastmath=_FAST)
def pair_products(left, right, metric, i, j, start, stop, out):
    """``y_i' B z_j`` of the listed pairs from `start` to `stop`; pairs with the same i together.

    `left`, `right` and `metric` are CSR matrices as (indptr, indices, data).
    """
    weighted = np.zeros(len(metric[0]) - 1)
    last = -1
    for e in range(start, stop):
        if i[e] != last:
            if last >= 0:
                _spread(left, metric, last, 0.0, weighted)
            last = i[e]
            _spread(left, metric, last, 1.0, weighted)
        total = 0.0
        for u in range(right[0][j[e]], right[0][j[e] + 1]):
            total += right[2][u] * weighted[right[1][u]]
        out[e] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _spread(left, metric, i, sign, weighted):
    """Add ``y_i' B`` to a dense row, or clear the entries that it has where the sign is zero."""
    for u in range(left[0][i], left[0][i + 1]):
        k = left[1][u]
        for v in range(metric[0][k], metric[0][k + 1]):
            if sign == 0.0:
                weighted[metric[1][v]] = 0.0
            else:
                weighted[metric[1][v]] += left[2][u] * metric[2][v]


@njit(cache=True, nogil=True, fastmath=_FAST)
def col_products(left, right, start, stop, out):
    """Add ``sum_i y_i z_i'`` over the rows from `start` to `stop` of two CSR matrices to `out`."""
    for i in range(start, stop):
        for u in range(left[0][i], left[0][i + 1]):
            target, weight = out[left[1][u]], left[2][u]
            for v in range(right[0][i], right[0][i + 1]):
                target[right[1][v]] += weight * right[2][v]
