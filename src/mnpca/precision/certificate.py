"""Duality gap of a pair of iterates.

The dual of min -logdet T + tr(S T) + |alpha o T|_1 is max logdet W + p over |W - S| <= alpha
(equality on an unpenalized diagonal). A point with W = S + alpha sign(T) on the support of T has
tr(S T) + |alpha o T|_1 = tr(T W), so that the gap of the pair is the sum of l - log(1 + l) over
the eigenvalues l of T W - I. There are two ways to it:

- by factors: one Cholesky factorization each for logdet T and logdet W;
- by the product T W, which is cheaper for a sparse T. With T or W definite the eigenvalues are
  real, their squares add up to q^2 = tr((T W - I)^2), and (l - log(1 + l)) / l^2 falls with l: the
  gap is at most -q - log(1 - q). The Frobenius norm of T W - I, in any units of the variables,
  is an upper bound on q.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnpca.precision._kernels.certificate import (
    distance_from_inverse,
    fill_dual,
    fill_primal,
    largest_gap,
    make_feasible,
    support_size,
    to_csr,
    trace_of_square,
)
from mnpca.precision._types import Array
from mnpca.precision.iterate import Iterate, Sparse
from mnpca.precision.problem import Problem
from mnpca.precision.result import log_determinant

# Up to this share of nonzeros a product with T costs less than a factorization.
SPARSE = 1.0 / 12.0
# A bound of so many times the gap to reach falls below it in a sweep, which costs less than the two
# factorizations that tell the gap itself.
NEARLY = 2.0


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is known of a pair of iterates.

    Attributes
    ----------
    precision : Sparse
        The primal point T.
    cost : float
        tr(S T) + |alpha o T|_1.
    logdet : float
        Log-determinant of T; nan if T is known to be definite without it, -inf if T is not.
    gap : float
        Upper bound on the distance of T's objective from the optimum; inf if there is none.
    estimate : float
        The gap as far as known, for the decision how to go on.
    definite : bool
        Whether the iterate's W is known to be positive definite.
    dual : float
        The best dual objective so far, where it was computed.
    """

    precision: Sparse
    cost: float
    logdet: float
    gap: float
    estimate: float
    definite: bool = False
    dual: float = -np.inf

    @property
    def objective(self) -> float:
        """Value of the problem at T; nan if the log-determinant was not computed."""
        return self.cost - self.logdet


def dual_value(problem: Problem, W: Array, B: Array, work: Array, enough: float) -> float:
    """Dual objective at a feasible point near W; -inf if that is not positive definite.

    B gives the support of the precision and minus its signs. A point that uses them errs by
    second order only; where that one has less than ``enough``, W clipped is tried too, which is
    nearer to W and so more often definite.
    """
    best = -np.inf
    for on_support in (True, False):
        fill_dual(problem.covariance, problem.alpha, problem.diagonal, W, B, on_support, work)
        best = max(best, log_determinant(work) + problem.size)
        if best >= enough:
            break
    return best


def certify(
    problem: Problem, iterate: Iterate, goal: float, definite: bool, dual: float, work: Array
) -> Certificate:
    """Bound the gap of an iterate, whose W is known to be positive definite or not.

    ``dual`` is the best dual objective so far. For a sparse precision the iterate gets the feasible
    W of the pair.
    """
    if support_size(iterate.B) <= SPARSE * problem.size**2:
        return _by_product(problem, iterate, goal, definite, work)
    return by_factors(problem, iterate, goal, dual, work)


def move_to_feasible(
    problem: Problem, W: Array, precision: Sparse
) -> tuple[float, Array, float, float]:
    """Move W to the dual point that belongs to a precision; see the kernel."""
    S, alpha, diagonal = problem.covariance, problem.alpha, problem.diagonal
    cost, parts, moved, size = make_feasible(S, alpha, diagonal, *precision, W)
    return float(cost), parts, float(moved), float(size)


def _by_product(
    problem: Problem, iterate: Iterate, goal: float, definite: bool, work: Array
) -> Certificate:
    B, theta = iterate.B, iterate.theta
    precision = Sparse(*to_csr(B, theta))
    cost, _, moved, size = move_to_feasible(problem, iterate.W, precision)
    # The rows are needed together only if their norms will not do, which is likely without this.
    out = work[:1] if definite else work
    alike = np.ones_like(theta)
    parts, spread = distance_from_inverse(*precision, theta, iterate.W, alike, out)
    square = float(parts.sum())
    distance = np.sqrt(square)
    # |X| < 1 makes T W = I + X and so T W + W T definite in its symmetric part, and T and W have
    # the same inertia (Lyapunov). For W before its move, X is at most this sum.
    definite = definite and distance + size * moved < 1.0
    gap = largest_gap(distance, spread)
    if definite and gap <= goal:
        return Certificate(precision, cost, np.nan, gap, gap, definite)
    if gap > goal:
        if len(out) < len(work):
            distance_from_inverse(*precision, theta, iterate.W, alike, work)
        # The eigenvalues' squares add up to the trace of the square, which may be much less.
        square = min(square, abs(trace_of_square(work)))
        gap = largest_gap(np.sqrt(square), spread)
        if definite and gap <= goal:
            return Certificate(precision, cost, np.nan, gap, gap, definite)
        estimate = 0.5 * square
        if estimate > goal or (definite and gap <= NEARLY * goal):
            return Certificate(precision, cost, np.nan, np.inf, estimate, definite)
    fill_primal(problem.covariance, problem.alpha, problem.diagonal, B, theta, work)
    logdet = log_determinant(work)
    if logdet == -np.inf:
        return Certificate(precision, cost, logdet, np.inf, np.inf)
    if gap > goal:
        np.copyto(work, iterate.W)
        gap = max(cost - logdet - log_determinant(work) - problem.size, 0.0)
    return Certificate(precision, cost, logdet, gap, gap, definite=gap < np.inf)


def by_factors(
    problem: Problem, iterate: Iterate, goal: float, dual: float, work: Array
) -> Certificate:
    """Bound the gap of an iterate by two factorizations, given the best dual objective so far."""
    B, theta = iterate.B, iterate.theta
    cost = float(fill_primal(problem.covariance, problem.alpha, problem.diagonal, B, theta, work))
    logdet = log_determinant(work)
    value = cost - logdet
    dual = max(dual, dual_value(problem, iterate.W, B, work, value - goal))
    gap = max(value - dual, 0.0)
    precision = Sparse(*to_csr(B, theta))
    return Certificate(precision, cost, logdet, gap, gap, dual=dual)
