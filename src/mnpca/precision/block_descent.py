"""One connected component: block coordinate descent on the covariance, then a certificate.

After Friedman, Hastie and Tibshirani (2008), Biostatistics 9: column j of the covariance is the
fit of a lasso of variable j on the others. No factorisation is needed until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnpca.precision._kernels.descent import descend, fill_mixed, fill_soft
from mnpca.precision.certificate import dual_value, primal_value
from mnpca.precision.newton import MAX_INFLATION, newton, newton_along_path
from mnpca.precision.problem import NotCertifiedError, Problem
from mnpca.precision.result import Array, inverse

# Certificates before Newton's method takes over; and column sweeps between two of them, a number
# that doubles from the least to the most.
MAX_CERTIFICATES = 10
MIN_SWEEPS, MAX_SWEEPS = 20, 200
# Progress of a sweep, in units of the gap to reach, at which a first certificate is worth its two
# factorisations; and the accuracy of the column problems in the first and in the last sweeps.
FIRST_CERTIFICATE = 50.0
FIRST_INNER, LAST_INNER = 10.0, 3e-3
# Sloppier sweeps than for this tolerance save nothing: more of them are needed.
LOOSEST = 1e-4
# So accurate, the sweeps keep every conditional variance positive from a feasible start.
EXACT_INNER = 1e-9
# Nothing is gained below rounding.
SMALLEST_INNER = 1e-14


@dataclass(eq=False)
class Iterate:
    """Working covariance W, regressions B (by rows) and conditional precisions theta."""

    W: Array
    B: Array
    theta: Array


@dataclass(frozen=True, eq=False)
class ComponentSolution:
    """Precision of one component, as an iterate, with its objective and duality gap."""

    iterate: Iterate
    objective: float
    gap: float
    n_iter: int


def cold_start(problem: Problem, fill: Callable[..., None]) -> Iterate:
    """Start at a working covariance made from S, with no regressions."""
    p = problem.size
    W = np.empty((p, p))
    fill(problem.covariance, problem.alpha, problem.diagonal, W)
    return Iterate(W, np.zeros((p, p)), 1.0 / problem.diagonal)


def from_precision(T: Array, W: Array) -> Iterate:
    """Regressions of a dense precision T, with working covariance W."""
    theta = np.diagonal(T).copy()
    B = -T / theta[:, None]
    np.fill_diagonal(B, 0.0)
    return Iterate(W, B, theta)


def to_precision(iterate: Iterate) -> Array:
    """Dense symmetric precision of an iterate, with the entries that both regressions have."""
    T = -iterate.B * iterate.theta[:, None]
    T = np.where((T != 0) & (T.T != 0), 0.5 * (T + T.T), 0.0)
    np.fill_diagonal(T, iterate.theta)
    return T


def solve_component(problem: Problem, tol: float, start: Iterate | None) -> ComponentSolution:
    """Solve one component until its duality gap is at most tol times its number of variables.

    Tries, in this order: the given start; a soft-thresholded S, which is nearest to the solution
    but may be indefinite; a shrunk S, which is definite; the same in exact sweeps; Newton's method
    from wherever these ended.
    """
    if not problem.alpha.any():
        return _solve_unpenalised(problem)
    first, last = FIRST_INNER * min(tol, LOOSEST), LAST_INNER * min(tol, LOOSEST)
    solution = None
    if start is not None:
        solution = _descend(problem, tol, start, last)
    for fill, inner in (
        (fill_soft, first),
        (fill_mixed, first),
        (fill_mixed, min(EXACT_INNER, last)),
    ):
        if solution is None:
            solution = _descend(problem, tol, cold_start(problem, fill), inner)
    if solution is not None and solution.gap <= tol * problem.size:
        return solution
    return _finish_by_newton(problem, tol, solution)


def _finish_by_newton(
    problem: Problem, tol: float, solution: ComponentSolution | None
) -> ComponentSolution:
    """Newton's method from a solution that is not certified, or else along a path of penalties."""
    goal = tol * problem.size
    point = None
    if solution is not None and solution.objective < np.inf:
        point = newton(problem, to_precision(solution.iterate), goal)
    if point is None or point.gap > goal:
        point = newton_along_path(problem, goal)
    if point.gap > goal:
        raise NotCertifiedError(
            f"no certified solution: the duality gap stands at {point.gap / problem.size:.1e} per "
            "variable. The problem is unbounded or too ill-conditioned (S singular where alpha is "
            "zero or tiny): increase alpha, add a ridge to S's diagonal, or relax tol."
        )
    iterate = from_precision(point.T, point.W)
    return ComponentSolution(iterate, point.value, point.gap, point.n_iter)


def _descend(
    problem: Problem, tol: float, iterate: Iterate, inner: float
) -> ComponentSolution | None:
    """Sweep and certify, tightening until the gap passes; None if a sweep broke down."""
    goal = tol * problem.size
    target, inner_last = FIRST_CERTIFICATE * goal, min(inner, LAST_INNER * min(tol, LOOSEST))
    work = np.empty_like(iterate.W)
    total = 0
    dual = -np.inf
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
            min(max(MIN_SWEEPS, total), MAX_SWEEPS),
        )
        total += sweeps
        if not ok:
            return None
        value = primal_value(problem, iterate.B, iterate.theta, work)
        dual = max(dual, dual_value(problem, iterate.W, iterate.B, work, value - goal))
        gap = value - dual
        if gap <= goal:
            break
        # On hard problems the gap falls more slowly than the progress, about as its power 2/3.
        target = progress * (0.1 if gap == np.inf else (0.8 * goal / gap) ** 1.5)
        inner_last = max(0.03 * inner_last, SMALLEST_INNER)
        inner = inner_last
    return ComponentSolution(iterate, value, max(gap, 0.0), total)


def _solve_unpenalised(problem: Problem) -> ComponentSolution:
    """Without penalty the precision is the inverse of S, if S has one."""
    W = problem.covariance.copy()
    np.fill_diagonal(W, problem.diagonal)
    singular = NotCertifiedError(
        "alpha = 0 needs a non-singular S: pass alpha > 0, or more samples than variables."
    )
    try:
        T = inverse(W.copy())
    except np.linalg.LinAlgError:
        raise singular from None
    # Rounding may let a singular matrix pass as definite.
    if np.max(np.diagonal(T) * problem.diagonal) > MAX_INFLATION:
        raise singular
    iterate = from_precision(T, W)
    work = np.empty_like(W)
    value = primal_value(problem, iterate.B, iterate.theta, work)
    gap = value - dual_value(problem, W, iterate.B, work, -np.inf)
    return ComponentSolution(iterate, value, max(gap, 0.0), 1)
