"""Duality gap of a pair of iterates.

The dual of min -logdet T + tr(S T) + |alpha o T|_1 is max logdet W + p over |W - S| <= alpha
(equality on an unpenalised diagonal). A point with W = S + alpha sign(T) on the support of T has
tr(S T) + |alpha o T|_1 = tr(T W), so that the gap of the pair is the sum of l - log(1 + l) over
the eigenvalues l of T W - I. There are two ways to it:

- by factors: one Cholesky factorisation each for logdet T and logdet W;
- by the product T W, which is cheaper for a sparse T. The eigenvalues are real, their squares add
  up to at most F^2, F the Frobenius norm of T W - I in any units of the variables, and
  l - log(1 + l) falls faster than l^2: the gap is at most -F - log(1 - F).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnpca.precision._kernels.certificate import (
    distance_from_inverse,
    fill_dual,
    fill_primal,
    make_feasible,
    to_csr,
    trace_of_product,
)
from mnpca.precision.iterate import Iterate, Sparse, Start
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, log_determinant

# Up to this share of nonzeros a product with T costs less than a factorisation.
SPARSE = 1.0 / 12.0
# Above this gap the bound from the product is more than half as large again as the gap.
LARGEST_BOUND = 0.3


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
    least : float
        Lower bound on the smallest eigenvalue of T^(1/2) W T^(1/2); 0 if none is known.
    dual : float
        The best dual objective so far, where it was computed.
    """

    precision: Sparse
    cost: float
    logdet: float
    gap: float
    estimate: float
    least: float = 0.0
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


def bound(distance: float) -> float:
    """Return the largest gap of a pair whose product is at this distance from the identity."""
    return float(-distance - np.log1p(-distance)) if distance < 1.0 else np.inf


def certify(
    problem: Problem, iterate: Iterate, goal: float, definite: bool, dual: float, work: Array
) -> Certificate:
    """Bound the gap of an iterate, whose W is known to be positive definite or not.

    ``dual`` is the best dual objective so far. An iterate that passes by the product T W gets the
    feasible W of the pair.
    """
    if goal <= LARGEST_BOUND and np.count_nonzero(iterate.B) <= SPARSE * problem.size**2:
        return _by_product(problem, iterate, goal, definite, work)
    return by_factors(problem, iterate, goal, dual, work)


def certify_start(problem: Problem, start: Start, promising: float) -> Certificate:
    """Bound the gap of an earlier solution for the present problem, if it looks promising.

    Promising is a trace of T W within so much of its value at the solution, p.
    """
    assert start.precision is not None
    W = start.iterate.W
    cost = float(trace_of_product(*start.precision, W))
    gap, least = np.inf, 0.0
    if abs(cost - problem.size) <= promising:
        square, _ = distance_from_inverse(*start.precision, start.iterate.theta, W)
        gap, least = bound(np.sqrt(square)), 1.0 - np.sqrt(square)
    return Certificate(start.precision, cost, start.logdet, gap, gap, least)


def _by_product(
    problem: Problem, iterate: Iterate, goal: float, definite: bool, work: Array
) -> Certificate:
    B, theta = iterate.B, iterate.theta
    precision = Sparse(*to_csr(B, theta))
    moved = make_feasible(
        problem.covariance, problem.alpha, problem.diagonal, B, theta, iterate.W, work
    )
    square, size = distance_from_inverse(*precision, theta, work)
    distance = float(np.sqrt(square))
    gap, logdet = bound(distance), np.nan
    cost = float(trace_of_product(*precision, work))
    if gap > goal:
        return Certificate(precision, cost, logdet, gap, min(gap, float(square)))
    # |X| < 1 makes T W = I + X and so T W + W T definite in its symmetric part, and T and W have
    # the same inertia (Lyapunov). For the W of the descent, X is at most the sum below.
    if not (definite and distance + size * moved < 1.0):
        lower = np.empty_like(work)
        fill_primal(problem.covariance, problem.alpha, problem.diagonal, B, theta, lower)
        logdet = log_determinant(lower)
        if logdet == -np.inf:
            return Certificate(precision, cost, logdet, np.inf, np.inf)
    iterate.W = work
    return Certificate(precision, cost, logdet, gap, gap, 1.0 - distance)


def by_factors(
    problem: Problem, iterate: Iterate, goal: float, dual: float, work: Array
) -> Certificate:
    """Bound the gap of an iterate by two factorisations, given the best dual objective so far."""
    B, theta = iterate.B, iterate.theta
    cost = float(fill_primal(problem.covariance, problem.alpha, problem.diagonal, B, theta, work))
    logdet = log_determinant(work)
    value = cost - logdet
    dual = max(dual, dual_value(problem, iterate.W, B, work, value - goal))
    gap = max(value - dual, 0.0)
    precision = Sparse(*to_csr(B, theta))
    return Certificate(precision, cost, logdet, gap, gap, dual=dual)
