"""The likelihood algorithm: block descent on the penalised likelihood (the paper's MRL)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.model.gpca import truncated_svd
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, absolute_sum, best_gauge, objective
from mnpca.model.sparse import logdet
from mnpca.precision import PrecisionResult, sparse_precision
from mnpca.solvers.low_rank_step import LowRankStep, alternate_least_squares, closed_form
from mnpca.solvers.progress import Progress, Report, State, silent


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where the descent stands: X and W, A and B, and what warm starts need."""

    signal: LowRank
    row_precision: sp.csr_array
    col_precision: sp.csr_array
    row_start: PrecisionResult | None = None
    col_start: PrecisionResult | None = None


@dataclass(frozen=True, eq=False)
class LikelihoodFit:
    """The end of a descent.

    Attributes
    ----------
    signal : LowRank
        Scores X and loadings W, not yet identified.
    row_precision, col_precision : sparse arrays
        A and B, in the gauge that the penalties prefer.
    history : list of float
        Objective at the start and after every iteration; it never rises.
    converged : bool
        Whether the last iteration changed it by at most the tolerance.
    """

    signal: LowRank
    row_precision: sp.csr_array
    col_precision: sp.csr_array
    history: list[float] = field(default_factory=list)
    converged: bool = False


def fit_likelihood(
    data: FloatArray,
    rank: int,
    penalty: Penalty,
    *,
    low_rank_step: LowRankStep = "als",
    tol: float = 1e-6,
    max_iter: int = 100,
    report: Report = silent,
    resume: State | None = None,
) -> LikelihoodFit:
    """Minimise `mnpca.model.objective.objective` over X, W, A and B in turn.

    From the truncated SVD of Y and identity precisions: the row precision, the column precision,
    their common scale, then scores and loadings; until the objective changes by at most `tol`
    (relative where the objective exceeds 1). Where the penalties do not determine the scale, it
    is held at ``logdet A = 0``.

    Parameters
    ----------
    data : array of shape (n, p)
        Y, centred if it is to be.
    rank : int
        Number of components.
    penalty : Penalty
        Weights of the penalties.
    low_rank_step : {"als", "closed"}, default="als"
        Alternating least squares, or generalised PCA.
    tol : float, default=1e-6
        Change of the objective at which to stop; precisions are solved ten times as accurately.
    max_iter : int, default=100
        Largest number of iterations.
    report, resume
        See `mnpca.solvers.progress`.
    """
    if resume is None:
        iterate = start(data, rank)
        history = [_value(data, iterate, penalty)]
    else:
        iterate, history = _restore(resume)
    converged = _settled(history, tol)
    while not converged and len(history) <= max_iter:
        iterate = row_step(data, iterate, penalty, tol=0.1 * tol)
        iterate = col_step(data, iterate, penalty, tol=0.1 * tol)
        iterate = gauge_step(data, iterate, penalty)
        iterate = signal_step(data, iterate, penalty, low_rank_step)
        history.append(_value(data, iterate, penalty))
        converged = _settled(history, tol)
        report(Progress("likelihood", len(history) - 1, history[-1], _saver(iterate, history)))
    return LikelihoodFit(
        iterate.signal, iterate.row_precision, iterate.col_precision, history, converged
    )


def start(data: FloatArray, rank: int) -> Iterate:
    """Return the truncated SVD with balanced factors, and identity precisions."""
    parts = truncated_svd(data, rank)
    root = np.sqrt(parts.singular_values)
    n, p = data.shape
    return Iterate(
        LowRank(parts.left * root, parts.right * root),
        sp.eye_array(n, format="csr"),
        sp.eye_array(p, format="csr"),
    )


def row_step(data: FloatArray, iterate: Iterate, penalty: Penalty, *, tol: float) -> Iterate:
    """Minimise over the row precision: a sparse precision of ``S1 = (R B R' + ridge X X')/p``."""
    if not penalty.row_on:
        return iterate
    covariance = _covariance(data - iterate.signal.dense(), iterate.col_precision)
    if penalty.ridge:
        covariance += penalty.ridge / data.shape[1] * iterate.signal.left @ iterate.signal.left.T
    hold_scale = penalty.col_on and not penalty.sees_scale
    precision, result = _lower(
        covariance,
        penalty.row,
        penalty.diagonal,
        iterate.row_precision,
        iterate.row_start,
        tol,
        hold_scale,
    )
    return replace(iterate, row_precision=precision, row_start=result)


