"""Penalties of the likelihood algorithm by the Bayesian information criterion."""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import Array, diagonal_matrix, namespace
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty
from mnpca.model.sparse import tile
from mnpca.model.sparse_data import col_gram, row_gram, weighted_norm
from mnpca.precision import criterion_along_path
from mnpca.solvers.likelihood.fit import begin

# A residual below this share of the data is rounding.
EXACT = 1e-10


@dataclass(frozen=True)
class BicRule:
    """A grid of penalties, log-spaced, and a way to count."""

    n_values: int = 10
    smallest: float = 0.1  # as a share of the largest penalty
    floor: float = 0.0  # bounds on the smallest penalty ...
    cap: float = np.inf  # ... and on the largest
    triangles: int = 1  # whether an edge counts once or twice
    lost: int = 0  # observations subtracted from the divisor of the criterion's covariance


#: As the paper prints it, and as its authors ran it.
RULES = {
    "bic": BicRule(),
    "bic-authors": BicRule(20, 0.05, floor=0.05, cap=3.0, triangles=2, lost=1),
}


def penalty_grid(covariance: Array, rule: BicRule) -> FloatArray:
    """Return the penalties to try, rising.

    The largest is ``max(S - I) - min(S - I)`` over all entries.
    """
    xp = namespace(covariance)
    excess = covariance - diagonal_matrix(xp.ones_like(covariance[0, :]))
    # One variable alone has no such range. Of two penalties only the product may count, so that
    # next to nothing would switch off the other one, too.
    largest = float(xp.max(excess) - xp.min(excess)) or float(covariance[0, 0])
    largest = max(min(largest, rule.cap), np.finfo(float).eps)
    smallest = min(max(rule.smallest * largest, rule.floor), largest)
    return np.geomspace(smallest, largest, rule.n_values)


def bic_path(
    covariance: Array,
    m: int,
    rule: str | BicRule = "bic",
    *,
    n_matrices: int = 1,
    penalize_diagonal: bool = True,
    tol: float = 1e-4,
) -> dict[str, Any]:
    """Criterion of every penalty in the grid, from the covariance S of m observations.

    ``BIC(alpha) = -logdet A + tr(S A) + t log(m)/m`` with t the number of edges and A the sparse
    precision at alpha. Returned are arrays ``alpha`` (rising), ``bic`` and ``n_edges``, and the
    number ``best``, the penalty with the lowest criterion. S may be overwritten.

    Chance correlations of `n_matrices` matrices are smaller by the square root of that number, and
    so is the least penalty worth a try. The grid reaches lower by that and keeps its spacing.
    """
    rule = rule if isinstance(rule, BicRule) else RULES[rule]
    smallest = rule.smallest / math.sqrt(n_matrices)
    steps = (rule.n_values - 1) * math.log(smallest) / math.log(rule.smallest)
    rule = replace(rule, n_values=1 + math.ceil(steps), smallest=smallest)
    alphas = penalty_grid(covariance, rule)
    if rule.lost and m > rule.lost:
        covariance *= m / (m - rule.lost)
    # From the largest penalty to the smallest, where every solution is a start for the next.
    path = criterion_along_path(
        covariance,
        alphas[::-1],
        rule.triangles * np.log(m) / m,
        penalize_diagonal=penalize_diagonal,
        tol=tol,
    )
    bic, n_edges = path.criterion[::-1], path.n_edges[::-1]
    # The smaller of two penalties that are equally good.
    best = float(alphas[np.argmin(bic)])
    return {"alpha": alphas, "bic": bic, "n_edges": n_edges, "best": best}


class ChosenPenalties(NamedTuple):
    """Penalties of data divided by `unit`, and the `bic_path` of each side where there is one.

    The unit is the root mean square of the noise where a penalty is chosen by "bic", else 1.
    """

    penalty: Penalty
    unit: float
    paths: tuple[dict[str, Any] | None, dict[str, Any] | None]


