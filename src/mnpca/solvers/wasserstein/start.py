"""Where the convex method starts: row and column scales, in units that suit the penalty."""

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.dense import DenseEngine
from mnpca.model.gpca import truncated_svd
from mnpca.solvers.flagship.scales import row_col_scales
from mnpca.solvers.wasserstein.pair import Matrices, Pair, each
from mnpca.solvers.wasserstein.problem import Problem

# Weight of the barrier, as a share of the penalty at the start.
BARRIER = 0.03


class PenaltyError(ValueError):
    """The penalty outweighs the noise."""


def make_problem(data: FloatArray, rank: int, alpha: Pair[float]) -> tuple[Problem, Matrices]:
    """Return the problem and the diagonal precisions to start from.

    They are the inverse scales r and c with which ``y_ij / sqrt(r_i c_j)`` has rows and columns of
    mean square one, and the signal's residual there sets the unit: Y is divided by its root mean
    square, so that alpha does not depend on the units of Y.

    Raises
    ------
    PenaltyError
        If zero precisions minimise the objective.
    """
    sides = row_col_scales(DenseEngine(data, dtype=np.float64))
    scale = each(lambda side: np.sqrt(1.0 / side.precision.diagonal()), Pair(*sides))
    back = np.outer(*scale)
    scaled = data / back
    residual = scaled - truncated_svd(scaled, rank).low_rank().dense()
    noise = float(np.sqrt(np.mean((residual * back) ** 2)))
    scale = Pair(scale.row, scale.col / noise)
    multiple = best_multiples(residual, each(lambda by: float(np.sum(by**-2)), scale), alpha)
    start = each(lambda by, times: np.diag(times * by**-2), scale, multiple)
    barrier = each(
        lambda side, weight: BARRIER * weight * float(np.trace(side)) / len(side), start, alpha
    )
    return Problem(data / noise, rank, alpha, barrier), start


def best_multiples(whitened: FloatArray, traces: Pair[float], alpha: Pair[float]) -> Pair[float]:
    """Return a and b such that the objective is lowest at a A and b B, for diagonal A and B.

    The penalties ``a x + b y`` are lowest for a given product ab where they are equal; with
    t = sqrt(ab) the objective is then ``t^2 f - 2 t (g - h)``, lowest at t = (g - h) / f.

    Parameters
    ----------
    whitened : array of shape (n, p)
        Residual Q E R' at A and B.
    traces : Pair of float
        Of A and B.
    """
    row, col = each(lambda weight, trace: weight * trace, alpha, traces)
    values = np.linalg.svd(whitened, compute_uv=False)
    root = whitened.size**0.5
    gain = float(values.sum()) / root**0.5
    cost = (row * col) ** 0.5
    if gain <= cost:
        raise PenaltyError(
            "The penalty outweighs the noise: every noise precision would be zero. Multiply "
            f"alpha_row and alpha_col by less than {gain / cost:.2g}."
        )
    multiple = (gain - cost) / (float(np.vdot(values, values)) / root)
    balance = (col / row) ** 0.5
    return Pair(multiple * balance, multiple / balance)
