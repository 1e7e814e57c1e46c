"""Sparse precisions along decreasing penalties, each started from the ones before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mnpca.engines.arrays import is_foreign_array
from mnpca.precision.block_descent import MAX_TOTAL
from mnpca.precision.problem import check_tolerance, make_problem
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import check_start, solve_problem, sparse_precision
from mnpca.precision.start import Start


def sparse_precision_path(
    S: Any,
    alphas: Any,
    *,
    penalize_diagonal: bool = False,
    tol: float = 1e-4,
    init: PrecisionResult | None = None,
) -> list[PrecisionResult]:
    """Sparse precision matrices for several penalties.

    Parameters
    ----------
    S : array-like of shape (p, p)
        Covariance matrix.
    alphas : array-like of shape (n_alphas,)
        Scalar penalties, in any order. They are solved from the largest to the smallest.
    penalize_diagonal : bool, default=False
        Whether the diagonal is penalized too.
    tol : float, default=1e-4
        Relative duality gap, as in :func:`sparse_precision`.
    init : PrecisionResult, optional
        Where to start for the largest penalty.

    Returns
    -------
    list of PrecisionResult
        In the order of ``alphas``.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import sparse_precision_path
    >>> S = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
    >>> [result.precision.nnz for result in sparse_precision_path(S, [0.6, 0.45, 0.3])]
    [3, 5, 7]
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    if alphas.ndim != 1 or alphas.size == 0:
        raise ValueError(f"alphas must be a list of numbers, got an array of shape {alphas.shape}.")
    order = np.argsort(-alphas, kind="stable")
    found = solve_along(S, alphas[order], penalize_diagonal, tol, init=init)
    results = dict(zip(order.tolist(), found, strict=True))
    return [results[i] for i in range(alphas.size)]


def solve_along(
    S: Any,
    alphas: Iterable[float],
    penalize_diagonal: bool,
    tol: float,
    *,
    init: PrecisionResult | None = None,
    max_iter: int = MAX_TOTAL,
) -> Iterator[PrecisionResult]:
    """Yield the solution for one penalty after the other.

    Each is started on the line through the two before, as a function of the penalty.
    """
    tol = check_tolerance(tol)
    # Penalties and results so far, the last two of them.
    known: list[float] = []
    found: list[PrecisionResult] = []
    for alpha in alphas:
        last = found[-1] if found else init
        if is_foreign_array(S):
            options: dict[str, Any] = {"penalize_diagonal": penalize_diagonal, "tol": tol}
            result = sparse_precision(S, alpha, init=last, max_iter=max_iter, **options)
        else:
            # One component stays one for smaller penalties.
            one = found and alpha <= known[-1] and not found[-1].labels.any()
            labels = found[-1].labels if one else None
            problem, labels = make_problem(S, alpha, penalize_diagonal, labels)
            S, start = problem.covariance, None
            if last is not None:
                check_start(last, problem.size, False)
                start = Start(last)
            if len(found) == 2 and known[0] != known[1]:
                start = Start(found[1], found[0], (alpha - known[1]) / (known[1] - known[0]))
            result = solve_problem(problem, labels, tol, start, max_iter)
        yield result
        known, found = [*known[-1:], alpha], [*found[-1:], result]
