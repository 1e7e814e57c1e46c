"""Interior-point method on the dual: slow and small, but it does not mind ill-conditioning.

Maximises logdet W + mu sum_ij log(alpha_ij^2 - (W_ij - S_ij)^2) over the off-diagonal entries for
falling mu, by Newton's method with the whole Hessian (Boyd and Vandenberghe 2004, chapter 11). W
stays feasible and definite, so that every iterate bounds the optimum; its inverse is the precision.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mnpca.precision._kernels.interior import fill_hessian
from mnpca.precision.newton import NewtonPoint
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, Index, inverse, log_determinant

# The Hessian has one row per pair of variables.
MAX_PAIRS = 3500
FIRST_BARRIER, FALL = 1.0, 0.1
MAX_STEPS = 200
# Newton's decrement, in units in which the barrier is self-concordant, at which it falls.
CENTRED = 2.0
# Of the value, in the test that a step gains.
ROUNDING = 1e-13
# An entry of W this far inside its bounds, as a share of them, belongs to a zero of T.
INSIDE = (0.99, 0.9, 0.5, 0.0)


def suits(problem: Problem) -> bool:
    """Whether the problem is small enough."""
    p = problem.size
    return p * (p - 1) // 2 <= MAX_PAIRS


def solve_by_interior_point(problem: Problem, goal: float) -> NewtonPoint | None:
    """Solve until the duality gap is at most goal; None if that does not succeed."""
    scale = np.sqrt(problem.diagonal)
    units = np.outer(scale, scale)
    S = problem.covariance / units
    np.fill_diagonal(S, 1.0)
    alpha = np.broadcast_to(problem.alpha, S.shape) / units
    W = _first_point(S, alpha)
    if W is None:
        return None
    rows, columns = np.nonzero(np.triu(alpha > 0, 1))
    barrier = FIRST_BARRIER
    for step in range(1, MAX_STEPS + 1):
        T = inverse(W.copy())
        decrement, moved = _newton_step(S, alpha, W, T, rows, columns, barrier)
        if moved is None:
            return None
        W = moved
        if decrement > CENTRED * np.sqrt(min(barrier, 1.0)):
            continue
        point = _sparsest(S, alpha, W, goal, step)
        if point is not None:
            shift = 2.0 * float(np.log(scale).sum())
            return NewtonPoint(
                point.T / units, point.W * units, point.value + shift, point.gap, step
            )
        barrier *= FALL
    return None


def _first_point(S: Array, alpha: Array) -> Array | None:
    """Shrink S's off-diagonal by half of what the bounds allow; None if that is not definite."""
    off = np.abs(S - np.diag(np.diagonal(S)))
    share = 0.5 * float(np.min(alpha[off > 0] / off[off > 0], initial=1.0))
    W = (1.0 - share) * S
    np.fill_diagonal(W, 1.0)
    return W if log_determinant(W.copy()) > -np.inf else None


def _newton_step(
    S: Array, alpha: Array, W: Array, T: Array, rows: Index, columns: Index, barrier: float
) -> tuple[float, Array | None]:
    """Newton's decrement at W and the next point; None where rounding leaves no step."""
    bound = alpha[rows, columns]
    inside = (W - S)[rows, columns]
    above, below = 1.0 / (bound - inside), 1.0 / (bound + inside)
    slope = 2.0 * T[rows, columns] + barrier * (below - above)
    # The kernel fills the lower triangle; what happens to lie in the other would be multiplied too.
    hessian = np.zeros((len(rows), len(rows)))
    fill_hessian(T, rows, columns, hessian)
    curvature = np.einsum("ii->i", hessian)
    curvature += barrier * (above**2 + below**2)
    # With a diagonal of one the factorisation copes with entries of any size.
    unit = 1.0 / np.sqrt(curvature)
    hessian *= unit
    hessian *= unit[:, None]
    # The C-ordered lower triangle is the Fortran-ordered upper one.
    _, solution, info = lapack.dposv(hessian.T, unit * slope, lower=0, overwrite_a=1)
    if info != 0:
        return np.inf, None
    direction = unit * solution
    gain = max(float(slope @ direction), 0.0)
    with np.errstate(divide="ignore"):
        room = np.where(direction > 0, bound - inside, bound + inside) / np.abs(direction)
    size = min(1.0, 0.95 * float(room.min(initial=np.inf)))
    before = _barrier_value(W, bound, inside, barrier)
    while size > 1e-10:
        moved = W.copy()
        moved[rows, columns] += size * direction
        moved[columns, rows] = moved[rows, columns]
        value = _barrier_value(moved, bound, inside + size * direction, barrier)
        if value >= before + 0.1 * size * gain - ROUNDING * abs(before):
            return float(np.sqrt(gain)), moved
        size *= 0.5
    return float(np.sqrt(gain)), None


def _barrier_value(W: Array, bound: Array, inside: Array, barrier: float) -> float:
    # As a quotient: the squares of bounds near 1e-6 would lose digits.
    walls = np.log1p(-inside / bound) + np.log1p(inside / bound)
    return log_determinant(W.copy()) + barrier * float(walls.sum())


def _sparsest(S: Array, alpha: Array, W: Array, goal: float, step: int) -> NewtonPoint | None:
    """Return the sparsest precision near W's inverse whose gap is at most goal, if there is one."""
    dual = log_determinant(W.copy()) + len(W)
    inverse_of = inverse(W.copy())
    for share in INSIDE:
        zero = np.abs(W - S) < share * alpha
        np.fill_diagonal(zero, False)
        T = np.where(zero, 0.0, inverse_of)
        cost = float(np.sum(S * T) + np.sum(alpha * np.abs(T)) - np.sum(np.diagonal(alpha * T)))
        value = cost - log_determinant(T.copy())
        if value - dual <= goal:
            return NewtonPoint(T, W, value, max(value - dual, 0.0), step)
    return None
