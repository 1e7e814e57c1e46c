"""The penalty chosen by an information criterion along a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca.precision._types import Array
from mnpca.precision.block_descent import MAX_TOTAL
from mnpca.precision.path import Walk
from mnpca.precision.problem import check_covariance
from mnpca.precision.result import PrecisionResult

# The grid: so many penalties, log-spaced from the largest off-diagonal |S_ij| to this share of it.
N_PENALTIES = 30
SMALLEST = 0.01
# The path ends after this many values of the criterion above the best one.
PATIENCE = 4
# Weight of the number of variables in the extended criterion (Foygel and Drton, 2010).
GAMMA = {"bic": 0.0, "ebic": 0.5}


@dataclass(frozen=True, eq=False)
class Choice:
    """Penalties tried (falling), the criterion at each, the best one and its result."""

    alphas: Array
    criterion: Array
    alpha: float
    result: PrecisionResult


def choose_penalty(
    S: Any,
    n_samples: int,
    criterion: str = "ebic",
    *,
    penalize_diagonal: bool = False,
    tol: float = 1e-4,
    max_iter: int = MAX_TOTAL,
) -> Choice:
    """Choose the penalty of a sparse precision by BIC or extended BIC.

    ``n (-logdet T + tr(S T)) + E log n + 4 gamma E log p`` with E edges; gamma is 0 for "bic" and
    1/2 for "ebic" [1]_. The path goes from the empty graph to denser ones and ends when the
    criterion keeps rising.

    Parameters
    ----------
    S : array-like of shape (p, p)
        Covariance matrix, divided by ``n_samples``.
    n_samples : int
        Number of samples behind S.
    criterion : {"bic", "ebic"}, default="ebic"
        Which criterion.
    penalize_diagonal : bool, default=False
        Whether the diagonal is penalized too.
    tol : float, default=1e-4
        Relative duality gap, as in :func:`sparse_precision`.
    max_iter : int, default=1000
        Sweeps before second-order steps take over, as in :func:`sparse_precision`.

    Returns
    -------
    Choice

    References
    ----------
    .. [1] Foygel, R. and Drton, M. (2010). Extended Bayesian information criteria for Gaussian
       graphical models. NeurIPS 23.
    """
    S = check_covariance(S)
    if criterion not in GAMMA:
        raise ValueError(f"criterion must be one of {sorted(GAMMA)}, got {criterion!r}.")
    if not 1 <= n_samples < np.inf:
        raise ValueError(f"n_samples must be a positive number, got {n_samples!r}.")
    p = len(S)
    off = S - np.diag(np.diagonal(S))
    largest = float(np.abs(off).max())
    # Nothing to choose between variables that are all uncorrelated.
    alphas = np.geomspace(largest, SMALLEST * largest, N_PENALTIES) if largest > 0 else np.zeros(1)
    weight = np.log(n_samples) + 4.0 * GAMMA[criterion] * np.log(p)
    values: list[float] = []
    best: PrecisionResult | None = None
    walk = Walk(S, penalize_diagonal, tol, max_iter=max_iter)
    for alpha in alphas:
        result = walk.step(alpha)
        size = np.abs(result.precision.data).sum()
        if not penalize_diagonal:
            size -= result.precision.diagonal().sum()
        n_edges = (result.precision.nnz - p) // 2
        values.append(n_samples * (result.objective - alpha * size) + n_edges * weight)
        if best is None or values[-1] < min(values[:-1]):
            best = result
        elif len(values) - 1 - int(np.argmin(values)) >= PATIENCE:
            break
    assert best is not None
    tried = alphas[: len(values)]
    return Choice(tried, np.array(values), float(tried[int(np.argmin(values))]), best)
