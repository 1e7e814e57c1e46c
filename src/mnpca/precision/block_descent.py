"""One connected component: block coordinate descent on the covariance, then a certificate.

After Friedman, Hastie and Tibshirani (2008), Biostatistics 9: column j of the covariance is the
fit of a lasso of variable j on the others. No factorization is needed until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mnpca.precision._kernels.certificate import to_csr
from mnpca.precision._kernels.descent import descend, fill_mixed, fill_soft, random_order
from mnpca.precision.certificate import Certificate, certify
from mnpca.precision.interior import solve_by_interior_point, suits
from mnpca.precision.iterate import Iterate, Sparse, cold_start, from_precision, to_precision
from mnpca.precision.newton import MAX_INFLATION, NewtonPoint, newton, newton_along_path
from mnpca.precision.problem import NotCertifiedError, Problem, not_certified
from mnpca.precision.result import inverse, log_determinant

# Certificates before Newton's method takes over; and column sweeps between two of them, a number
# that doubles from the least to the most.
MAX_CERTIFICATES = 10
MIN_SWEEPS, MAX_SWEEPS = 20, 200
# Column sweeps before Newton's method takes over.
MAX_TOTAL = 1000
# Progress of a sweep, in units of the gap to reach, at which a first certificate is worth its cost;
# accuracy of the column problems, per unit of tol, in the first sweep and in the last ones.
FIRST_CERTIFICATE, FIRST_INNER, LAST_INNER = 50.0, 10.0, 3e-3
# From a start near a solution: so many certificates after one sweep each.
NEAR = 4
# A gap so many times a sweep's progress will not fall before the column problems are solved better.
STALLED = 8.0
# Sloppier sweeps than for this tolerance save nothing: more of them are needed.
LOOSEST = 1e-4
# So accurate, the sweeps keep every conditional variance positive from a feasible start.
EXACT_INNER = 1e-9
# Where the interior-point method suits, it takes over after so many sweeps, or after the squared
# number of variables over this: a hard sweep over few of them costs about as much as all its steps.
EXACT_SWEEPS, PATIENCE = 60, 10
# Nothing is gained below rounding.
SMALLEST_INNER = 1e-14


@dataclass(frozen=True, eq=False)
class ComponentSolution:
    """Precision of one component with its certificate, and the iterate behind it."""

    iterate: Iterate
    certificate: Certificate
    n_iter: int


# From a component's problem, the tolerance and the most sweeps to a solution, None if it failed.
Attempt = Callable[[Problem, float, int], ComponentSolution | None]


def solve_component(
    problem: Problem, tol: float, max_sweeps: int = MAX_TOTAL, attempt: Attempt | None = None
) -> ComponentSolution:
    """Solve one component until its duality gap is at most tol times its number of variables.

    A pair has a closed form. Otherwise tries, in this order: what ``attempt`` starts from; a
    soft-thresholded S, which is nearest to the solution but may be indefinite; a shrunk S, which is
    definite; the same in exact sweeps; Newton's method from wherever these ended, or where one of
    them has taken max_sweeps.
    """
    if problem.size == 2:
        pair = _solve_pair(problem)
        if pair is not None:
            return pair
    if not problem.alpha.any():
        return _solve_unpenalized(problem)
    goal = tol * problem.size
    scale = min(tol, LOOSEST)
    few = max_sweeps
    if suits(problem):
        max_sweeps = min(max_sweeps, max(MIN_SWEEPS, problem.size**2 // PATIENCE))
        few = min(max_sweeps, EXACT_SWEEPS)
    solution = None if attempt is None else attempt(problem, tol, max_sweeps)
    for fill, inner, most in (
        (fill_soft, FIRST_INNER, max_sweeps),
        (fill_mixed, FIRST_INNER, max_sweeps),
        (fill_mixed, min(EXACT_INNER / scale, LAST_INNER), few),
    ):
        if solution is None:
            iterate = cold_start(problem, fill)
            solution = sweep_and_certify(problem, tol, iterate, inner, FIRST_CERTIFICATE, most)
    if solution is not None and solution.certificate.gap <= goal:
        return solution
    return _finish_by_newton(problem, goal, solution)


def sweep_and_certify(
    problem: Problem,
    tol: float,
    iterate: Iterate,
    inner: float,
    first: float,
    max_sweeps: int,
    *,
    near: bool = False,
    unsure: float = np.inf,
) -> ComponentSolution | None:
    """Sweep and certify, tightening until the gap passes; None if a sweep broke down.

    ``inner`` is the accuracy of the column problems in the first sweep, ``first`` the progress at
    which to certify first, both per unit of tol. Where the iterate is ``near`` a solution, the next
    certificates come after one sweep each. A first sweep with more progress than ``unsure`` is
    followed by half a sweep.
    """
    goal = tol * problem.size
    scale = min(tol, LOOSEST)
    target = first * scale * problem.size
    inner *= scale
    inner_last = min(inner, LAST_INNER * scale)
    work = np.empty_like(iterate.W)
    total, dual, definite = 0, -np.inf, False
    everything = columns = random_order(problem.size)
    for count in range(MAX_CERTIFICATES):
        one = len(columns) < problem.size or (near and 0 < count <= NEAR)
        sweeps, progress, ok, kept = descend(
            problem.covariance,
            problem.alpha,
            iterate.W,
            iterate.B,
            iterate.theta,
            target,
            inner,
            inner_last,
            1 if one else min(max(MIN_SWEEPS, total), MAX_SWEEPS, max_sweeps - total),
            columns,
        )
        total += sweeps
        if not ok:
            return None
        definite &= kept
        if total == 1 < max_sweeps and progress > unsure * scale * problem.size:
            # The columns of the first half are older than those of the second.
            columns, inner = everything[: (problem.size + 1) // 2], inner_last
            continue
        columns = everything
        certificate = certify(problem, iterate, goal, definite, dual, work)
        if certificate.gap <= goal or total >= max_sweeps:
            break
        gap, dual, definite = (
            certificate.estimate, max(dual, certificate.dual), certificate.definite
        )  # fmt: skip
        # On hard problems the gap falls more slowly than the progress, about as its power 2/3.
        target = progress * (0.1 if gap == np.inf else (0.8 * goal / gap) ** 1.5)
        if gap > STALLED * progress:
            inner_last = max(0.03 * inner_last, SMALLEST_INNER)
        inner = inner_last
    return ComponentSolution(iterate, certificate, total)


def _finish_by_newton(
    problem: Problem, goal: float, solution: ComponentSolution | None
) -> ComponentSolution:
    """Newton's method: by an interior point if small, from an iterate, or along a path."""
    if suits(problem):
        point = solve_by_interior_point(problem, goal)
        if point is not None:
            return from_newton(point)
    point = None
    if solution is not None:
        T = to_precision(solution.iterate)
        if log_determinant(T.copy()) > -np.inf:
            point = newton(problem, T, goal)
    if point is None or point.gap > goal:
        point = newton_along_path(problem, goal)
    if point.gap > goal:
        raise not_certified(point.gap / problem.size)
    return from_newton(point)


