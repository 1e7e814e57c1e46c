"""The relaxed Wasserstein objective in precision space: proximal steps on A and B themselves.

Given the residual and one precision the objective is convex in the other, and its penalty has a
closed proximal step: entries become exactly zero, and there is no learning rate.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import sub
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca.engines import engine_for
from mnpca.engines.arrays import (
    Array,
    cholesky,
    diagonal_matrix,
    inverse,
    like,
    logdet,
    namespace,
)
from mnpca.model.wasserstein import relaxed, spectrum, tall_gradient, wide_gradient
from mnpca.noise.estimate import row_col_scales
from mnpca.solvers.progress import Progress, Report, State, pack, silent, unpack
from mnpca.solvers.wasserstein.pair import Matrices, Pair, WassersteinFit, each, exact_fit

# Weight of the barrier, as a share of the penalty at the start.
BARRIER = 0.03
# A step must lower the objective by this share of its squared length over the step size.
SUFFICIENT = 1e-4
# Accepted steps over which the decrease is measured; the size of one step says little.
WINDOW = 5
# Step sizes, which are about 1, below which no step can change anything any more.
SMALLEST = 1e-10


class Iterate(NamedTuple):
    """Where the descent stands: all that its next step needs."""

    precision: Matrices
    step_size: Pair[float]
    history: list[float]


class Point(NamedTuple):
    """Two precisions, the objective there, and the derivatives of all of it but the penalty.

    The metric, ``A_ii A_jj``, is about one over the curvature of the objective in A_ij.
    """

    precision: Matrices
    metric: Matrices
    value: float
    gradient: Callable[[], Matrices]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimized over A and B, for a matrix with at least as many rows as columns.

    The objective of `mnpca.model.wasserstein.relaxed` for the residual of the best signal, plus

        alpha_A |A|_1 + alpha_B |B|_1 - barrier_A logdet A - barrier_B logdet B.

    The barrier is small. Without it the minimum may be singular: with many more rows than columns a
    row whose residual is small does best with precision zero.
    """

    data: Array
    rank: int
    alpha: Pair[float]
    barrier: Pair[float]

    def at(self, precision: Matrices) -> Point | None:
        """Return the objective at A and B, or None where one is not positive definite.

        The best signal for A and B is made of the k largest terms of Q Y R'; the rest is the
        residual's spectrum. Of all signals of rank k it makes both norms of the residual
        smallest, so the gradient needs no term for its change with A and B.
        """
        factor: Pair[Any] = each(cholesky, precision)
        if factor.row is None or factor.col is None:
            return None
        carried = self.data @ factor.col
        weighted = precision.row @ carried
        parts = spectrum(carried.T @ weighted, slice(0, self.data.shape[1] - self.rank))
        value, slope = parts.measure(relaxed, self.data.shape[0] * self.data.shape[1])
        value += sum(each(_restraint, precision, factor, self.alpha, self.barrier))

        def gradient() -> Matrices:
            row = tall_gradient(carried, parts, slope)
            col = wide_gradient(self.data.T @ weighted, parts, slope)
            return each(_with_barrier, Pair(row, col), factor, self.barrier)

        return Point(precision, each(_metric, precision), value, gradient)


def _with_barrier(gradient: Array, factor: Array, barrier: float) -> Array:
    """Add the barrier's derivative; symmetric to the bit, so that (i, j) and (j, i) stay equal."""
    gradient = gradient - barrier * inverse(factor)
    return (gradient + gradient.T) / 2


def _restraint(precision: Array, factor: Array, alpha: float, barrier: float) -> float:
    """Return penalty and barrier of one axis."""
    xp = namespace(precision)
    return alpha * float(xp.sum(xp.abs(precision))) - barrier * logdet(factor)


def make_problem(data: Array, rank: int, alpha: Pair[float]) -> tuple[Problem, Matrices, Matrices]:
    """Return the problem in scaled entries, the precisions to start from, and the scales.

    Rows and columns are divided by their scales, ``y_ij / sqrt(r_i c_j)`` with mean square one in
    every row and column, and all entries by the root mean square of the signal's residual. So the
    penalties compare entries of one kind, as those of correlations would, and alpha depends on the
    units neither of the matrix nor of any row or column.
    """
    sides = row_col_scales(engine_for(data))
    scale = each(lambda side: like(np.sqrt(side.variances), data), Pair(*sides))
    scaled = data / (scale.row[:, None] * scale.col[None, :])
    xp = namespace(data)
    values = xp.linalg.svdvals(scaled)[rank:]
    noise = float(xp.sum(values * values) / (data.shape[0] * data.shape[1])) ** 0.5
    multiple = best_multiples(values / noise, alpha, data.shape)
    start = each(
        lambda times, ones: times * diagonal_matrix(ones), multiple, each(xp.ones_like, scale)
    )
    barrier = each(lambda times, weight: BARRIER * weight * times, multiple, alpha)
    return Problem(scaled / noise, rank, alpha, barrier), start, scale


