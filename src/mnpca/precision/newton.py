"""Newton's method on the precision: dearer, but it descends from any definite start.

The orthant-based Newton method of Oztoprak, Nocedal, Rennie and Olsen (2012), NeurIPS 25: on the
free entries and with their signs fixed the objective is smooth; its Newton equation is solved by
conjugate gradients, and entries that would change sign in the line search stop at zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mnpca.precision.certificate import dual_value, log_determinant
from mnpca.precision.problem import NotCertifiedError, Problem
from mnpca.precision.result import Array, inverse

MAX_ITERATIONS = 100
MAX_CONJUGATE_STEPS = 200
MAX_PRUNINGS = 5
# Beyond this ratio of a marginal to a conditional variance, double precision certifies nothing.
MAX_INFLATION = 1e13


def newton(problem: Problem, T: Array, goal: float) -> tuple[Array, Array, float, float, int]:
    """Minimise from the positive definite T until the duality gap is at most goal.

    Returns the precision, its inverse, the objective, the gap and the number of iterations.
    """
    penalty = np.broadcast_to(problem.alpha, T.shape).copy()
    np.fill_diagonal(penalty, 0.0)
    linear = problem.covariance.copy()
    np.fill_diagonal(linear, problem.diagonal)
    work = np.empty_like(linear)
    value, gap, dual = _objective(linear, penalty, T), np.inf, -np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        W = inverse(T.copy())
        dual = max(dual, _scaled_dual(problem, T, W, work))
        gap = value - dual
        if gap <= goal:
            return T, W, value, max(gap, 0.0), iteration
        if np.max(np.diagonal(T) * problem.diagonal) > MAX_INFLATION:
            break
        moved = _step(linear, penalty, T, W, value)
        if moved is None:
            break
        T, value = moved
    raise NotCertifiedError(
        f"no certified solution: the duality gap stands at {gap / problem.size:.1e} per variable. "
        "The problem is unbounded or too ill-conditioned (S singular where alpha is zero or "
        "tiny): increase alpha, add a ridge to S's diagonal, or relax tol."
    )


def _objective(linear: Array, penalty: Array, T: Array) -> float:
    """-logdet T + tr(linear T) + |penalty o T|_1; inf if T is not positive definite."""
    logdet = log_determinant(T.copy())
    if logdet == -np.inf:
        return np.inf
    return float(np.sum(linear * T) + np.sum(penalty * np.abs(T))) - logdet


def _scaled_dual(problem: Problem, T: Array, W: Array, work: Array) -> float:
    # The diagonal of a feasible W is known: scaling to it first loses less than overwriting it.
    scale = np.sqrt(problem.diagonal / np.diagonal(W))
    return dual_value(problem, W * scale * scale[:, None], -T, work)


def _step(
    linear: Array, penalty: Array, T: Array, W: Array, value: float
) -> tuple[Array, float] | None:
    """Take a Newton step, or else a proximal one; None when nothing is gained any more."""
    gradient = linear - W
    penalised = penalty > 0
    free = (T != 0) | (np.abs(gradient) > penalty)
    orthant = np.where(T != 0, np.sign(T), -np.sign(gradient))
    slope = np.where(free, gradient + penalty * orthant, 0.0)
    for _ in range(MAX_PRUNINGS):
        direction = _direction(T, W, slope, free)
        # An entry at zero that would leave on the wrong side stays, and the others solve again.
        wrong = free & (T == 0) & penalised & (direction * orthant < 0)
        if not wrong.any():
            break
        free &= ~wrong
        slope[wrong] = 0.0
    size = 1.0
    while size > 1e-8:
        trial = T + size * direction
        trial[(trial * orthant < 0) & penalised] = 0.0
        trial_value = _objective(linear, penalty, trial)
        if trial_value < value + 1e-4 * float(np.sum(slope * (trial - T))):
            return trial, trial_value
        size *= 0.5
    return _proximal_step(gradient, linear, penalty, T, W, value)


def _proximal_step(
    gradient: Array, linear: Array, penalty: Array, T: Array, W: Array, value: float
) -> tuple[Array, float] | None:
    """Soft-threshold a gradient step scaled by the Hessian's diagonal, halved until it gains."""
    variance = np.diagonal(W)
    curvature = variance * variance[:, None] + W * W
    size = 1.0
    while size > 1e-8:
        moved = T - size * gradient / curvature
        shrunk = np.maximum(np.abs(moved) - size * penalty / curvature, 0.0)
        trial = np.copysign(shrunk, moved)
        trial_value = _objective(linear, penalty, trial)
        if trial_value < value:
            return trial, trial_value
        size *= 0.5
    return None


def _direction(T: Array, W: Array, slope: Array, free: NDArray[np.bool_]) -> Array:
    """Solve P(W D W) = -slope for D on the free entries, P the projection on them.

    Preconditioned by P(T . T), the inverse where all entries are free: the number of steps
    depends on the graph rather than on the conditioning of W.
    """
    residual = -slope
    direction = np.zeros_like(slope)
    turned = np.where(free, T @ residual @ T, 0.0)
    search = turned
    power = first = float(np.sum(residual * turned))
    for _ in range(MAX_CONJUGATE_STEPS):
        if power <= 1e-4 * first or power <= 0.0:
            break
        product = np.where(free, W @ search @ W, 0.0)
        length = power / float(np.sum(search * product))
        direction += length * search
        residual -= length * product
        turned = np.where(free, T @ residual @ T, 0.0)
        power, before = float(np.sum(residual * turned)), power
        search = turned + (power / before) * search
    return 0.5 * (direction + direction.T)