def choose_penalties(
    data: Array,
    rank: int,
    alpha_row: Any,
    alpha_col: Any,
    *,
    n_matrices: int | None,
    **options: Any,
) -> ChosenPenalties:
    """Return the penalties: those given, or chosen on the residual of the truncated SVD.

    The grid of the paper, and its objective, take the noise to have about unit variance; for "bic"
    the data are therefore divided by the size of that residual.

    `alpha_row` and `alpha_col` are as `mnpca.LikelihoodMNPCA` takes them, and the options other
    fields of `Penalty`. The data are centered, `n_matrices` one under the other, None where there
    is one.
    """
    n_repeats = n_matrices or 1
    n, p = data.shape[0] // n_repeats, data.shape[1]
    unit = 1.0
    alphas = [alpha_row, alpha_col]
    paths: list[dict[str, Any] | None] = [None, None]
    if any(isinstance(alpha, str) for alpha in alphas):
        start = begin(data, rank, Penalty(), "svd", n_repeats)
        rows, cols = tile(start.row_precision, data.shape[0]), start.col_precision
        if "bic" in [alpha for alpha in alphas if isinstance(alpha, str)]:
            unit = _noise_size(data, start.signal, rows, cols)
    for side, size in enumerate((n, p)):
        if not isinstance(alphas[side], str):
            alphas[side] = checked_penalty(alphas[side], size, ("alpha_row", "alpha_col")[side])
            continue
        m = n_repeats * n * p // size
        if side == 0:
            covariance = row_gram(data, start.signal, cols, n)
        else:
            covariance = col_gram(data, start.signal, rows)
        path = bic_path(
            covariance / (m * unit**2),
            m,
            alphas[side],
            # Components leave correlations among columns that more matrices do not lower.
            n_matrices=n_repeats if side == 0 or rank == 0 else 1,
            penalize_diagonal=options["diagonal"],
        )
        paths[side], alphas[side] = path, path["best"]
    if n_matrices is not None:
        _check_maximum_exists(n_matrices, (n, p), rank, *alphas)
    penalty = Penalty(alphas[0], alphas[1], free=n_matrices is not None, **options)
    return ChosenPenalties(penalty, unit, (paths[0], paths[1]))


def checked_penalty(alpha: Any, size: int, name: str) -> float | FloatArray:
    """Return a penalty as a number or a symmetric matrix."""
    if np.ndim(alpha) == 0 and not sp.issparse(alpha):
        return float(alpha)
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.shape != (size, size):
        raise ValueError(
            f"{name} must be a number or a matrix of shape ({size}, {size}), got {alpha.shape}."
        )
    if not np.isfinite(alpha).all() or alpha.min() < 0:
        raise ValueError(
            f"{name} must be finite and not negative; a large entry rules an edge out."
        )
    if not np.array_equal(alpha, alpha.T):
        raise ValueError(f"{name} must be symmetric; pass ({name} + {name}.T) / 2.")
    return np.asarray(alpha)


def _noise_size(data: Any, signal: LowRank, rows: Any, cols: Any) -> float:
    """Return the root mean square of the noise; of the data where these leave only rounding."""
    nothing = LowRank(signal.left[:, :0], signal.right[:, :0])
    total, left = (
        math.sqrt(max(weighted_norm(data, part, rows, cols), 0.0) / math.prod(data.shape))
        for part in (nothing, signal)
    )
    return left if left > EXACT * total else total


def _check_maximum_exists(
    n_matrices: int, shape: tuple[int, int], rank: int, alpha_row: Any, alpha_col: Any
) -> None:
    """Refuse to maximize a likelihood without penalties that has no maximum."""
    if np.any(alpha_col):
        return
    if rank > 0:
        raise ValueError(
            "Scores of their own fit every row exactly along the loadings, so that without a "
            "penalty the column precision has no maximum. Set alpha_col above 0, or n_components=0."
        )
    n, p = shape
    enough = max(n / p, p / n) + 1
    if n_matrices <= enough and not np.any(alpha_row):
        raise ValueError(
            f"Without penalties the likelihood of {n_matrices} matrices of {n} x {p} has no "
            f"maximum: more than max(n/p, p/n) + 1 = {enough:.3g} are needed. Set alpha_row and "
            "alpha_col above 0."
        )
