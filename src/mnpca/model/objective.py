"""The penalized negative log-likelihood that the likelihood algorithm minimizes."""

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import inner, is_foreign_array, like, namespace
from mnpca.model.low_rank import LowRank
from mnpca.model.sparse import logdet, tile
from mnpca.model.sparse_data import weighted_norm


@dataclass(frozen=True, eq=False)
class Penalty:
    """What the likelihood is penalized by.

    `row` and `col` weigh |A_ij| and |B_ij|: a number, or a matrix. A weight of 0 switches the
    network of that side off, so that its precision stays the identity; where `free` (several
    matrices) it is no penalty instead. With `diagonal` the diagonals are penalized too. With
    `scale_free` the weight of a side is multiplied by the mean precision of the other,
    ``exp(logdet(B)/p)`` or ``exp(logdet(A)/n)``, so that the objective of (t A, B/t) is the same
    for every t. Without it the best t undoes any change of the two weights that keeps their
    product.
    """

    row: float | FloatArray = 0.0
    col: float | FloatArray = 0.0
    diagonal: bool = True
    ridge: float = 0.0
    free: bool = False
    scale_free: bool = False

    @property
    def row_on(self) -> bool:
        """Whether there is a network among rows."""
        return self.free or bool(np.any(self.row))

    @property
    def col_on(self) -> bool:
        """Whether there is a network among columns."""
        return self.free or bool(np.any(self.col))

    @property
    def determines_scale(self) -> bool:
        """Whether the penalties determine the common scale t of (t A, B/t).

        Without a penalty on the diagonals they do not: as t grows A loses its edges, and B loses
        its penalty. Two networks then need a fixed scale, ``logdet A = 0``.
        """
        if self.scale_free:
            return False
        weights = [np.min(np.diag(w) if np.ndim(w) else w) for w in (self.row, self.col)]
        return self.diagonal and bool(min(weights) > 0)


def objective(
    data: FloatArray,
    signal: LowRank,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    penalty: Penalty,
) -> float:
    """Negative log-likelihood of ``Y ~ MN(X W', inv A, inv B)`` with its penalties.

    Divided by np/2, constants left out, with R = Y - X W':

        L = tr(B R'AR)/(np) - logdet(A)/n - logdet(B)/p
            + alpha_row |A|_1 / n + alpha_col |B|_1 / p + ridge (tr(X'AX) + tr(W'BW)) / (np)

    and, with `Penalty.scale_free`, alpha_row times ``exp(logdet(B)/p)``, alpha_col times
    ``exp(logdet(A)/n)``.

    For data in another library's memory A and B are dense arrays beside them; else sparse.
    Each block of it is a problem that can be solved: a sparse precision in A (covariance
    ``S1 = (R B R' + ridge X X')/p``) and in B (``S2 = (R'AR + ridge W W')/n``), and ridge
    regressions ``X = Y B W (W'BW + ridge I)^-1`` and ``W = Y'A X (X'AX + ridge I)^-1``.

    Several matrices Y_i, with scores X_i of their own and the same W, A and B, stand one under the
    other in `data`; then the likelihood and S1 are means over them, and S2 has all their rows.
    """
    n, p = row_precision.shape[0], data.shape[1]
    row_logdet, col_logdet = logdet(row_precision) / n, logdet(col_precision) / p
    row_size = absolute_sum(row_precision, penalty.row, penalty.diagonal) / n
    col_size = absolute_sum(col_precision, penalty.col, penalty.diagonal) / p
    if penalty.scale_free:
        row_size *= math.exp(col_logdet)
        col_size *= math.exp(row_logdet)
    fit = misfit(data, signal, row_precision, col_precision, penalty.ridge)
    value: float = fit - row_logdet - col_logdet + row_size + col_size
    return value


def misfit(
    data: FloatArray,
    signal: LowRank,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    ridge: float,
) -> float:
    """Return the part that depends on the signal, ``(tr(B R'AR) + ridge (...)) / (np)``."""
    rows = tile(row_precision, data.shape[0])
    total = weighted_norm(data, signal, rows, col_precision)
    if ridge:
        total += ridge * sum(sizes(signal, row_precision, col_precision))
    return total / math.prod(data.shape)


def sizes(
    signal: LowRank, row_precision: sp.csr_array, col_precision: sp.csr_array
) -> tuple[float, float]:
    """Return ``tr(X'AX)`` and ``tr(W'BW)``."""
    return (
        inner(signal.left, tile(row_precision, signal.left.shape[0]) @ signal.left),
        inner(signal.right, col_precision @ signal.right),
    )


def absolute_sum(
    precision: sp.csr_array, weight: float | FloatArray, include_diagonal: bool
) -> float:
    """Return ``sum_ij weight_ij |P_ij|``, over the off-diagonal entries or over all."""
    if is_foreign_array(precision):
        xp = namespace(precision)
        sizes = xp.abs(precision) * (weight if np.ndim(weight) == 0 else like(weight, precision))
        diagonal = 0.0 if include_diagonal else xp.sum(xp.linalg.diagonal(sizes))
        return float(xp.sum(sizes) - diagonal)
    entries = sp.coo_array(precision)
    row, col = entries.coords
    weights = weight[row, col] if isinstance(weight, np.ndarray) else weight
    absolute = np.abs(entries.data) * weights
    return float(absolute.sum() if include_diagonal else absolute[row != col].sum())


def best_gauge(
    shape: tuple[int, int],
    signal: LowRank,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    penalty: Penalty,
) -> float:
    """Return the t for which (t A, B/t) has the lowest objective.

    The likelihood does not depend on t; the penalties are ``t a + b/t``, lowest at ``sqrt(b/a)``.
    Where a or b is zero there is no best t, and 1 is returned.
    """
    n, p = row_precision.shape[0], shape[1]
    score_size, loading_size = sizes(signal, row_precision, col_precision)
    row = absolute_sum(row_precision, penalty.row, penalty.diagonal) / n
    col = absolute_sum(col_precision, penalty.col, penalty.diagonal) / p
    row += penalty.ridge * score_size / math.prod(shape)
    col += penalty.ridge * loading_size / math.prod(shape)
    return math.sqrt(col / row) if row > 0 and col > 0 else 1.0
