"""Compiled loops over the data matrix and its residual (numba only)."""

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
def pick_large(block, first_row, first_col, level, rows, cols, values):
    """List the entries of a block above the diagonal with |entry| > level; return their count.

    The count may exceed the room in the output arrays; the caller then comes again with more.
    """
    count = 0
    for a in range(block.shape[0]):
        for b in range(max(0, first_row + a + 1 - first_col), block.shape[1]):
            if abs(block[a, b]) > level:
                if count < len(rows):
                    rows[count] = first_row + a
                    cols[count] = first_col + b
                    values[count] = block[a, b]
                count += 1
    return count


@njit(cache=True, nogil=True, fastmath=_FAST)
def small_blocks(left, right, order, bounds, offsets, largest, out):
    """Gram blocks of the small components, written one after the other into `out`."""
    for c in range(len(bounds) - 1):
        start = bounds[c]
        size = bounds[c + 1] - start
        if size > largest:
            continue
        block = out[offsets[c] : offsets[c + 1]].reshape(size, size)
        for a in range(size):
            x = left[order[start + a]]
            for b in range(a + 1):
                y = right[order[start + b]]
                dot = left.dtype.type(0)
                for m in range(len(x)):
                    dot += x[m] * y[m]
                block[a, b] = dot
                block[b, a] = dot
