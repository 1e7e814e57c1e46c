"""Newton's method on the precision: dearer, but it descends from any definite start.

The orthant-based Newton method of Oztoprak, Nocedal, Rennie and Olsen (2012), NeurIPS 25: on the
free entries and with their signs fixed the objective is smooth; its Newton equation is solved by
conjugate gradients, and entries that would change sign in the line search stop at zero.

It is made of matrix products and Cholesky factorizations alone, so the same lines run on arrays
of any library: they solve large components on an accelerator, and on the processor those that
block descent could not certify and that are too large for the interior-point method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mnpca.engines.arrays import Array, cholesky, diagonal_matrix, inverse, logdet, namespace
from mnpca.precision.problem import Problem, not_certified

MAX_ITERATIONS = 50
# Quick steps get there in about ten; more of them are a sign that they do not.
QUICK_ITERATIONS = 20
MAX_CONJUGATE_STEPS = 50
# Along a path of penalties, how well each problem is solved.
STAGE_GAP = 1e-2
MAX_STAGE_ITERATIONS = 15
# Beyond this ratio of a marginal to a conditional variance, double precision certifies nothing.
MAX_INFLATION = 1e13


@dataclass(frozen=True)
class Effort:
    """How well each Newton equation is solved.

    Attributes
    ----------
    accuracy : float
        Conjugate gradients stop when the residual, in the metric of the preconditioner, has
        fallen to this share.
    solves : int
        How often the equation is solved again without the entries that went the wrong way.
    by_precision : bool
        Whether the preconditioner is P(T . T), the inverse where all entries are free, rather
        than the Hessian's diagonal. Its steps cost twice as much; their number depends on the
        graph rather than on the conditioning of W.
    stage_ratio : float
        How fast penalties fall along a path.
    """

    accuracy: float
    solves: int
    by_precision: bool
    stage_ratio: float = 2.0


# Ill-conditioned problems need accurate steps; the others get there with a tenth of the work.
QUICK = Effort(accuracy=0.3, solves=1, by_precision=False)
STEADY = Effort(accuracy=0.3, solves=2, by_precision=True, stage_ratio=1.4)
THOROUGH = Effort(accuracy=1e-2, solves=5, by_precision=True)


@dataclass(frozen=True, eq=False)
class NewtonPoint:
    """A positive definite T, its inverse W, the objective, the gap and the iterations spent."""

    T: Array
    W: Array
    value: float
    gap: float
    n_iter: int


@dataclass(frozen=True, eq=False)
class _Smooth:
    """The problem with its penalties as a matrix, zero on the diagonal."""

    linear: Array
    penalty: Array

    @classmethod
    def of(cls, problem: Problem) -> _Smooth:
        linear = with_diagonal(problem.covariance, problem.diagonal)
        zero = namespace(linear).zeros_like(problem.diagonal)
        return cls(linear, with_diagonal(problem.alpha + 0.0 * linear, zero))

    def at(self, T: Array) -> tuple[float, Array | None]:
        """Return the objective and the Cholesky factor of T; inf and None if not definite."""
        factor = cholesky(T)
        if factor is None:
            return float("inf"), None
        xp = namespace(T)
        cost = xp.sum(self.linear * T) + xp.sum(self.penalty * xp.abs(T))
        return float(cost) - logdet(factor), factor

    def dual(self, T: Array, W: Array, enough: float) -> float:
        """Return the dual objective at a feasible point near W; -inf if that is not definite.

        The diagonal of a feasible point is known: scaling W to it loses less than overwriting
        it. On the support of T the solution lies at S + alpha sign(T), and a point that uses
        this errs by second order only; where it has less than ``enough``, W clipped is tried
        too, which is nearer to W and so more often definite.
        """
        xp = namespace(T)
        diagonal = xp.linalg.diagonal(self.linear)
        scale = xp.sqrt(diagonal / xp.linalg.diagonal(W))
        near = W * scale[:, None] * scale[None, :]
        low, high = self.linear - self.penalty, self.linear + self.penalty
        clipped = with_diagonal(xp.minimum(xp.maximum(near, low), high), diagonal)
        on_support = xp.where(T > 0, high, xp.where(T < 0, low, clipped))
        best = -np.inf
        for point in (on_support, clipped):
            factor = cholesky(point)
            if factor is not None:
                best = max(best, logdet(factor) + T.shape[0])
            if best >= enough:
                break
        return best


def newton(
    problem: Problem,
    T: Array,
    goal: float,
    max_iter: int = MAX_ITERATIONS,
    effort: Effort = THOROUGH,
) -> NewtonPoint:
    """Minimize from the positive definite T until the duality gap is at most goal, if it can."""
    smooth = _Smooth.of(problem)
    value, factor = smooth.at(T)
    if factor is None:
        raise np.linalg.LinAlgError("Newton's method needs a positive definite start")
    dual = -np.inf
    for iteration in range(1, max_iter + 1):
        W = inverse(factor)
        dual = max(dual, smooth.dual(T, W, value - goal))
        point = NewtonPoint(T, W, value, max(value - dual, 0.0), iteration)
        if point.gap <= goal or _inflation(T, problem.diagonal) > MAX_INFLATION:
            break
        moved = _step(smooth, T, W, value, effort)
        if moved is None:
            break
        T, value, factor = moved
    return point


def solve_by_newton(problem: Problem, goal: float, start: Array | None = None) -> NewtonPoint:
    """Solve until the duality gap is at most goal, or raise: quick steps first, then better ones.

    Where quick steps from the start, the diagonal by default, do not succeed, the solution is
    followed from large penalties, where it is diagonal, down to the problem's own: each is a good
    start for a penalty a little smaller, however ill-conditioned the last problem may be.
    """
    diagonal = diagonal_matrix(1.0 / problem.diagonal)
    point = newton(problem, diagonal if start is None else start, goal, QUICK_ITERATIONS, QUICK)
    for effort in (STEADY, THOROUGH):
        if point.gap <= goal:
            return point
        T = diagonal
        for stage in range(_n_stages(problem, effort.stage_ratio), 0, -1):
            easier = replace(problem, alpha=problem.alpha * effort.stage_ratio**stage)
            T = newton(easier, T, STAGE_GAP * problem.size, MAX_STAGE_ITERATIONS, effort).T
        point = newton(problem, T, goal, effort=effort)
    if point.gap > goal:
        raise not_certified(point.gap / problem.size)
    return point


def with_diagonal(matrix: Array, diagonal: Array) -> Array:
    """Return a matrix with another diagonal."""
    xp = namespace(matrix)
    return matrix + diagonal_matrix(diagonal - xp.linalg.diagonal(matrix))


def _n_stages(problem: Problem, stage_ratio: float) -> int:
    """Count the steps from a penalty with a diagonal solution to the problem's own."""
    xp = namespace(problem.covariance)
    size = xp.abs(with_diagonal(problem.covariance, xp.zeros_like(problem.diagonal)))
    tiny = float(np.finfo(np.float64).tiny)
    ratio = size / xp.clip(problem.alpha, tiny, None)
    largest = float(xp.max(xp.where(problem.alpha > 0, ratio, xp.zeros_like(ratio))))
    return max(int(np.ceil(np.log(max(largest, 1.0)) / np.log(stage_ratio))), 1)


