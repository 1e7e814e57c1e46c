"""The penalty chosen by an information criterion along a path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import is_foreign_array, namespace
from mnpca.precision.block_descent import MAX_TOTAL
from mnpca.precision.problem import check_covariance
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import solve_along

# The grid: so many penalties, log-spaced from the largest off-diagonal |S_ij| to this share of it.
N_PENALTIES = 30
SMALLEST = 0.01
# The path ends after this many values of the criterion above the best one.
PATIENCE = 4
# Weight of the number of variables in the extended criterion (Foygel and Drton, 2010).
GAMMA = {"bic": 0.0, "ebic": 0.5}


@dataclass(frozen=True, eq=False)
class Choice:
    """Penalties tried, the criterion and the edges at each, the best penalty and its result.

    Examples
    --------
    >>> from mnpca.precision import choose_penalty
    >>> choice = choose_penalty([[1.0, 0.5], [0.5, 1.0]], n_samples=100)
    >>> choice.n_edges.tolist()[:2], choice.result.precision.nnz
    ([0, 1], 4)
    """

    alphas: FloatArray
    criterion: FloatArray
    n_edges: IntArray
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

    Examples
    --------
    >>> from mnpca.precision import choose_penalty
    >>> choose_penalty([[1.0, 0.5], [0.5, 1.0]], n_samples=100).alpha < 0.5
    True
    """
    S = check_covariance(S)
    if criterion not in GAMMA:
        raise ValueError(f"criterion must be one of {sorted(GAMMA)}, got {criterion!r}.")
    if not 1 <= n_samples < np.inf:
        raise ValueError(f"n_samples must be a positive number, got {n_samples!r}.")
    largest = float(np.abs(S - np.diag(np.diagonal(S))).max())
    # Nothing to choose between variables that are all uncorrelated.
    alphas = np.geomspace(largest, SMALLEST * largest, N_PENALTIES) if largest > 0 else np.zeros(1)
    weight = (np.log(n_samples) + 4.0 * GAMMA[criterion] * np.log(len(S))) / n_samples
    choice = criterion_along_path(
        S,
        alphas,
        weight,
        penalize_diagonal=penalize_diagonal,
        tol=tol,
        max_iter=max_iter,
        patience=PATIENCE,
    )
    return replace(choice, criterion=n_samples * choice.criterion)


def criterion_along_path(
    S: Any,
    alphas: FloatArray,
    edge_weight: float,
    *,
    penalize_diagonal: bool,
    tol: float,
    max_iter: int = MAX_TOTAL,
    patience: float = np.inf,
) -> Choice:
    """Return ``-logdet T + tr(S T) + edge_weight E`` for falling penalties, E edges, and the best.

    The path ends after ``patience`` values above the best one.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca.precision import criterion_along_path
    >>> S, alphas = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0.5, 0.1])
    >>> criterion_along_path(S, alphas, 0.05, penalize_diagonal=False, tol=1e-6).alpha
    0.1
    """
    values: list[float] = []
    edges: list[int] = []
    best = 0
    found = solve_along(S, alphas, penalize_diagonal, tol, max_iter=max_iter)
    for alpha, result in zip(alphas, found, strict=False):
        size, n_edges = _size(result.precision, penalize_diagonal)
        edges.append(n_edges)
        values.append(result.objective - float(alpha) * size + edge_weight * n_edges)
        if len(values) == 1 or values[-1] < values[best]:
            best, chosen = len(values) - 1, result
        elif len(values) - 1 - best >= patience:
            break
    tried = alphas[: len(values)]
    return Choice(tried, np.array(values), np.array(edges), float(alphas[best]), chosen)


def _size(precision: Any, with_diagonal: bool) -> tuple[float, int]:
    """Sum of the absolute entries, with the diagonal or without, and the number of edges."""
    if is_foreign_array(precision):
        xp = namespace(precision)
        n_entries = int(xp.sum(xp.astype(precision != 0, xp.int64)))
        size, trace = float(xp.sum(xp.abs(precision))), float(xp.linalg.trace(precision))
    else:
        n_entries, trace = precision.nnz, float(precision.diagonal().sum())
        size = float(np.abs(precision.data).sum())
    return size - (0.0 if with_diagonal else trace), (n_entries - precision.shape[0]) // 2
