"""Random sparse precisions, and noise with these precisions."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.linalg import cholesky, solve_triangular
from sklearn.utils import check_random_state

from mnpca._components import group_by_label, label_components
from mnpca._typing import FloatArray, IntArray, RandomState

#: Unit-variance entries of the white matrix behind the noise, by name.
NOISE_KINDS = ("gaussian", "laplace", "uniform", "mixture-scale", "mixture-heavy", "mixture-shift")


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


def planted_precision(
    size: int,
    degree: float = 2.0,
    strength: tuple[float, float] = (0.2, 0.4),
    random_state: RandomState = None,
) -> sp.csr_array:
    """Draw a precision whose graph is random and whose edges are all of a noticeable strength.

    Pairs are chosen at random, ``degree * size / 2`` of them, each with an entry of size uniform
    on `strength` and random sign; where that is not positive definite the diagonal is raised, and
    rows and columns are scaled to a unit diagonal.

    Parameters
    ----------
    size : int
        Number of items.
    degree : float, default=2.0
        Edges per item, on average.
    strength : pair of float, default=(0.2, 0.4)
        Smallest and largest size of an entry, before the diagonal is raised.
    random_state : int, RandomState instance or None, default=None
        Source of everything random.

    Returns
    -------
    scipy.sparse.csr_array of shape (size, size)

    Examples
    --------
    >>> from mnpca.datasets import planted_precision
    >>> planted_precision(20, degree=2, random_state=0).nnz
    60
    """
    rng = check_random_state(random_state)
    row, col = np.triu_indices(size, 1)
    chosen = rng.permutation(len(row))[: int(degree * size / 2)]
    values = rng.uniform(*strength, len(chosen)) * rng.choice([-1.0, 1.0], len(chosen))
    precision = np.zeros((size, size))
    precision[row[chosen], col[chosen]] = values
    precision += precision.T
    lowest = float(np.linalg.eigvalsh(precision)[0])
    precision[np.diag_indices(size)] = max(1.0, 0.05 - 1.1 * lowest)
    scale = 1.0 / np.sqrt(np.diag(precision))
    return sp.csr_array(precision * scale * scale[:, None])


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
    nonzeros = size = len(eigenvalues)
    matrix = np.diag(eigenvalues)
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
        matrix[i, k] = matrix[k, i] = a
        matrix[j, k] = matrix[k, j] = b
    aii, ajj, aij = matrix[i, i], matrix[j, j], matrix[i, j]
    matrix[i, i] = cosine**2 * aii - 2 * sine * cosine * aij + sine**2 * ajj
    matrix[j, j] = sine**2 * aii + 2 * sine * cosine * aij + cosine**2 * ajj
    change -= 2 * (aij != 0.0)
    aij = sine * cosine * (aii - ajj) + (cosine**2 - sine**2) * aij
    matrix[i, j] = matrix[j, i] = aij
    return change + 2 * (aij != 0.0)


def sample_matrix_normal(
    row_precision: Any,
    col_precision: Any,
    random_state: RandomState = None,
    *,
    noise: str = "gaussian",
) -> FloatArray:
    """Draw E = La Z Lb', La and Lb the lower Cholesky factors of the two covariances.

    With A = U U', U upper triangular, the lower Cholesky factor of inv(A) is inv(U)', so only
    triangular solves are needed, one per connected component of the graph.

    Parameters
    ----------
    row_precision, col_precision : array or sparse matrix, (n, n) and (p, p)
        Inverse covariances among rows and among columns.
    random_state : int, RandomState instance or None, default=None
        Source of the white matrix Z.
    noise : {"gaussian", "laplace", "uniform", "mixture-scale", "mixture-heavy", \
"mixture-shift"}, default="gaussian"
        Distribution of the independent entries of Z; all have mean 0 and variance 1, so the
        covariance of E is the same for all.

    Returns
    -------
    ndarray of shape (n, p)

    Examples
    --------
    >>> from mnpca.datasets import chain_precision, sample_matrix_normal
    >>> sample_matrix_normal(chain_precision(5, 0.4), chain_precision(4, 0.4)).shape
    (5, 4)
    """
    rng = check_random_state(random_state)
    white = white_entries((row_precision.shape[0], col_precision.shape[0]), rng, noise)
    return color_rows(col_precision, color_rows(row_precision, white).T).T


def white_entries(
    shape: tuple[int, ...], rng: np.random.RandomState, noise: str = "gaussian"
) -> FloatArray:
    """Return independent entries with mean 0 and variance 1 of the named distribution."""
    if noise == "gaussian":
        return rng.standard_normal(shape)
    if noise == "laplace":
        return rng.laplace(scale=np.sqrt(0.5), size=shape)
    if noise == "uniform":
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=shape)
    if noise not in NOISE_KINDS:
        raise ValueError(f"noise must be one of {NOISE_KINDS}, got {noise!r}.")
    first, normal = rng.uniform(size=shape), rng.standard_normal(shape)
    if noise == "mixture-scale":  # 0.8 N(0, 1/4) + 0.2 N(0, 4)
        return normal * np.where(first < 0.2, 2.0, 0.5)
    if noise == "mixture-heavy":  # 0.95 N(0, v) + 0.05 N(0, 10 v)
        return normal * np.where(first < 0.05, np.sqrt(10.0), 1.0) / np.sqrt(0.95 + 0.05 * 10.0)
    return 0.6 * normal + np.where(first < 0.5, -0.8, 0.8)  # N(-0.8, 0.36), N(0.8, 0.36)


def color_rows(precision: Any, white: FloatArray) -> FloatArray:
    """Return L Z, with L the lower Cholesky factor of inv(precision), by component."""
    colored = white / np.sqrt(precision.diagonal())[:, None]
    for items, upper in upper_factors(precision):
        colored[items] = solve_triangular(upper, white[items], trans="T")
    return colored


def upper_factors(precision: Any) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield (items, U) with U upper triangular and U U' the block, by component of several."""
    precision = sp.csr_array(precision)
    for items in group_by_label(label_components(precision)):
        if len(items) > 1:
            block = precision[items][:, items].toarray()
            yield items, cholesky(block[::-1, ::-1], lower=True)[::-1, ::-1]


def row_and_column_precisions(
    given: tuple[Any, Any], shape: tuple[int, int], draw: Callable[[int], sp.csr_array]
) -> list[sp.csr_array]:
    """Return the given precisions of a matrix of this shape as sparse matrices, or drawn ones."""
    precisions = []
    for name, precision, size in zip(("row", "col"), given, shape, strict=True):
        precision = sp.csr_array(draw(size) if precision is None else precision)
        if precision.shape != (size, size):
            raise ValueError(
                f"{name}_precision must have shape {(size, size)}, got {precision.shape}."
            )
        precisions.append(precision)
    return precisions
