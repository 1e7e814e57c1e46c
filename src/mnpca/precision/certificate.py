"""Duality gap of a pair of iterates.

The dual of min -logdet T + tr(S T) + |alpha o T|_1 is max logdet W + p over |W - S| <= alpha
(equality on an unpenalized diagonal). A point with W = S + alpha sign(T) on the support of T has
tr(S T) + |alpha o T|_1 = tr(T W), so that the gap of the pair is the sum of l - log(1 + l) over
the eigenvalues l of T W - I. It is bounded in one of two ways:

- by factors: one Cholesky factorization each for logdet T and logdet W;
- by the product T W, which is cheaper for a sparse T. With T definite the eigenvalues are real,
  their squares add up to q^2 = tr((T W - I)^2), and (l - log(1 + l)) / l^2 falls with l: the gap
  is at most -q - log(1 - q). The Frobenius norm of T W - I, in any units of the variables, is an
  upper bound on q, and a row sum of absolute values one on every l.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from mnpca._typing import FloatArray, IntArray
from mnpca.precision._kernels import distance_from_inverse, fill_dual, to_csr
from mnpca.precision.problem import Problem

# Up to this share of nonzeros a product with T costs less than a factorization.
SPARSE = 1.0 / 12.0
# Rows of a matrix that are multiplied with columns at once: these fit the processor's cache.
TILE = 64


@dataclass(eq=False)
class Iterate:
    """Working covariance W, regressions B (by rows) and conditional precisions theta."""

    W: FloatArray
    B: FloatArray
    theta: FloatArray

    @classmethod
    def of(cls, T: FloatArray, W: FloatArray) -> Iterate:
        """Return the iterate of a dense precision."""
        theta = np.diagonal(T).copy()
        B = -T / theta[:, None]
        np.fill_diagonal(B, 0.0)
        return cls(W, B, theta)

    def to_precision(self) -> Sparse:
        """Return the symmetric precision of the regressions."""
        return Sparse(*to_csr(self.B, self.theta))


class Sparse(NamedTuple):
    """A symmetric matrix by its compressed rows."""

    indptr: IntArray
    columns: IntArray
    values: FloatArray

    @property
    def rows(self) -> IntArray:
        """Row of each entry."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known of a pair of iterates.

    `value` is the objective at the precision T, inf if T is not known to be positive definite.
    `gap` bounds its distance from the optimum, inf if nothing does; `estimate` is the gap as far as
    known, from which the next target follows.
    """

    precision: Sparse
    value: float
    gap: float
    estimate: float


def certify(problem: Problem, iterate: Iterate, goal: float, work: FloatArray) -> Certificate:
    """Bound the gap of an iterate, whose W moves to the dual point where T is sparse.

    ``work`` is room for a matrix.
    """
    T = iterate.to_precision()
    if len(T.values) > SPARSE * problem.size**2:
        return _by_factors(problem, iterate.W, T, goal, work)
    W = iterate.W
    fill_dual(problem.covariance, problem.alpha, problem.diagonal, W, *T, True, W)
    square, radius = distance_from_inverse(*T, iterate.theta, W, work)
    gap = largest_gap(np.sqrt(square), radius)
    if gap > goal:
        # The eigenvalues' squares add up to the trace of the square, which may be much less.
        tiles = [slice(i, i + TILE) for i in range(0, len(work), TILE)]
        trace = sum(float(np.sum(work[tile] * work[:, tile].T)) for tile in tiles)
        square = min(square, abs(trace))
        gap = largest_gap(np.sqrt(square), radius)
        if 0.5 * square > goal:
            return Certificate(T, np.inf, np.inf, 0.5 * square)
    value = _value(problem, T, work)
    if value == np.inf:
        gap = np.inf
    elif gap > goal:
        np.copyto(work, W)
        gap = max(value - log_determinant(work) - problem.size, 0.0)
    return Certificate(T, value, gap, gap)


def _by_factors(
    problem: Problem, W: FloatArray, T: Sparse, goal: float, work: FloatArray
) -> Certificate:
    """Bound the gap by two factorizations, or by three.

    A dual point with the signs of T errs by second order only. Where it is not good enough, W
    clipped is tried too, which is nearer to W and so more often definite.
    """
    value, dual = _value(problem, T, work), -np.inf
    for on_support in (True, False):
        fill_dual(problem.covariance, problem.alpha, problem.diagonal, W, *T, on_support, work)
        dual = max(dual, log_determinant(work) + problem.size)
        if value - dual <= goal:
            break
    gap = max(value - dual, 0.0)
    return Certificate(T, value, gap, gap)


def _value(problem: Problem, T: Sparse, work: FloatArray) -> float:
    """Return the objective, inf where T is not positive definite."""
    rows, columns, values = T.rows, T.columns, T.values
    off = rows != columns
    i, j, x = rows[off], columns[off], values[off]
    penalty = problem.alpha[0, 0] if len(problem.alpha) == 1 else problem.alpha[i, j]
    cost = problem.covariance[i, j] @ x + np.sum(penalty * np.abs(x))
    work[:] = 0.0
    work[rows, columns] = values
    # The diagonal's penalty is part of ``diagonal``.
    return float(cost + problem.diagonal @ values[~off]) - log_determinant(work)


def largest_gap(distance: float, radius: float) -> float:
    """Return the largest gap of a pair with eigenvalues up to radius and this root of squares.

    These are the eigenvalues of T W - I, none of which is larger than the root of the sum of their
    squares. The gap is infinite where they may reach -1.
    """
    largest = min(distance, radius)
    if largest == 0.0 or not largest < 1.0:
        return 0.0 if largest == 0.0 else np.inf
    return float((distance / largest) ** 2 * (-largest - np.log1p(-largest)))


def log_determinant(lower: FloatArray) -> float:
    """Log-determinant from the lower triangle (overwritten), or -inf if not positive definite."""
    # The C-ordered lower triangle is the Fortran-ordered upper one, so nothing is copied.
    factor, info = lapack.dpotrf(lower.T, lower=0, overwrite_a=1, clean=0)
    return -np.inf if info != 0 else 2.0 * float(np.log(np.diagonal(factor)).sum())