def from_newton(point: NewtonPoint) -> ComponentSolution:
    """Solution of a component from a point of Newton's method."""
    iterate = from_precision(point.T, point.W)
    logdet = log_determinant(point.T.copy())
    precision = Sparse(*to_csr(iterate.B, iterate.theta))
    certificate = Certificate(precision, point.value + logdet, logdet, point.gap, point.gap)
    return ComponentSolution(iterate, certificate, point.n_iter)


def _solve_pair(problem: Problem) -> ComponentSolution | None:
    """Two variables: W is S soft-thresholded, and the precision its inverse, if it has one."""
    a, b = problem.diagonal.tolist()
    s = float(problem.covariance[0, 1])
    w = np.copysign(max(abs(s) - float(problem.alpha[0, 1]), 0.0), s)
    # So near to singular, rounding would decide.
    determinant = a * b - w * w
    if w == 0.0 or not determinant > a * b / MAX_INFLATION:
        return None
    T = np.array([[b, -w], [-w, a]]) / determinant
    iterate = from_precision(T, np.array([[a, w], [w, b]]))
    rows = Sparse(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), T.reshape(-1))
    logdet = -float(np.log(determinant))
    return ComponentSolution(iterate, Certificate(rows, 2.0, logdet, 0.0, 0.0), 1)


def _solve_unpenalized(problem: Problem) -> ComponentSolution:
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
    certificate = certify(problem, iterate, np.inf, False, -np.inf, np.empty_like(W))
    return ComponentSolution(iterate, certificate, 1)
