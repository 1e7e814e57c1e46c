"""A precision solver made of matrix products and Cholesky factorisations, for accelerators.

Block descent walks the matrix column by column, which a GPU does badly. Here every step is a
dense product or factorisation, so the solver runs wherever the array lives.
"""

from dataclasses import dataclass
from typing import Any

from mnpca.engines.arrays import Array, cholesky, inverse, logdet, namespace

#: Proximal steps that find a first support before Newton steps pay.
_FIRST_STEPS = 6
_MAX_HALVINGS = 30


@dataclass(frozen=True)
class DenseSolution:
    """A precision, its inverse, and how far from the optimum they can be at most."""

    precision: Array
    covariance: Array
    objective: float
    duality_gap: float
    n_iter: int


@dataclass
class _Iterate:
    """A positive definite matrix T with W = inv(T) and its objective value."""

    precision: Array
    covariance: Array
    objective: float


def solve_newton_cg(
    S: Array,
    penalty: Array,
    *,
    init: Array | None = None,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> DenseSolution:
    """Minimise ``-logdet T + tr(S T) + sum_ij penalty_ij |T_ij|`` with dense array operations.

    The gradient of the smooth part is G = S - W, W = inv(T). The entries with T_ij != 0 or
    |G_ij| > penalty_ij are free; on them the objective is smooth inside the orthant given by
    Z = sign(T) (or -sign(G) where T is zero). The Newton direction D solves

        P_free(W D W) = -(G + penalty * Z) on the free entries

    by conjugate gradients, preconditioned with the Hessian's diagonal W_ii W_jj + W_ij^2; a
    backtracking search follows, entries that would leave the orthant stop at zero (Oztoprak
    et al. 2012). A few proximal gradient steps (Guillot et al. 2012) find the first support.

    Parameters
    ----------
    S : array of shape (p, p)
        Covariance, on any device; the result lives there too.
    penalty : array of shape (p, p)
        Non-negative penalties; the diagonal may be zero.
    init : array of shape (p, p), default=None
        Positive definite start.
    tol : float, default=1e-4
        The duality gap relative to ``max(1, |objective|)`` at which to stop.
    max_iter : int, default=100
        Most iterations.
    """
    xp = namespace(S)
    diagonal = xp.linalg.diagonal(S) + xp.linalg.diagonal(penalty)
    start = _diagonal_matrix(xp, 1.0 / diagonal) if init is None else init
    current = _evaluate(S, penalty, start)
    if current is None:
        raise ValueError("init must be positive definite.")
    gap, step, n_iter = float("inf"), 1.0, 0
    for n_iter in range(1, max_iter + 1):
        gap = duality_gap(S, penalty, current)
        if gap <= tol * max(1.0, abs(current.objective)):
            break
        if n_iter <= _FIRST_STEPS and init is None:
            moved, step = _proximal_step(S, penalty, current, step)
        else:
            moved = _newton_step(S, penalty, current, accuracy=min(0.1, 1.0 / n_iter))
        if moved is None:  # no descent left at working precision
            break
        current = moved
    else:
        gap = duality_gap(S, penalty, current)
    return DenseSolution(current.precision, current.covariance, current.objective, gap, n_iter)


def duality_gap(S: Array, penalty: Array, iterate: _Iterate) -> float:
    """Bound the distance to the optimum by ``f(T) - logdet(S + U) - p``.

    U = clip(W - S, -penalty, penalty) is feasible for the dual. Where S + U is not positive
    definite the bound is infinite.
    """
    xp = namespace(S)
    slack = xp.minimum(xp.maximum(iterate.covariance - S, -penalty), penalty)
    factor = cholesky(S + slack)
    if factor is None:
        return float("inf")
    return iterate.objective - logdet(factor) - S.shape[0]


def _evaluate(S: Array, penalty: Array, precision: Array) -> _Iterate | None:
    """Return the iterate at `precision`, or None where that is not positive definite."""
    xp = namespace(S)
    factor = cholesky(precision)
    if factor is None:
        return None
    value = xp.sum(S * precision) + xp.sum(penalty * xp.abs(precision))
    return _Iterate(precision, inverse(factor), float(value) - logdet(factor))


def _proximal_step(
    S: Array, penalty: Array, current: _Iterate, step: float
) -> tuple[_Iterate | None, float]:
    """Take one proximal gradient step, halved until the objective's quadratic bound holds."""
    xp = namespace(S)
    gradient = S - current.covariance
    # The smallest eigenvalue of T, squared, is a safe step; the average one is a good first try.
    scale = float(xp.mean(xp.linalg.diagonal(current.covariance))) ** -2
    for _ in range(_MAX_HALVINGS):
        size = step * scale
        shifted = current.precision - size * gradient
        threshold = size * penalty
        candidate = xp.sign(shifted) * xp.maximum(xp.abs(shifted) - threshold, _zero(xp, S))
        moved = _evaluate(S, penalty, candidate)
        if moved is not None and moved.objective < current.objective:
            return moved, min(2.0 * step, 4.0)
        step *= 0.5
    return None, step


def _newton_step(
    S: Array, penalty: Array, current: _Iterate, *, accuracy: float
) -> _Iterate | None:
    """Take one projected Newton step with a backtracking search."""
    xp = namespace(S)
    precision, covariance = current.precision, current.covariance
    gradient = S - covariance
    on_support = precision != 0
    free = on_support | (xp.abs(gradient) > penalty)
    orthant = xp.where(on_support, xp.sign(precision), -xp.sign(gradient))
    slope = xp.where(free, gradient + penalty * orthant, _zero(xp, S))
    direction = _newton_direction(covariance, slope, free, accuracy)
    size = 1.0
    for _ in range(_MAX_HALVINGS):
        candidate = precision + size * direction
        candidate = xp.where(
            candidate * orthant >= 0, candidate, _keep_unpenalised(xp, candidate, penalty)
        )
        moved = _evaluate(S, penalty, candidate)
        decrease = float(xp.sum(slope * (candidate - precision)))
        if moved is not None and moved.objective <= current.objective + 1e-3 * min(decrease, 0.0):
            return moved if moved.objective < current.objective else None
        size *= 0.5
    return None


def _newton_direction(covariance: Array, slope: Array, free: Array, accuracy: float) -> Array:
    """Solve ``P_free(W D W) = -slope`` by preconditioned conjugate gradients."""
    xp = namespace(covariance)
    zero = _zero(xp, covariance)
    variance = xp.linalg.diagonal(covariance)
    curvature = variance[:, None] * variance[None, :] + covariance * covariance
    residual = -slope
    direction = xp.zeros_like(slope)
    preconditioned = residual / curvature
    search = preconditioned
    rho = float(xp.sum(residual * preconditioned))
    target = accuracy**2 * rho
    for _ in range(40):
        if rho <= target or rho == 0.0:
            break
        product = xp.where(free, covariance @ search @ covariance, zero)
        length = rho / float(xp.sum(search * product))
        direction = direction + length * search
        residual = residual - length * product
        preconditioned = residual / curvature
        new_rho = float(xp.sum(residual * preconditioned))
        search = preconditioned + (new_rho / rho) * search
        rho = new_rho
    return (direction + direction.T) / 2


def _keep_unpenalised(xp: Any, candidate: Array, penalty: Array) -> Array:
    """Entries that left their orthant stop at zero, unless nothing penalises their sign."""
    return xp.where(penalty > 0, _zero(xp, candidate), candidate)


def _diagonal_matrix(xp: Any, values: Array) -> Array:
    return xp.eye(values.shape[0], dtype=values.dtype, device=values.device) * values[:, None]


def _zero(xp: Any, like: Array) -> Array:
    return xp.zeros((), dtype=like.dtype, device=like.device)
