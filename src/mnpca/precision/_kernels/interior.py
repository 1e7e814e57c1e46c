"""Compiled Hessian of the log-determinant over pairs of variables."""

from numba import njit


@njit(cache=True, nogil=True)
def fill_hessian(T, rows, columns, out):
    """Lower triangle of out = 2 (T_ik T_jm + T_im T_jk) for the pairs (i, j) and (k, m)."""
    for a in range(len(rows)):
        left, right, row = T[rows[a]], T[columns[a]], out[a]
        for b in range(a + 1):
            k, m = rows[b], columns[b]
            row[b] = 2.0 * (left[k] * right[m] + left[m] * right[k])
