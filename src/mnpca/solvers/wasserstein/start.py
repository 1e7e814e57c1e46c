"""Where the convex method starts: row and column scales, and units for the penalty."""

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.dense import DenseEngine
from mnpca.model.gpca import truncated_svd
from mnpca.solvers.flagship.scales import row_col_scales
from mnpca.solvers.wasserstein.pair import Matrices, Pair, each
from mnpca.solvers.wasserstein.problem import Problem

# Weight of the barrier, as a share of the penalty at the start.
BARRIER = 0.03


class NoNoiseError(ValueError):
    """There is no noise, or the penalty outweighs it."""


def scales(data: FloatArray) -> Pair[FloatArray]:
    """Return r and c with which ``y_ij / sqrt(r_i c_j)`` has rows and columns of mean square 1."""
    sides = row_col_scales(DenseEngine(data, dtype=np.float64))
    return each(lambda side: 1.0 / side.precision.diagonal(), Pair(*sides))


def make_problem(
    data: FloatArray, rank: int, alpha: Pair[float], sigma: float
) -> tuple[Problem, Matrices, Pair[FloatArray]]:
    """Return the problem in scaled entries, the precisions to start from, and the scales.

    The penalty is ``alpha_row |A|_1 + alpha_col |B|_1`` for data whose residual has mean square
    one, so that alpha does not depend on the units of Y. Minimising over ``sqrt(r) A sqrt(r)``
    instead of A, with the weights changed to match, is the same problem, but its entries are of
    one size, whatever the scales of the rows and columns.

    Raises
    ------
    NoNoiseError
        If a signal of this rank leaves no residual, or the penalty's minimum is zero precisions.
    """
    scale = scales(data)
    scaled = data / np.sqrt(np.outer(*scale))
    svd = truncated_svd(scaled, rank)
    residual = (scaled - svd.low_rank().dense()) * np.sqrt(np.outer(*scale))
    variance = float(np.mean(residual**2))
    if variance <= 1e-20 * float(np.mean(data**2)):
        raise NoNoiseError(
            f"A signal of rank {rank} explains X exactly, so there is no noise to learn from. "
            "Use fewer components, or ordinary PCA."
        )
    penalty: Matrices = Pair(
        alpha.row / np.sqrt(np.outer(scale.row, scale.row)),
        alpha.col * variance / np.sqrt(np.outer(scale.col, scale.col)),
    )
    start = best_multiples(scaled, rank, penalty, sigma)
    barrier = each(
        lambda weights, side: BARRIER * float(np.vdot(weights, side)) / len(side), penalty, start
    )
    return Problem(scaled, rank, penalty, barrier, sigma), start, scale


def best_multiples(data: FloatArray, rank: int, penalty: Matrices, sigma: float) -> Matrices:
    """Return the multiples of the identity at which the objective without barrier is lowest.

    With A = a I, B = b I the penalties ``a x + b y`` are lowest for a given product ab where they
    are equal; with t = sqrt(ab) the objective is then ``t^2 f - 2 t h``, lowest at t = h / f.
    """
    row, col = each(lambda weights: float(np.trace(weights)), penalty)
    n, p = data.shape
    values = np.linalg.svd(data, compute_uv=False)[rank:]
    root = data.size**0.5
    gain = sigma * float(values.sum()) / root**0.5
    cost = (row * col) ** 0.5
    if gain <= cost:
        raise NoNoiseError(
            "The penalty outweighs the noise: every noise precision would be zero. Multiply "
            f"alpha_row and alpha_col by less than {gain / cost:.2g}."
        )
    multiple = (gain - cost) / (float(np.vdot(values, values)) / root)
    balance = (col / row) ** 0.5
    return Pair(np.eye(n) * (multiple * balance), np.eye(p) * (multiple / balance))
