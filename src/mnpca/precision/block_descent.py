"""One connected component: block coordinate descent on the covariance, then a certificate.

After Friedman, Hastie and Tibshirani (2008), Biostatistics 9: column j of the covariance is the
fit of a lasso of variable j on the others. No factorization is needed until the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.arrays import cholesky, inverse
from mnpca.precision._kernels import descend, fill_soft
from mnpca.precision.certificate import Certificate, Iterate, certify
from mnpca.precision.interior import is_small, solve_by_interior_point
from mnpca.precision.problem import NotCertifiedError, Problem, not_certified

# Column sweeps and certificates before the interior-point method takes over; and sweeps between two
# certificates, a number that doubles from the least to the most.
MAX_TOTAL, MAX_CERTIFICATES = 1000, 10
MIN_SWEEPS, MAX_SWEEPS = 20, 200
# A gap so many times a sweep's progress will not fall before the column problems are solved better.
STALLED = 8.0
# Sloppier sweeps than for this tolerance save nothing: more of them are needed.
LOOSEST = 1e-4
# Accuracy of the column problems in the last sweeps, per unit of tol; nothing is gained below
# rounding.
LAST_INNER, SMALLEST_INNER = 3e-3, 1e-14
# So accurate, the sweeps keep every conditional variance positive from a feasible start.
EXACT_INNER = 1e-9
# Where there are few enough variables for the interior-point method, it takes over after so many
# sweeps, or after the squared number of variables over this: a hard sweep over few of them costs
# about as much as all its steps.
EXACT_SWEEPS, PATIENCE = 60, 10
# Beyond this ratio of a marginal to a conditional variance, double precision certifies nothing.
MAX_INFLATION = 1e13


# Accuracy of the column problems in the first sweep, from a cold start and from a warm one; and
# progress at which to certify first. All are per unit of tol.
COLD, WARM = 10.0, 6e-3
FIRST = 15.0


@dataclass(frozen=True, eq=False)
class ComponentSolution:
    """Precision of one component with its certificate, and the iterate behind it."""

    iterate: Iterate
    certificate: Certificate
    n_iter: int


def solve_component(
    problem: Problem,
    tol: float,
    max_sweeps: int = MAX_TOTAL,
    warm: Callable[[], Iterate] | None = None,
) -> ComponentSolution:
    """Solve one component until its duality gap is at most tol times its number of variables.

    Pairs, and problems without penalty, have a closed form. The others are swept from one start
    after the other until a descent does not break down. Where it ends with too large a gap, or has
    taken max_sweeps, the interior-point method takes over, if there are not too many variables.
    """
    pair = _solve_pair(problem) if problem.size == 2 else None
    if pair is not None:
        return pair
    if not problem.alpha.any():
        return _solve_unpenalized(problem)
    most = MAX_TOTAL
    if is_small(problem):
        most = min(max_sweeps, max(MIN_SWEEPS, problem.size**2 // PATIENCE))
    for start, inner, limit in _starts(problem, tol, warm, most):
        solution = sweep_and_certify(problem, tol, start, inner, limit)
        if solution is not None:
            break
    gap = np.inf if solution is None else solution.certificate.gap
    if solution is not None and gap <= tol * problem.size:
        return solution
    if not is_small(problem):
        raise not_certified(gap / problem.size)
    point = solve_by_interior_point(problem, tol * problem.size)
    iterate = Iterate.of(point.T, point.W)
    certificate = Certificate(iterate.to_precision(), point.value, point.gap, point.gap)
    return ComponentSolution(iterate, certificate, point.n_iter)


def _starts(
    problem: Problem, tol: float, warm: Callable[[], Iterate] | None, most: int
) -> Iterator[tuple[Iterate, float, int]]:
    """Yield starts: the one that is known; S soft-thresholded; S shrunk; the same for exact sweeps.

    The first cold one is nearest to the solution but may be indefinite, the others are definite.
    With them go the accuracy of the first sweep, per unit of tol, and the most sweeps.
    """
    if warm is not None:
        yield warm(), WARM, most
    exact = min(EXACT_INNER / min(tol, LOOSEST), LAST_INNER)
    few = min(most, EXACT_SWEEPS) if is_small(problem) else most
    for fill, inner, limit in ((_soft, COLD, most), (_shrunk, COLD, most), (_shrunk, exact, few)):
        W = fill(problem)
        yield Iterate(W, np.zeros_like(W), 1.0 / problem.diagonal), inner, limit


def _soft(problem: Problem) -> FloatArray:
    """Return S soft-thresholded by alpha. It may be indefinite."""
    W = np.empty_like(problem.covariance)
    fill_soft(problem.covariance, problem.alpha, problem.diagonal, W)
    return W


def _shrunk(problem: Problem) -> FloatArray:
    """Return S with its off-diagonal shrunk by as much as |W - S| <= alpha allows.

    It is definite and feasible whenever S is semi-definite and alpha positive.
    """
    size = np.abs(problem.covariance)
    np.fill_diagonal(size, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.nanmin(problem.alpha / size)
    W: FloatArray = (1.0 - min(share, 1.0)) * problem.covariance
    np.fill_diagonal(W, problem.diagonal)
    return W


def sweep_and_certify(
    problem: Problem, tol: float, iterate: Iterate, inner: float, max_sweeps: int
) -> ComponentSolution | None:
    """Sweep and certify, tightening until the gap passes; None if a sweep broke down."""
    goal = tol * problem.size
    scale = min(tol, LOOSEST)
    target, inner = FIRST * scale * problem.size, inner * scale
    inner_last = min(inner, LAST_INNER * scale)
    work = np.empty_like(iterate.W)
    total = 0
    for _ in range(MAX_CERTIFICATES):
        sweeps, progress, ok = descend(
            problem.covariance,
            problem.alpha,
            iterate.W,
            iterate.B,
            iterate.theta,
            target,
            inner,
            inner_last,
            min(max(MIN_SWEEPS, total), MAX_SWEEPS, max_sweeps - total),
        )
        total += sweeps
        if not ok:
            return None
        certificate = certify(problem, iterate, goal, work)
        if certificate.gap <= goal or total >= max_sweeps:
            break
        gap = certificate.estimate
        # On hard problems the gap falls more slowly than the progress, about as its power 2/3.
        target = progress * (0.1 if gap == np.inf else (0.8 * goal / gap) ** 1.5)
        if gap > STALLED * progress:
            inner_last = max(0.03 * inner_last, SMALLEST_INNER)
        inner = inner_last
    return ComponentSolution(iterate, certificate, total)


def _solve_pair(problem: Problem) -> ComponentSolution | None:
    """Return the inverse of S soft-thresholded; None where rounding would decide.

    In plain numbers, because most components of a sparse problem are pairs.
    """
    a, c = problem.diagonal.tolist()
    b, alpha = float(problem.covariance[0, 1]), float(problem.alpha[0, 1])
    w = math.copysign(max(abs(b) - alpha, 0.0), b)
    determinant = a * c - w * w
    if not a * c <= MAX_INFLATION * determinant:
        return None
    W, T = np.array([[a, w], [w, c]]), np.array([[c, -w], [-w, a]]) / determinant
    (t_a, t_b), (_, t_c) = T.tolist()
    cost = a * t_a + c * t_c + 2.0 * (b * t_b + alpha * abs(t_b))
    value = cost - math.log(t_a * t_c - t_b * t_b)
    gap = max(value - math.log(determinant) - 2.0, 0.0)
    iterate = Iterate.of(T, W)
    return ComponentSolution(iterate, Certificate(iterate.to_precision(), value, gap, gap), 1)


def _solve_unpenalized(problem: Problem) -> ComponentSolution:
    """Return the inverse of S, if it has one."""
    W = problem.covariance.copy()
    factor = cholesky(W)
    T = None if factor is None else inverse(factor)
    # So near to singular, rounding would decide.
    if T is None or np.max(np.diagonal(T) * problem.diagonal) > MAX_INFLATION:
        raise NotCertifiedError(
            "alpha = 0 needs a non-singular S: pass alpha > 0, or more samples than variables."
        )
    iterate = Iterate.of(T, W)
    certificate = certify(problem, iterate, np.inf, np.empty_like(W))
    return ComponentSolution(iterate, certificate, 1)
