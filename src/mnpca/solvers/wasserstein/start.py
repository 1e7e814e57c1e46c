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


def make_problem(
    data: FloatArray, rank: int, alpha: Pair[float]
) -> tuple[Problem, Matrices, Matrices]:
    """Return the problem in scaled entries, the precisions to start from, and the scales.

    Rows and columns are divided by their scales, ``y_ij / sqrt(r_i c_j)`` with mean square one in
    every row and column, and all entries by the root mean square of the signal's residual. So the
    penalties compare entries of one kind, as those of correlations would, and alpha depends on
    the units neither of the matrix nor of any row or column.

    Raises
    ------
    PenaltyError
        If zero precisions minimise the objective.
    """
    sides = row_col_scales(DenseEngine(data, dtype=np.float64))
    scale = each(lambda side: np.sqrt(1.0 / side.precision.diagonal()), Pair(*sides))
    scaled = data / np.outer(*scale)
    residual = scaled - truncated_svd(scaled, rank).low_rank().dense()
    noise = float(np.sqrt(np.mean(residual**2)))
    multiple = best_multiples(residual / noise, alpha)
    start = each(lambda times, size: times * np.eye(size), multiple, Pair(*data.shape))
    barrier = each(lambda times, weight: BARRIER * weight * times, multiple, alpha)
    return Problem(scaled / noise, rank, alpha, barrier), start, scale


def best_multiples(residual: FloatArray, alpha: Pair[float]) -> Pair[float]:
    """Return a and b such that the objective is lowest at A = a I and B = b I.

    The penalties ``a x + b y`` are lowest for a given product ab where they are equal; with
    t = sqrt(ab) the objective is then ``t^2 f - 2 t (g - h)``, lowest at t = (g - h) / f.
    """
    row, col = each(lambda weight, size: weight * size, alpha, Pair(*residual.shape))
    values = np.linalg.svd(residual, compute_uv=False)
    root = residual.size**0.5
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
