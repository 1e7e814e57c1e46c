"""Random sparse precision matrices with a chosen density and condition number."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from sklearn.utils import check_random_state

from mnpca._typing import FloatArray, RandomState


def random_sparse_precision(
    size: int, density: float = 0.01, condition: float = 32.0, random_state: RandomState = None
) -> sp.csr_array:
    """Draw a sparse positive definite matrix with unit diagonal.

    The eigenvalues ``condition ** (-i / (size - 1))`` stand on the diagonal; random Jacobi
    rotations (two distinct indices, an angle uniform on (-pi, pi)) mix them until the share of
    nonzeros reaches ``0.95 * density``; then rows and columns are scaled to a unit diagonal
    (so the final condition number differs from `condition`).

    Parameters
    ----------
    size : int
        Number of rows and columns.
    density : float, default=0.01
        Wanted share of nonzero entries, the diagonal included.
    condition : float, default=32.0
        Ratio of the largest to the smallest eigenvalue before scaling; 1 gives the identity.
    random_state : int, RandomState instance or None, default=None
        Source of the rotations.

    Returns
    -------
    scipy.sparse.csr_array of shape (size, size)

    Examples
    --------
    >>> from mnpca.datasets import random_sparse_precision
    >>> precision = random_sparse_precision(50, density=0.05, condition=8, random_state=0)
    >>> bool((precision.diagonal().round(12) == 1).all())
    True
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}.")
    if not 0.0 <= density <= 1.0:
        raise ValueError(f"density must lie in [0, 1], got {density}.")
    if condition < 1.0:
        raise ValueError(f"condition must be at least 1, got {condition}.")
    if size == 1 or condition == 1.0:
        return sp.eye_array(size, format="csr")
    eigenvalues = condition ** (-np.arange(size) / (size - 1))
    wanted = int(0.95 * density * size**2)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    precision = sp.csr_array(_rotate_until(eigenvalues, wanted, rng))
    scale = sp.diags_array(1.0 / np.sqrt(precision.diagonal()))
    return sp.csr_array(scale @ precision @ scale)


def chain_precision(size: int, correlation: float) -> sp.csr_array:
    """Precision of a stationary first-order autoregression with unit diagonal.

    Neighbors i, i + 1 have lag-one correlation `correlation` before the scaling to a unit
    diagonal; the precision is tridiagonal.

    Examples
    --------
    >>> from mnpca.datasets import chain_precision
    >>> chain_precision(4, 0.5).nnz
    10
    """
    if not -1.0 < correlation < 1.0:
        raise ValueError(f"correlation must lie in (-1, 1), got {correlation}.")
    diagonal = np.full(size, 1.0 + correlation**2)
    diagonal[[0, -1]] = 1.0
    off_diagonal = np.full(size - 1, -correlation)
    chain = sp.diags_array([off_diagonal, diagonal, off_diagonal], offsets=[-1, 0, 1])
    scale = sp.diags_array(1.0 / np.sqrt(diagonal))
    return sp.csr_array(scale @ chain @ scale)


@njit(cache=True, nogil=True)
def _rotate_until(eigenvalues: FloatArray, wanted: float, rng: np.random.Generator) -> Any:
    """Rotate diag(eigenvalues) by random planes until it has `wanted` nonzeros."""
    size = len(eigenvalues)
    matrix = np.zeros((size, size))
    for i in range(size):
        matrix[i, i] = eigenvalues[i]
    nonzeros = size
    while nonzeros < wanted:
        i = int(rng.integers(0, size))
        j = int(rng.integers(0, size - 1))
        if j >= i:
            j += 1
        angle = rng.uniform(-np.pi, np.pi)
        nonzeros += rotate(matrix, i, j, np.cos(angle), np.sin(angle))
    return matrix


@njit(cache=True, nogil=True)
def rotate(matrix: FloatArray, i: int, j: int, cosine: float, sine: float) -> int:
    """Rotate a symmetric matrix in the plane (i, j) in place; return the change of nonzeros."""
    change = 0
    for k in range(len(matrix)):  # rows i and j; the symmetric columns follow below
        if k in (i, j):
            continue
        a, b = matrix[i, k], matrix[j, k]
        if a == 0.0 and b == 0.0:
            continue
        change -= 2 * ((a != 0.0) + (b != 0.0))
        a, b = cosine * a - sine * b, sine * a + cosine * b
        change += 2 * ((a != 0.0) + (b != 0.0))
        matrix[i, k] = a
        matrix[k, i] = a
        matrix[j, k] = b
        matrix[k, j] = b
    aii, ajj, aij = matrix[i, i], matrix[j, j], matrix[i, j]
    matrix[i, i] = cosine**2 * aii - 2 * sine * cosine * aij + sine**2 * ajj
    matrix[j, j] = sine**2 * aii + 2 * sine * cosine * aij + cosine**2 * ajj
    change -= 2 * (aij != 0.0)
    aij = sine * cosine * (aii - ajj) + (cosine**2 - sine**2) * aij
    change += 2 * (aij != 0.0)
    matrix[i, j] = aij
    matrix[j, i] = aij
    return change