def best_multiples(
    singular_values: Array, alpha: Pair[float], shape: tuple[int, int]
) -> Pair[float]:
    """Return a and b such that the objective is lowest at A = a I and B = b I.

    The penalties ``a x + b y`` are lowest for a given product ab where they are equal; with t =
    sqrt(ab) the objective is then ``t^2 f - 2 t (g - h)``, lowest at t = (g - h) / f.
    """
    row, col = each(lambda weight, size: weight * size, alpha, Pair(*shape))
    xp = namespace(singular_values)
    root = (shape[0] * shape[1]) ** 0.5
    gain = float(xp.sum(singular_values)) / root**0.5
    cost = (row * col) ** 0.5
    if gain <= cost:
        raise ValueError(
            "The penalty outweighs the noise: every noise precision would be zero. Multiply "
            f"alpha_row and alpha_col by less than {gain / cost:.2g}."
        )
    multiple = (gain - cost) / (float(xp.sum(singular_values * singular_values)) / root)
    balance = (col / row) ** 0.5
    return Pair(multiple * balance, multiple / balance)


def fit_convex(data: Array, rank: int, alpha: Pair[float], **options: Any) -> WassersteinFit:
    """Minimize the relaxed objective over A and B, from the row and column scales of Y.

    Where the components explain Y exactly, the precisions are identities. The weights alpha of
    |A|_1 and |B|_1 are for entries scaled as `make_problem` does. The options are those of
    `descend`.
    """
    if data.shape[0] < data.shape[1]:
        flipped = fit_convex(data.T, rank, alpha.swapped(), **options)
        return WassersteinFit(flipped.precision.swapped(), flipped.history, flipped.converged)
    exact = exact_fit(data, rank)
    if exact is not None:
        return exact
    problem, start, scale = make_problem(data, rank, alpha)
    precision, history, converged = descend(problem, start, **options)
    return WassersteinFit(each(_unscaled, precision, scale), history, converged)


def descend(
    problem: Problem,
    start: Matrices,
    tol: float = 1e-5,
    max_iter: int = 500,
    report: Report = silent,
    resume: State | None = None,
) -> tuple[Matrices, list[float], bool]:
    """Take proximal gradient steps on A and B until the objective settles; it never rises.

    It settles where five steps lower the objective by at most the share `tol`. Entry (i, j) moves
    in proportion to A_ii A_jj, one over its curvature. The step sizes are those of Barzilai and
    Borwein, each side its own, halved until the objective falls enough.
    """
    iterate = Iterate(start, Pair(1.0, 1.0), [])
    if resume is not None:
        iterate = unpack(Iterate, resume, start.row)
    precision, size, history = iterate
    point = problem.at(precision)
    if point is None:
        raise ValueError("The precisions to start from must be positive definite.")
    history = history or [point.value]
    gradient = point.gradient()
    converged = _settled(history, tol)
    while not converged and len(history) <= max_iter:
        taken, used = accepted_step(problem, point, gradient, size)
        if taken is None:
            converged = True  # no step lowers the objective: rounding is all that is left
            break
        before, gradient = gradient, taken.gradient()
        change = each(sub, taken.precision, point.precision)
        size = each(_next_size, change, each(sub, gradient, before), point.metric, used)
        point = taken
        history.append(point.value)
        converged = _settled(history, tol)
        state = partial(pack, Iterate(point.precision, size, history))
        report(Progress("noise precisions", len(history) - 1, point.value, state, max_iter))
    return point.precision, history, converged


def accepted_step(
    problem: Problem, point: Point, gradient: Matrices, size: Pair[float]
) -> tuple[Point | None, Pair[float]]:
    """Return the proximal step with the largest sizes that lowers the objective enough.

    None where the sizes fall below the smallest one worth trying.
    """
    while min(size) > SMALLEST:
        moved = each(proximal_step, point.precision, gradient, point.metric, problem.alpha, size)
        change = each(sub, moved, point.precision)
        length = sum(each(_squared, change, point.metric, size))
        candidate = problem.at(moved)
        if candidate is not None and candidate.value < point.value - SUFFICIENT * length:
            return candidate, size
        size = Pair(size.row / 2, size.col / 2)
    return None, size


def proximal_step(
    precision: Array, gradient: Array, metric: Array, alpha: float, size: float
) -> Array:
    """Step against the gradient, then move every entry towards zero and no further."""
    sizes = size * metric
    moved, most = precision - sizes * gradient, alpha * sizes
    xp = namespace(moved)
    return moved - xp.minimum(xp.maximum(moved, -most), most)


def _unscaled(precision: Array, scale: Array) -> Any:
    """Return ``P_ij / (s_i s_j)``, sparse for an array of NumPy."""
    unscaled = precision / (scale[:, None] * scale[None, :])
    return sp.csr_array(unscaled) if isinstance(unscaled, np.ndarray) else unscaled


def _metric(precision: Array) -> Array:
    diagonal = namespace(precision).linalg.diagonal(precision)
    return diagonal[:, None] * diagonal[None, :]


def _squared(change: Array, metric: Array, size: float) -> float:
    return float(namespace(change).sum(change**2 / metric)) / size


def _next_size(change: Array, bend: Array, metric: Array, used: float) -> float:
    """Return ``|dA| / |dg|``, one over the curvature along the last step.

    It is the geometric mean of the two sizes of Barzilai and Borwein, and needs about half the
    evaluations of the longer one.
    """
    xp = namespace(change)
    if float(xp.sum(change * bend)) <= 0:
        return 2 * used
    ratio = float(xp.sum(change**2 / metric)) / float(xp.sum(bend**2 * metric))
    # Sizes from a coarse list: a rounding error would otherwise change all steps that follow.
    return math.exp2(round(2 * math.log2(ratio)) / 4)


def _settled(history: list[float], tol: float) -> bool:
    if len(history) <= WINDOW:
        return False
    return history[-1 - WINDOW] - history[-1] <= tol * abs(history[-1])
