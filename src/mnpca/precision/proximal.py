"""Proximal gradient steps, for covariances in another library's memory, as on a GPU.

Block descent walks a matrix column by column, which an accelerator does badly. This needs Cholesky
factorizations and inverses alone: the iterative thresholding of Guillot, Rajaratnam, Rolfs, Maleki
and Wong (2012), NeurIPS 25.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mnpca.engines.arrays import Array, cholesky, diagonal_matrix, inverse, logdet, namespace
from mnpca.precision.problem import Point, Problem

# Easy problems take 10 to 40 steps; more of them are a sign that the processor is faster.
MAX_ITERATIONS = 100
# A dual point costs up to two factorizations, so it is looked for in every third step.
EVERY = 3
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class _Objective:
    """The problem with its penalties as a matrix, zero on the diagonal."""

    linear: Array
    penalty: Array

    @classmethod
    def of(cls, problem: Problem) -> _Objective:
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


def proximal_gradient(problem: Problem, goal: float, start: Array | None = None) -> Point:
    """Minimize until the duality gap is at most goal, if it can.

    ``T <- soft(T - t M (S - inv T), t M alpha)``, entry by entry, with ``M_ij = 1 / (S_ii S_jj)``,
    so that units of the variables do not matter. t is that of Barzilai and Borwein, halved until
    the objective is below its quadratic model. The start is positive definite, the inverse of the
    diagonal by default.
    """
    objective = _Objective.of(problem)
    xp = namespace(objective.linear)
    metric = 1.0 / (problem.diagonal[:, None] * problem.diagonal[None, :])
    T = diagonal_matrix(1.0 / problem.diagonal) if start is None else start
    value, factor = objective.at(T)
    if factor is None:
        raise np.linalg.LinAlgError("the start is not positive definite")
    W, dual, length = inverse(factor), -np.inf, 1.0
    for iteration in range(1, MAX_ITERATIONS + 1):
        if iteration % EVERY == 1:
            dual = max(dual, objective.dual(T, W, value - goal))
        point = Point(T, W, value, max(value - dual, 0.0), iteration)
        if point.gap <= goal:
            break
        moved = _step(objective, metric, point, length)
        if moved is None:
            break
        value, factor, new = moved
        step, before = new - T, W
        T, W = new, inverse(factor)
        # The gradient has changed by before - W.
        bend = float(xp.sum(step * (before - W)))
        length = float(xp.sum(step * step / metric)) / bend if bend > 0.0 else 1.0
    return point


def _step(
    objective: _Objective, metric: Array, point: Point, length: float
) -> tuple[float, Array, Array] | None:
    """Return the next objective, Cholesky factor and T; None when nothing is gained any more."""
    T, penalty = point.T, objective.penalty
    xp = namespace(T)
    gradient = objective.linear - point.W
    smooth = point.value - float(xp.sum(penalty * xp.abs(T)))
    while length > 1e-12:
        size = length * metric
        free = T - size * gradient
        new = xp.sign(free) * xp.clip(xp.abs(free) - size * penalty, 0.0, None)
        step = new - T
        reached, factor = objective.at(new)
        if factor is not None:
            model = smooth + float(
                xp.sum(step * (gradient + 0.5 * step / size) + penalty * xp.abs(new))
            )
            if reached <= model + ROUNDING * abs(model):
                return reached, factor, new
        length *= 0.5
    return None


def _with_diagonal(matrix: Array, diagonal: Array) -> Array:
    """Return a matrix with another diagonal."""
    xp = namespace(matrix)
    return matrix + diagonal_matrix(diagonal - xp.linalg.diagonal(matrix))
