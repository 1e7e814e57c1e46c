"""Newton's method on the precision: dearer, but it descends from any definite start.

The orthant-based Newton method of Oztoprak, Nocedal, Rennie and Olsen (2012), NeurIPS 25: on the
free entries and with their signs fixed the objective is smooth; its Newton equation is solved by
conjugate gradients, and entries that would change sign in the line search stop at zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mnpca.precision.certificate import dual_value, log_determinant
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, inverse

MAX_ITERATIONS = 50
MAX_CONJUGATE_STEPS = 50
MAX_PRUNINGS = 5
# Along a path of penalties: how fast they fall, and how well each problem is solved.
STAGE_RATIO = 2.0
STAGE_GAP = 1e-2
MAX_STAGE_ITERATIONS = 15
# Beyond this ratio of a marginal to a conditional variance, double precision certifies nothing.
MAX_INFLATION = 1e13


@dataclass(frozen=True, eq=False)
class NewtonPoint:
    """A positive definite T, its inverse W, the objective, the gap and the iterations spent."""

    T: Array
    W: Array
    value: float
    gap: float
    n_iter: int


def newton(problem: Problem, T: Array, goal: float, max_iter: int = MAX_ITERATIONS) -> NewtonPoint:
    """Minimise from the positive definite T until the duality gap is at most goal, if it can."""
    penalty = np.broadcast_to(problem.alpha, T.shape).copy()
    np.fill_diagonal(penalty, 0.0)
    linear = problem.covariance.copy()
    np.fill_diagonal(linear, problem.diagonal)
    work = np.empty_like(linear)
    value, dual = _objective(linear, penalty, T), -np.inf
    for iteration in range(1, max_iter + 1):
        W = inverse(T.copy())
        dual = max(dual, _scaled_dual(problem, T, W, work, value - goal))
        point = NewtonPoint(T, W, value, max(value - dual, 0.0), iteration)
        if point.gap <= goal or np.max(np.diagonal(T) * problem.diagonal) > MAX_INFLATION:
            break
        moved = _step(linear, penalty, T, W, value)
        if moved is None:
            break
        T, value = moved
    return point


def newton_along_path(problem: Problem, goal: float) -> NewtonPoint:
    """Follow the solution from large penalties, where it is diagonal, down to the problem's own.

    Every solution is a good start for a penalty a little smaller, however ill-conditioned the
    last problem may be.
    """
    size = np.abs(problem.covariance)
    positive = np.broadcast_to(problem.alpha > 0, size.shape)
    ratio = np.divide(size, problem.alpha, out=np.zeros_like(size), where=positive)
    np.fill_diagonal(ratio, 0.0)
    n_stages = max(int(np.ceil(np.log(max(ratio.max(), 1.0)) / np.log(STAGE_RATIO))), 1)
    T = np.diag(1.0 / problem.diagonal)
    for stage in range(n_stages, 0, -1):
        easier = replace(problem, alpha=problem.alpha * STAGE_RATIO**stage)
        T = newton(easier, T, STAGE_GAP * problem.size, MAX_STAGE_ITERATIONS).T
    return newton(problem, T, goal)


def _objective(linear: Array, penalty: Array, T: Array) -> float:
    """-logdet T + tr(linear T) + |penalty o T|_1; inf if T is not positive definite."""
    logdet = log_determinant(T.copy())
    if logdet == -np.inf:
        return np.inf
    return float(np.sum(linear * T) + np.sum(penalty * np.abs(T))) - logdet


def _scaled_dual(problem: Problem, T: Array, W: Array, work: Array, enough: float) -> float:
    # The diagonal of a feasible W is known: scaling to it first loses less than overwriting it.
    scale = np.sqrt(problem.diagonal / np.diagonal(W))
    return dual_value(problem, W * scale * scale[:, None], -T, work, enough)


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
