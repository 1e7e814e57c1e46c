"""Penalties of the likelihood algorithm by the Bayesian information criterion."""

from dataclasses import dataclass, replace

import numpy as np

from mnpca.engines.arrays import diagonal_matrix, namespace
from mnpca.precision import criterion_along_path


@dataclass(frozen=True)
class BicRule:
    """A grid of penalties and a way to count.

    Attributes
    ----------
    n_values : int
        Penalties in the grid, log-spaced.
    smallest : float
        Smallest penalty as a share of the largest.
    floor, cap : float
        Bounds on the smallest and the largest penalty.
    triangles : int
        Whether an edge counts once (1) or twice (2).
    lost : int
        Observations subtracted from the covariance's divisor in the criterion.
    """

    n_values: int = 10
    smallest: float = 0.1
    floor: float = 0.0
    cap: float = np.inf
    triangles: int = 1
    lost: int = 0


RULES = {
    "bic": BicRule(),
    "bic-authors": BicRule(20, 0.05, floor=0.05, cap=3.0, triangles=2, lost=1),
}
"""By name: as the paper prints it, and as its authors ran it."""


def penalty_grid(covariance, rule):
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


def for_several(rule, n_matrices):
    """Return the rule with a grid that reaches lower, for several matrices.

    Chance correlations of N matrices are sqrt(N) times smaller, and so is the least penalty worth
    a try. The grid keeps its spacing.
    """
    smallest = rule.smallest / np.sqrt(n_matrices)
    steps = (rule.n_values - 1) * np.log(smallest) / np.log(rule.smallest)
    return replace(rule, n_values=1 + int(np.ceil(steps)), smallest=float(smallest))


def bic_path(residual, rule="bic", *, n_matrices=1, penalize_diagonal=True, tol=1e-4):
    """Criterion of every penalty in the grid, for the network among the rows of a residual.

    ``BIC(alpha) = -logdet A + tr(S A) + t log(m)/m`` with ``S = R R'/m``, m the number of columns,
    t the number of edges and A the sparse precision at alpha.

    Parameters
    ----------
    residual : array of shape (q, m)
        Residual R of a truncated SVD; its transpose for the network among columns.
    rule : {"bic", "bic-authors"} or BicRule, default="bic"
        The grid and the count.
    n_matrices : int, default=1
        Number of matrices behind the residual; see `for_several`.
    penalize_diagonal : bool, default=True
        Whether the diagonal is penalized.
    tol : float, default=1e-4
        Accuracy of the sparse precisions.

    Returns
    -------
    dict
        Arrays ``alpha`` (rising), ``bic`` and ``n_edges``, and the number ``best``, the penalty
        with the lowest criterion.
    """
    settings = for_several(rule if isinstance(rule, BicRule) else RULES[rule], n_matrices)
    m = residual.shape[1]
    covariance = residual @ residual.T / m
    alphas = penalty_grid(covariance, settings)
    if settings.lost and m > settings.lost:
        covariance *= m / (m - settings.lost)
    # From the largest penalty to the smallest, where every solution is a start for the next.
    path = criterion_along_path(
        covariance,
        alphas[::-1],
        settings.triangles * np.log(m) / m,
        penalize_diagonal=penalize_diagonal,
        tol=tol,
    )
    bic, n_edges = path.criterion[::-1], path.n_edges[::-1]
    # The smaller of two penalties that are equally good.
    best = float(alphas[np.argmin(bic)])
    return {"alpha": alphas, "bic": bic, "n_edges": n_edges, "best": best}
