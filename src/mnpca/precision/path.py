"""Sparse precisions along decreasing penalties, each started from the one before."""

from __future__ import annotations

from typing import Any

import numpy as np

from mnpca.precision.problem import check_covariance
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import sparse_precision


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
        Whether the diagonal is penalised too.
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
    S = check_covariance(S)
    results: dict[int, PrecisionResult] = {}
    for i in np.argsort(-alphas, kind="stable"):
        init = sparse_precision(
            S, alphas[i], penalize_diagonal=penalize_diagonal, tol=tol, init=init
        )
        results[int(i)] = init
    return [results[i] for i in range(alphas.size)]
