"""Compiled loops over the data matrix, its residual, CSR matrices and thin arrays (numba only).

Loops from `start` to `stop` are shared out among threads. A CSR matrix comes as its parts, or as
the tuple (indptr, indices, data).
"""

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def times_sparse(rows, indptr, indices, data):
    """Rows @ P for a symmetric sparse P in CSR form, one row at a time."""
    out = np.empty_like(rows)
    for i in range(rows.shape[0]):
        source, target = rows[i], out[i]
        for a in range(len(indptr) - 1):
            total = rows.dtype.type(0)
            for u in range(indptr[a], indptr[a + 1]):
                total += data[u] * source[indices[u]]
            target[a] = total
    return out


@njit(cache=True, nogil=True, fastmath=_FAST)
def pair_dots(left, right, i, j):
    """<left_i, right_j> of each listed pair."""
    out = np.empty(len(i))
    for e in range(len(i)):
        a, b = left[i[e]], right[j[e]]
        dot = left.dtype.type(0)
        for c in range(len(a)):
            dot += a[c] * b[c]
        out[e] = dot
    return out


@njit(cache=True, nogil=True)
def dense_rows(indptr, indices, data, rows, offset, scale, out):
    """Write the listed rows as ``(y - offset) / scale``."""
    kind = out.dtype.type
    background = np.empty(out.shape[1], out.dtype)
    for j in range(out.shape[1]):
        background[j] = kind(-offset[j] / scale[j])
    for r in range(len(rows)):
        target = out[r]
        target[:] = background
        for u in range(indptr[rows[r]], indptr[rows[r] + 1]):
            j = indices[u]
            target[j] = kind((data[u] - offset[j]) / scale[j])


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
    """Add rows `start` to `stop` of ``Y'Z`` to `out`, both CSR matrices."""
    for i in range(len(left[0]) - 1):
        for u in range(left[0][i], left[0][i + 1]):
            if start <= left[1][u] < stop:
                target, weight = out[left[1][u]], left[2][u]
                for v in range(right[0][i], right[0][i + 1]):
                    target[right[1][v]] += weight * right[2][v]


@njit(cache=True, nogil=True, fastmath=_FAST)
def csr_times(indptr, indices, data, thin, start, stop, out):
    """Rows `start` to `stop` of a CSR matrix times a dense array, in the type of that."""
    kind = thin.dtype.type
    for i in range(start, stop):
        target = out[i]
        target[:] = 0.0
        u, last = indptr[i], indptr[i + 1]
        while u + 4 <= last:  # four at a time: the target is fetched and stored once for them
            a, b, c, d = (
                thin[indices[u]],
                thin[indices[u + 1]],
                thin[indices[u + 2]],
                thin[indices[u + 3]],
            )
            x, y = kind(data[u]), kind(data[u + 1])
            z, w = kind(data[u + 2]), kind(data[u + 3])
            for m in range(len(target)):
                target[m] += x * a[m] + y * b[m] + z * c[m] + w * d[m]
            u += 4
        while u < last:
            source, weight = thin[indices[u]], kind(data[u])
            for m in range(len(target)):
                target[m] += weight * source[m]
            u += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def csr_transposed_times(indptr, indices, data, thin, start, stop, out):
    """Add the transpose of rows `start` to `stop` of a CSR matrix times a thin array to `out`."""
    for i in range(start, stop):
        source = thin[i]
        for u in range(indptr[i], indptr[i + 1]):
            target = out[indices[u]]
            weight = data[u]
            for c in range(len(source)):
                target[c] += weight * source[c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def rotate_small(items, blocks, thin, start, stop, out):
    """Rotate the components from `start` to `stop`: block' Z[items]. Blocks repeat in turn."""
    size = items.shape[1]
    for c in range(start, stop):
        block = blocks[c % len(blocks)]
        for a in range(size):
            target = out[items[c, a]]
            target[:] = 0.0
            for b in range(size):
                source = thin[items[c, b]]
                weight = block[b, a]
                for m in range(len(target)):
                    target[m] += weight * source[m]