def _inflation(T: Array, diagonal: Array) -> float:
    xp = namespace(T)
    return float(xp.max(xp.linalg.diagonal(T) * diagonal))


Moved = tuple[Array, float, Array]


def _step(smooth: _Smooth, T: Array, W: Array, value: float, effort: Effort) -> Moved | None:
    """Take a Newton step, or else a proximal one; None when nothing is gained any more."""
    xp = namespace(T)
    zero = xp.zeros_like(T)
    gradient = smooth.linear - W
    penalized = smooth.penalty > 0
    free = (T != 0) | (xp.abs(gradient) > smooth.penalty)
    orthant = xp.where(T != 0, xp.sign(T), -xp.sign(gradient))
    slope = xp.where(free, gradient + smooth.penalty * orthant, zero)
    for _ in range(effort.solves):
        direction = _direction(T, W, slope, free, effort)
        # An entry at zero that would leave on the wrong side stays, and the others solve again.
        wrong = free & (T == 0) & penalized & (direction * orthant < 0)
        if not bool(xp.any(wrong)):
            break
        free = free & ~wrong
        slope = xp.where(wrong, zero, slope)

    def newton_trial(size: float) -> Array:
        trial = T + size * direction
        return xp.where((trial * orthant < 0) & penalized, zero, trial)

    def expected(trial: Array) -> float:
        return 1e-4 * float(xp.sum(slope * (trial - T)))

    moved = _search(smooth, value, newton_trial, expected)
    if moved is not None:
        return moved
    variance = xp.linalg.diagonal(W)
    curvature = variance[:, None] * variance[None, :] + W * W

    def proximal_trial(size: float) -> Array:
        """Soft-threshold a gradient step scaled by the Hessian's diagonal."""
        there = T - size * gradient / curvature
        shrunk = xp.maximum(xp.abs(there) - size * smooth.penalty / curvature, zero)
        return xp.sign(there) * shrunk

    return _search(smooth, value, proximal_trial, lambda trial: 0.0)


def _search(
    smooth: _Smooth,
    value: float,
    trial_at: Callable[[float], Array],
    expected: Callable[[Array], float],
) -> Moved | None:
    """Halve the step until the objective falls by what is expected of it, or more."""
    size = 1.0
    while size > 1e-8:
        trial = trial_at(size)
        trial_value, factor = smooth.at(trial)
        if factor is not None and trial_value < value + expected(trial):
            return trial, trial_value, factor
        size *= 0.5
    return None


def _direction(T: Array, W: Array, slope: Array, free: Any, effort: Effort) -> Array:
    """Solve P(W D W) = -slope for D on the free entries, P the projection on them."""
    xp = namespace(T)
    zero = xp.zeros_like(T)
    variance = xp.linalg.diagonal(W)
    curvature = None if effort.by_precision else variance[:, None] * variance[None, :] + W * W

    def turn(residual: Array) -> Array:
        """Apply the preconditioner."""
        return xp.where(free, T @ residual @ T, zero) if curvature is None else residual / curvature

    residual = -slope
    direction = zero
    search = turned = turn(residual)
    power = first = float(xp.sum(residual * turned))
    for _ in range(MAX_CONJUGATE_STEPS):
        if power <= effort.accuracy**2 * first or power <= 0.0:
            break
        product = xp.where(free, W @ search @ W, zero)
        length = power / float(xp.sum(search * product))
        direction = direction + length * search
        residual = residual - length * product
        turned = turn(residual)
        power, before = float(xp.sum(residual * turned)), power
        search = turned + (power / before) * search
    return 0.5 * (direction + direction.T)
