"""Compiled inverse of small matrices, which LAPACK's threads would slow down."""

import numpy as np
from numba import njit

from mnpca.precision._kernels.shared import FAST, factorize


@njit(cache=True, nogil=True, fastmath=FAST)
def invert(matrix, out):
    """Fill out with the inverse of a positive definite matrix, whose lower triangle is overwritten.

    Returns whether the matrix is positive definite.
    """
    p = matrix.shape[0]
    if not factorize(matrix, p):
        return False
    # Row i of the factor's inverse, from those before it.
    root = np.zeros((p, p))
    for i in range(p):
        row = root[i]
        for k in range(i):
            factor, other = matrix[i, k], root[k]
            for j in range(k + 1):
                row[j] -= factor * other[j]
        for j in range(i):
            row[j] /= matrix[i, i]
        row[i] = 1.0 / matrix[i, i]
    for i in range(p):
        for j in range(p):
            out[i, j] = 0.0
    for k in range(p):
        row = root[k]
        for i in range(k + 1):
            for j in range(k + 1):
                out[i, j] += row[i] * row[j]
    return True
