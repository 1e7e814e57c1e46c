"""Where the convex method starts: row and column scales, in units that suit the penalty."""

import numpy as np

from mnpca.engines import engine_for
from mnpca.engines.arrays import Array, diagonal_matrix, like, namespace
from mnpca.noise.scales import row_col_scales
from mnpca.solvers.wasserstein.pair import Matrices, Pair, each
from mnpca.solvers.wasserstein.problem import Problem

# Weight of the barrier, as a share of the penalty at the start.
BARRIER = 0.03


class PenaltyError(ValueError):
    """The penalty outweighs the noise."""


def make_problem(data: Array, rank: int, alpha: Pair[float]) -> tuple[Problem, Matrices, Matrices]:
    """Return the problem in scaled entries, the precisions to start from, and the scales.

    Rows and columns are divided by their scales, ``y_ij / sqrt(r_i c_j)`` with mean square one in
    every row and column, and all entries by the root mean square of the signal's residual. So the
    penalties compare entries of one kind, as those of correlations would, and alpha depends on
    the units neither of the matrix nor of any row or column.

    Raises
    ------
    PenaltyError
        If zero precisions minimize the objective.
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

    The penalties ``a x + b y`` are lowest for a given product ab where they are equal; with
    t = sqrt(ab) the objective is then ``t^2 f - 2 t (g - h)``, lowest at t = (g - h) / f.

    Parameters
    ----------
    singular_values : array
        Of the residual.
    alpha : Pair of float
        Weights of |A|_1 and |B|_1.
    shape : tuple of int
        (n, p).
    """
    row, col = each(lambda weight, size: weight * size, alpha, Pair(*shape))
    xp = namespace(singular_values)
    root = (shape[0] * shape[1]) ** 0.5
    gain = float(xp.sum(singular_values)) / root**0.5
    cost = (row * col) ** 0.5
    if gain <= cost:
        raise PenaltyError(
            "The penalty outweighs the noise: every noise precision would be zero. Multiply "
            f"alpha_row and alpha_col by less than {gain / cost:.2g}."
        )
    multiple = (gain - cost) / (float(xp.sum(singular_values * singular_values)) / root)
    balance = (col / row) ** 0.5
    return Pair(multiple * balance, multiple / balance)
