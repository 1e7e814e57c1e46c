"""The relaxed Wasserstein objective in precision space: proximal steps on A and B themselves.

Given the residual and one precision the objective is convex in the other, and its penalty has a
closed proximal step: entries become exactly zero, and there is no learning rate.
"""

import math
from collections.abc import Callable
from operator import sub
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import Array, like, namespace, to_numpy
from mnpca.solvers.progress import Progress, Report, State, silent
from mnpca.solvers.wasserstein.pair import Matrices, Pair, WassersteinFit, each, exact_fit
from mnpca.solvers.wasserstein.problem import Point, Problem
from mnpca.solvers.wasserstein.start import make_problem

# A step must lower the objective by this share of its squared length over the step size.
SUFFICIENT = 1e-4
# Accepted steps over which the decrease is measured; the size of one step says little.
WINDOW = 5
# Step sizes, which are about 1, below which no step can change anything any more.
SMALLEST = 1e-10


def fit_convex(
    data: Array,
    rank: int,
    alpha: Pair[float],
    *,
    tol: float = 1e-5,
    max_iter: int = 500,
    report: Report = silent,
    resume: State | None = None,
) -> WassersteinFit:
    """Minimize the relaxed objective over A and B, from the row and column scales of Y.

    Parameters
    ----------
    data : array of shape (n, p)
        Y, centered if it is to be.
    rank : int
        Number of components. Where they explain Y exactly, the precisions are identities.
    alpha : Pair of float
        Weights of |A|_1 and |B|_1, for entries scaled as `make_problem` does.
    tol : float, default=1e-5
        Relative decrease of the objective over five steps at which to stop.
    max_iter : int, default=500
        Largest number of steps.
    report, resume
        See `mnpca.solvers.progress`.
    """
    if data.shape[0] < data.shape[1]:
        flipped = fit_convex(
            data.T,
            rank,
            alpha.swapped(),
            tol=tol,
            max_iter=max_iter,
            report=report,
            resume=resume,
        )
        return WassersteinFit(flipped.precision.swapped(), flipped.history, flipped.converged)
    exact = exact_fit(data, rank)
    if exact is not None:
        return exact
    problem, start, scale = make_problem(data, rank, alpha)
    precision, history, converged = descend(problem, start, tol, max_iter, report, resume)
    return WassersteinFit(each(_unscaled, precision, scale), history, converged)


def descend(
    problem: Problem,
    start: Matrices,
    tol: float,
    max_iter: int,
    report: Report = silent,
    resume: State | None = None,
) -> tuple[Matrices, list[float], bool]:
    """Take proximal gradient steps on A and B until the objective settles; it never rises.

    Entry (i, j) moves in proportion to A_ii A_jj, one over its curvature. The step sizes are
    those of Barzilai and Borwein, each side its own, halved until the objective falls enough.
    """
    if resume is None:
        precision = start
        size = Pair(1.0, 1.0)
        history: list[float] = []
    else:
        precision = each(like, Pair(*resume["precision"]), start)
        size = Pair(*resume["step_size"])
        history = list(resume["history"])
    point = problem.at(precision)
    if point is None:
        raise ValueError("The precisions to start from must be positive definite.")
    history = history or [point.value]
    gradient = problem.gradient(point)
    converged = _settled(history, tol)
    while not converged and len(history) <= max_iter:
        taken, used = accepted_step(problem, point, gradient, size)
        if taken is None:
            converged = True  # no step lowers the objective: rounding is all that is left
            break
        new_gradient = problem.gradient(taken)
        change = each(sub, taken.precision, point.precision)
        bend = each(sub, new_gradient, gradient)
        size = each(_next_size, change, bend, each(_metric, point.precision), used)
        point, gradient = taken, new_gradient
        history.append(point.value)
        converged = _settled(history, tol)
        saver = _saver(point.precision, size, history)
        report(Progress("noise precisions", len(history) - 1, point.value, saver, max_iter))
    return point.precision, history, converged


def accepted_step(
    problem: Problem, point: Point, gradient: Matrices, size: Pair[float]
) -> tuple[Point | None, Pair[float]]:
    """Return the proximal step with the largest sizes that lowers the objective enough.

    None where the sizes fall below the smallest one worth trying.
    """
    while min(size) > SMALLEST:
        moved = each(proximal_step, point.precision, gradient, problem.alpha, size)
        change = each(sub, moved, point.precision)
        length = sum(each(_squared, change, each(_metric, point.precision), size))
        candidate = problem.at(moved)
        if candidate is not None and candidate.value < point.value - SUFFICIENT * length:
            return candidate, size
        size = Pair(size.row / 2, size.col / 2)
    return None, size


def proximal_step(precision: Array, gradient: Array, alpha: float, size: float) -> Array:
    """Step against the gradient, then move every entry towards zero and no further."""
    sizes = size * _metric(precision)
    moved = precision - sizes * gradient
    most = alpha * sizes
    xp = namespace(moved)
    return moved - xp.minimum(xp.maximum(moved, -most), most)


def _unscaled(precision: Array, scale: Array) -> Any:
    """Return ``P_ij / (s_i s_j)``, sparse for an array of NumPy."""
    unscaled = precision / (scale[:, None] * scale[None, :])
    return sp.csr_array(unscaled) if isinstance(unscaled, np.ndarray) else unscaled


def _metric(precision: Array) -> Array:
    """Return ``A_ii A_jj``, about one over the curvature of the objective in A_ij."""
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


def _saver(precision: Matrices, size: Pair[float], history: list[float]) -> Callable[[], State]:
    def state() -> dict[str, Any]:
        stored = [to_numpy(side) for side in precision]
        return {"precision": stored, "step_size": list(size), "history": list(history)}

    return state
