"""One connected component: block coordinate descent on the covariance, then a certificate.

After Friedman, Hastie and Tibshirani (2008), Biostatistics 9: column j of the covariance is the
fit of a lasso of variable j on the others. No factorisation is needed until the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnpca.precision import _kernels
from mnpca.precision.certificate import dual_value, primal_value
from mnpca.precision.newton import newton
from mnpca.precision.problem import NotCertifiedError, Problem
from mnpca.precision.result import Array, inverse

# Column sweeps between two certificates, and certificates before Newton's method takes over.
MAX_SWEEPS = 60
MAX_CERTIFICATES = 8


@dataclass(eq=False)
class Iterate:
    """Working covariance W, regressions B (by rows) and conditional precisions theta."""

    W: Array
    B: Array
    theta: Array


@dataclass(frozen=True, eq=False)
class ComponentSolution:
    """Certified solution of one component."""

    iterate: Iterate
    objective: float
    gap: float
    n_iter: int


def cold_start(problem: Problem) -> Iterate:
    """S with its off-diagonal shrunk as far as feasible: definite whenever S is semi-definite."""
    p = problem.size
    W = np.empty((p, p))
    mix = _kernels.largest_mix(problem.covariance, problem.alpha)
    _kernels.fill_start(problem.covariance, problem.alpha, problem.diagonal, mix, W)
    return Iterate(W, np.zeros((p, p)), 1.0 / problem.diagonal)


def from_precision(T: Array, W: Array) -> Iterate:
    """Regressions of a dense precision T, with working covariance W."""
    theta = np.diagonal(T).copy()
    B = -T / theta[:, None]
    np.fill_diagonal(B, 0.0)
    return Iterate(W, B, theta)


def solve_component(problem: Problem, tol: float, start: Iterate | None) -> ComponentSolution:
    """Solve one component until its duality gap is at most tol times its number of variables."""
    if not problem.alpha.any():
        return _solve_unpenalised(problem)
    descended = None
    if start is not None:
        descended = _descend(problem, tol, start)
    if descended is None:
        descended = _descend(problem, tol, cold_start(problem))
    if descended is not None:
        return descended
    T, W, value, gap, n_iter = newton(problem, np.diag(1.0 / problem.diagonal), tol * problem.size)
    return ComponentSolution(from_precision(T, W), value, gap, n_iter)


def _descend(problem: Problem, tol: float, iterate: Iterate) -> ComponentSolution | None:
    """Sweep and certify, tightening until the gap passes; None if that does not succeed."""
    goal = tol * problem.size
    target, inner = 0.3 * goal, 0.1 * tol
    work = np.empty_like(iterate.W)
    total = 0
    best_value, best_dual = np.inf, -np.inf
    for _ in range(MAX_CERTIFICATES):
        sweeps, _, ok = _kernels.descend(
            problem.covariance,
            problem.alpha,
            iterate.W,
            iterate.B,
            iterate.theta,
            target,
            inner,
            MAX_SWEEPS,
        )
        total += sweeps
        if not ok:
            return None
        value = primal_value(problem, iterate.B, iterate.theta, work)
        best_dual = max(best_dual, dual_value(problem, iterate.W, work))
        gap = value - best_dual
        if gap <= goal:
            return ComponentSolution(iterate, value, max(gap, 0.0), total)
        best_value = min(best_value, value)
        shrink = min(0.3, max(0.01, 0.5 * goal / gap))
        target, inner = target * shrink, inner * shrink
    return None


def _solve_unpenalised(problem: Problem) -> ComponentSolution:
    """Without penalty the precision is the inverse of S, if S has one."""
    W = problem.covariance.copy()
    np.fill_diagonal(W, problem.diagonal)
    try:
        T = inverse(W.copy())
    except np.linalg.LinAlgError:
        raise NotCertifiedError(
            "alpha = 0 needs a non-singular S: pass alpha > 0, or more samples than variables."
        ) from None
    iterate = from_precision(T, W)
    value = primal_value(problem, iterate.B, iterate.theta, np.empty_like(W))
    gap = value - dual_value(problem, W, np.empty_like(W))
    return ComponentSolution(iterate, value, max(gap, 0.0), 1)
