"""Proximal Newton method on the precision: slower, but it descends from any definite start.

After Hsieh, Sustik, Dhillon and Ravikumar (2014), QUIC, JMLR 15: a second-order model minimised
by coordinate descent over the free set, and a line search that keeps the iterate definite.
"""

from __future__ import annotations

import numpy as np

from mnpca.precision import _kernels
from mnpca.precision.certificate import dual_value, log_determinant
from mnpca.precision.problem import NotCertifiedError, Problem
from mnpca.precision.result import Array, inverse

MAX_ITERATIONS = 200
# Beyond this ratio of a marginal to a conditional variance, double precision certifies nothing.
MAX_INFLATION = 1e13


def _objective(problem: Problem, T: Array) -> float:
    """-logdet T + tr(S T) + |alpha o T|_1; inf if T is not positive definite."""
    logdet = log_determinant(T.copy())
    if logdet == -np.inf:
        return np.inf
    off = problem.covariance * T + problem.alpha * np.abs(T)
    np.fill_diagonal(off, 0.0)
    return float(off.sum() + problem.diagonal @ np.diagonal(T)) - logdet


def _dual(problem: Problem, W: Array, work: Array) -> float:
    # The diagonal of a feasible W is known: scaling to it first loses less than overwriting it.
    scale = np.sqrt(problem.diagonal / np.diagonal(W))
    return dual_value(problem, W * scale * scale[:, None], work)


def newton(problem: Problem, T: Array, goal: float) -> tuple[Array, Array, float, float, int]:
    """Minimise from the positive definite T until the duality gap is at most goal.

    Returns the precision, its inverse, the objective, the gap and the number of iterations.
    """
    p = problem.size
    work = np.empty((p, p))
    value = _objective(problem, T)
    gap, best_dual = np.inf, -np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        W = inverse(T.copy())
        best_dual = max(best_dual, _dual(problem, W, work))
        gap = value - best_dual
        if gap <= goal:
            return T, W, value, max(gap, 0.0), iteration
        if np.max(np.diagonal(T) * problem.diagonal) > MAX_INFLATION:
            break
        D, V = np.zeros((p, p)), np.zeros((p, p))
        slope = _kernels.newton_direction(
            problem.covariance,
            problem.alpha,
            problem.diagonal,
            T,
            W,
            D,
            V,
            3 + iteration // 2,
            0.01 * min(goal, gap),
        )
        step = 1.0
        while step > 1e-10:
            trial = _objective(problem, T + step * D)
            if trial <= value + 1e-3 * step * slope:
                break
            step *= 0.5
        else:
            break
        T = T + step * D
        value = trial
    raise NotCertifiedError(
        f"no certified solution: the duality gap stands at {gap / p:.1e} per variable. The problem "
        "is unbounded or too ill-conditioned (S singular where alpha is zero or tiny): "
        "increase alpha, add a ridge to S's diagonal, or relax tol."
    )