def col_step(data: FloatArray, iterate: Iterate, penalty: Penalty, *, tol: float) -> Iterate:
    """Minimise over the column precision, with ``S2 = (R'AR + ridge W W')/n``."""
    if not penalty.col_on:
        return iterate
    covariance = _covariance((data - iterate.signal.dense()).T, iterate.row_precision)
    if penalty.ridge:
        covariance += penalty.ridge / data.shape[0] * iterate.signal.right @ iterate.signal.right.T
    precision, result = _lower(
        covariance, penalty.col, penalty.diagonal, iterate.col_precision, iterate.col_start, tol
    )
    return replace(iterate, col_precision=precision, col_start=result)


def gauge_step(data: FloatArray, iterate: Iterate, penalty: Penalty) -> Iterate:
    """Move the common scale of the two precisions to where the penalties are lowest."""
    if not (penalty.row_on and penalty.col_on and penalty.sees_scale):
        return iterate
    scale = best_gauge(
        data.shape, iterate.signal, iterate.row_precision, iterate.col_precision, penalty
    )
    return replace(
        iterate,
        row_precision=sp.csr_array(iterate.row_precision * scale),
        col_precision=sp.csr_array(iterate.col_precision / scale),
    )


def signal_step(
    data: FloatArray, iterate: Iterate, penalty: Penalty, low_rank_step: LowRankStep
) -> Iterate:
    """Minimise over scores and loadings."""
    precisions = (iterate.row_precision, iterate.col_precision)
    if low_rank_step == "closed":
        rank = iterate.signal.left.shape[1]
        return replace(iterate, signal=closed_form(data, rank, *precisions, penalty.ridge))
    signal = alternate_least_squares(data, iterate.signal, *precisions, penalty.ridge)
    return replace(iterate, signal=signal)


def _covariance(residual: FloatArray, other_precision: sp.csr_array) -> FloatArray:
    """Covariance of the rows of a residual, ``R P R' / m``."""
    weighted = residual @ other_precision
    covariance: FloatArray = weighted @ residual.T
    covariance /= residual.shape[1]
    return covariance


def _lower(
    covariance: FloatArray,
    weight: float | FloatArray,
    diagonal: bool,
    precision: sp.csr_array,
    warm: PrecisionResult | None,
    tol: float,
    hold_scale: bool = False,
) -> tuple[sp.csr_array, PrecisionResult | None]:
    """Solve for a sparse precision; keep the present one if rounding leaves that no lower.

    With `hold_scale` the minimum is over precisions of log-determinant 0: by the method of
    Lagrange it is a multiple of the free minimum.
    """

    def value(candidate: sp.csr_array) -> float:
        row, col = candidate.tocoo().coords
        trace = float(np.sum(covariance[row, col] * candidate.tocoo().data))
        return trace - logdet(candidate) + absolute_sum(candidate, weight, diagonal)

    result = sparse_precision(covariance, weight, penalize_diagonal=diagonal, tol=tol, init=warm)
    found = result.precision
    if hold_scale:
        found = sp.csr_array(found * math.exp(-logdet(found) / len(covariance)))
    return (precision, warm) if value(found) > value(precision) else (found, result)


def _value(data: FloatArray, iterate: Iterate, penalty: Penalty) -> float:
    return objective(data, iterate.signal, iterate.row_precision, iterate.col_precision, penalty)


def _settled(history: list[float], tol: float) -> bool:
    return len(history) > 1 and history[-2] - history[-1] <= tol * max(1.0, abs(history[-1]))


def _saver(iterate: Iterate, history: list[float]) -> Callable[[], State]:
    def state() -> dict[str, Any]:
        return {
            "signal": iterate.signal,
            "row_precision": iterate.row_precision,
            "col_precision": iterate.col_precision,
            "row_start": None if iterate.row_start is None else iterate.row_start.state(),
            "col_start": None if iterate.col_start is None else iterate.col_start.state(),
            "history": list(history),
        }

    return state


def _restore(state: State) -> tuple[Iterate, list[float]]:
    starts = [
        None if state[name] is None else PrecisionResult.from_state(state[name])
        for name in ("row_start", "col_start")
    ]
    iterate = Iterate(
        LowRank(*state["signal"]), state["row_precision"], state["col_precision"], *starts
    )
    return iterate, list(state["history"])
