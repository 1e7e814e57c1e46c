"""Newton's method, for covariances in another library's memory, as on a GPU.

Block descent walks a matrix column by column, which an accelerator does badly. This needs matrix
products and Cholesky factorizations alone.

The orthant-based Newton method of Oztoprak, Nocedal, Rennie and Olsen (2012), NeurIPS 25: on the
free entries and with their signs fixed the objective is smooth; its Newton equation is solved by
conjugate gradients, and entries that would change sign in the line search stop at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca.engines.arrays import Array, cholesky, diagonal_matrix, inverse, logdet, namespace
from mnpca.precision.problem import Point, Problem

# Newton gets there in about ten steps; more of them are a sign that it does not.
MAX_ITERATIONS = 20
# Conjugate gradients stop when the residual, in the metric of the preconditioner, has fallen to
# this share.
ACCURACY, MAX_CONJUGATE_STEPS = 0.3, 50


@dataclass(frozen=True, eq=False)
class _Smooth:
    """The problem with its penalties as a matrix, zero on the diagonal."""

    linear: Array
    penalty: Array

    @classmethod
    def of(cls, problem: Problem) -> _Smooth:
        linear = _with_diagonal(problem.covariance, problem.diagonal)
        zero = namespace(linear).zeros_like(problem.diagonal)
        return cls(linear, _with_diagonal(problem.alpha + 0.0 * linear, zero))

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
        clipped = _with_diagonal(xp.minimum(xp.maximum(near, low), high), diagonal)
        on_support = xp.where(T > 0, high, xp.where(T < 0, low, clipped))
        best = -np.inf
        for point in (on_support, clipped):
            factor = cholesky(point)
            if factor is not None:
                best = max(best, logdet(factor) + T.shape[0])
            if best >= enough:
                break
        return best


def newton(problem: Problem, goal: float, start: Array | None = None) -> Point:
    """Minimize until the duality gap is at most goal, if it can.

    The start is positive definite, the inverse of the diagonal by default.
    """
    smooth = _Smooth.of(problem)
    T = diagonal_matrix(1.0 / problem.diagonal) if start is None else start
    value, factor = smooth.at(T)
    if factor is None:
        raise np.linalg.LinAlgError("Newton's method needs a positive definite start")
    dual = -np.inf
    for iteration in range(1, MAX_ITERATIONS + 1):
        W = inverse(factor)
        dual = max(dual, smooth.dual(T, W, value - goal))
        point = Point(T, W, value, max(value - dual, 0.0), iteration)
        if point.gap <= goal:
            break
        moved = _step(smooth, T, W, value)
        if moved is None:
            break
        T, value, factor = moved
    return point


def _with_diagonal(matrix: Array, diagonal: Array) -> Array:
    """Return a matrix with another diagonal."""
    xp = namespace(matrix)
    return matrix + diagonal_matrix(diagonal - xp.linalg.diagonal(matrix))


Moved = tuple[Array, float, Array]


def _step(smooth: _Smooth, T: Array, W: Array, value: float) -> Moved | None:
    """Take a Newton step; None when nothing is gained any more."""
    xp = namespace(T)
    zero = xp.zeros_like(T)
    gradient = smooth.linear - W
    penalized = smooth.penalty > 0
    free = (T != 0) | (xp.abs(gradient) > smooth.penalty)
    orthant = xp.where(T != 0, xp.sign(T), -xp.sign(gradient))
    slope = xp.where(free, gradient + smooth.penalty * orthant, zero)
    variance = xp.linalg.diagonal(W)
    curvature = variance[:, None] * variance[None, :] + W * W
    direction = _direction(W, slope, free, curvature)
    # An entry at zero that would leave on the wrong side stays.
    wrong = free & (T == 0) & penalized & (direction * orthant < 0)
    slope = xp.where(wrong, zero, slope)

    # Halve the step until the objective falls by a part of what the slope promises.
    size = 1.0
    while size > 1e-8:
        trial = T + size * direction
        trial = xp.where(wrong | (penalized & (trial * orthant < 0)), zero, trial)
        reached, factor = smooth.at(trial)
        if factor is not None and reached < value + 1e-4 * float(xp.sum(slope * (trial - T))):
            return trial, reached, factor
        size *= 0.5
    return None


def _direction(W: Array, slope: Array, free: Any, curvature: Array) -> Array:
    """Solve P(W D W) = -slope for D on the free entries, P the projection on them.

    The Hessian's diagonal, ``curvature``, is the preconditioner.
    """
    xp = namespace(W)
    zero = xp.zeros_like(W)
    residual = -slope
    direction = zero
    search = residual / curvature
    power = first = float(xp.sum(residual * search))
    for _ in range(MAX_CONJUGATE_STEPS):
        if power <= ACCURACY**2 * first or power <= 0.0:
            break
        product = xp.where(free, W @ search @ W, zero)
        bend = float(xp.sum(search * product))
        if not bend > 0.0:  # flat to rounding: the objective falls without end
            break
        length = power / bend
        direction = direction + length * search
        residual = residual - length * product
        turned = residual / curvature
        power, before = float(xp.sum(residual * turned)), power
        search = turned + (power / before) * search
    return 0.5 * (direction + direction.T)
