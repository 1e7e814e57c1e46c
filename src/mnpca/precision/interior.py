"""Interior-point method on the dual: for small problems, and insensitive to ill-conditioning.

Maximizes logdet W + mu sum_ij log(alpha_ij^2 - (W_ij - S_ij)^2) over the off-diagonal entries for
falling mu (Boyd and Vandenberghe 2004, chapter 11), by steps with the whole Hessian of logdet and a
primal-dual curvature of the bounds. W stays feasible and definite, so that every iterate bounds the
optimum; its inverse T is the precision, and 2 T_ij the difference of the bounds' multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import cholesky, inverse, logdet
from mnpca.precision._kernels import fill_hessian
from mnpca.precision.certificate import log_determinant
from mnpca.precision.problem import Point, Problem, not_certified

# The Hessian has one row per pair of variables.
MAX_PAIRS = 5000
FIRST_BARRIER = 1.0
# The barrier becomes this share of what T_ij times the room of W_ij is on average.
FALL = 0.1
MAX_STEPS = 100
# Of what a step promises it gains this share, up to this rounding of the value.
GAIN, ROUNDING = 0.01, 1e-13
# An entry of W this far inside its bounds, as a share of them, belongs to a zero of T.
INSIDE = (0.99, 0.9, 0.5, 0.0)


def is_small(problem: Problem) -> bool:
    """Whether the problem is small enough."""
    p = problem.size
    return p * (p - 1) // 2 <= MAX_PAIRS


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of variables with a penalty: W = S + inside there, |inside| <= bound.

    ``inside`` is kept beside W, where rounding would hide a bound of a trillionth of the variances.
    """

    S: FloatArray
    rows: IntArray
    columns: IntArray
    bound: FloatArray

    def point(self, inside: FloatArray) -> FloatArray:
        """Return W."""
        W = self.S.copy()
        W[self.rows, self.columns] += inside
        W[self.columns, self.rows] = W[self.rows, self.columns]
        return W

    def value(self, inside: FloatArray, barrier: float) -> float:
        """Return the barrier function; -inf at a bound or where W is not definite."""
        if np.any(np.abs(inside) >= self.bound):
            return -np.inf
        # As a quotient: the squares of bounds near 1e-6 would lose digits.
        walls = np.log1p(-inside / self.bound) + np.log1p(inside / self.bound)
        return log_determinant(self.point(inside)) + barrier * float(walls.sum())


def solve_by_interior_point(problem: Problem, goal: float) -> Point:
    """Solve until the duality gap is at most goal, or raise."""
    scale = np.sqrt(problem.diagonal)
    units = np.outer(scale, scale)
    S = problem.covariance / units
    np.fill_diagonal(S, 1.0)
    alpha = np.broadcast_to(problem.alpha, S.shape) / units
    np.fill_diagonal(alpha, 0.0)
    rows, columns = np.nonzero(np.triu(alpha))
    pairs = _Pairs(S, rows, columns, alpha[rows, columns])
    inside = _first_point(S, alpha)[rows, columns]
    hessian = np.zeros((len(rows), len(rows)))
    barrier, size, slackness = FIRST_BARRIER, 1.0, np.inf
    for step in range(1, MAX_STEPS + 1):
        factor = cholesky(pairs.point(inside))
        if factor is None:
            break
        T = inverse(factor)
        slackness = _slackness(pairs, inside, T)
        if step > 1:
            # After a short step W is not yet where the barrier is to fall.
            barrier = min(barrier, max(FALL, 1.0 - size) * slackness)
        size, moved = _newton_step(pairs, inside, T, barrier, hessian)
        if moved is None:
            break
        inside = moved
        point = None
        if slackness < FIRST_BARRIER:
            point = _sparsest(S, alpha, pairs.point(inside), goal, step)
        if point is not None:
            shift = 2.0 * float(np.log(scale).sum())
            return Point(point.T / units, point.W * units, point.value + shift, point.gap, step)
    raise not_certified(slackness * len(rows) / problem.size)


def _first_point(S: FloatArray, alpha: FloatArray) -> FloatArray:
    """Change of S that shrinks its off-diagonal by half of what the bounds allow, or less.

    S_ij becomes (1 - u_i) (1 - u_j) S_ij, which is as definite as S. With a u of its own, a
    variable with tight bounds does not keep all others near theirs.
    """
    off = np.abs(S - np.diag(np.diagonal(S)))
    ratio = np.divide(alpha, off, out=np.ones_like(S), where=off > 0)
    u = 0.25 * np.minimum(ratio, 1.0).min(axis=1)
    change: FloatArray = -S * (u + u[:, None] - np.outer(u, u))
    np.fill_diagonal(change, 0.0)
    return change


def _slackness(pairs: _Pairs, inside: FloatArray, T: FloatArray) -> float:
    """Average of 2 |T_ij| times W_ij's way to the bound where T_ij belongs: the gap, by pairs."""
    pull = 2.0 * T[pairs.rows, pairs.columns]
    return float(np.sum(np.abs(pull) * pairs.bound - pull * inside)) / max(len(inside), 1)


def _newton_step(
    pairs: _Pairs, inside: FloatArray, T: FloatArray, barrier: float, hessian: FloatArray
) -> tuple[float, FloatArray | None]:
    """Length of the step and the next point; None where rounding leaves no step.

    The bounds' multipliers differ by 2 T_ij, and the one of the bound where W_ij does not belong
    is barrier / room. Their quotients by the rooms are the bounds' curvature. ``hessian`` is room
    for a matrix.
    """
    above, below = 1.0 / (pairs.bound - inside), 1.0 / (pairs.bound + inside)
    pull = 2.0 * T[pairs.rows, pairs.columns]
    slope = pull + barrier * (below - above)
    other = barrier * np.where(pull > 0, below, above)
    fill_hessian(T, pairs.rows, pairs.columns, hessian)
    curvature = np.einsum("ii->i", hessian)
    curvature += (np.maximum(pull, 0.0) + other) * above + (np.maximum(-pull, 0.0) + other) * below
    # With a diagonal of one the factorization copes with entries of any size.
    unit = 1.0 / np.sqrt(curvature)
    hessian *= unit
    hessian *= unit[:, None]
    # The C-ordered lower triangle is the Fortran-ordered upper one.
    _, solution, info = lapack.dposv(hessian.T, unit * slope, lower=0, overwrite_a=1)
    if info != 0:
        return 0.0, None
    direction = unit * solution
    gain = max(float(slope @ direction), 0.0)
    with np.errstate(divide="ignore"):
        room = 1.0 / np.where(direction > 0, above, below) / np.abs(direction)
    size = min(1.0, 0.95 * float(room.min(initial=np.inf)))
    before = pairs.value(inside, barrier)
    while size > 1e-10:
        moved = inside + size * direction
        if pairs.value(moved, barrier) >= before + GAIN * size * gain - ROUNDING * abs(before):
            return size, moved
        size *= 0.5
    return size, None


def _sparsest(
    S: FloatArray, alpha: FloatArray, W: FloatArray, goal: float, step: int
) -> Point | None:
    """Return the sparsest precision near W's inverse whose gap is at most goal, if there is one."""
    factor = cholesky(W)
    if factor is None:
        return None
    dual, inverse_of = logdet(factor) + len(W), inverse(factor)
    for share in INSIDE:
        T = np.where(np.abs(W - S) < share * alpha, 0.0, inverse_of)
        value = float(np.sum(S * T) + np.sum(alpha * np.abs(T))) - log_determinant(T.copy())
        if value - dual <= goal:
            return Point(T, W, value, max(value - dual, 0.0), step)
    return None
