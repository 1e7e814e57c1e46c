"""Sparse precision of a covariance, for one penalty or along several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mnpca.engines.arrays import is_foreign_array
from mnpca.precision.block_descent import MAX_TOTAL
from mnpca.precision.components import Start, solve_problem
from mnpca.precision.newton import solve_foreign
from mnpca.precision.problem import check_tolerance, make_problem
from mnpca.precision.result import PrecisionResult


def sparse_precision(
    S: Any,
    alpha: Any,
    *,
    penalize_diagonal: bool = False,
    tol: float = 1e-4,
    init: PrecisionResult | None = None,
    max_iter: int = MAX_TOTAL,
) -> PrecisionResult:
    """Sparse precision matrix of a covariance (the graphical lasso).

    Minimizes ``-logdet(T) + tr(S T) + sum_ij alpha_ij |T_ij|`` over positive definite T.

    Parameters
    ----------
    S : array-like of shape (p, p)
        Covariance matrix; it may be singular where ``alpha`` is positive. An array of torch or
        CuPy is solved where it lives, and so is the result.
    alpha : float or array-like of shape (p, p)
        Penalty, not negative; a matrix must be symmetric.
    penalize_diagonal : bool, default=False
        Whether the diagonal is penalized too.
    tol : float, default=1e-4
        The result's duality gap is at most ``tol * p``: the gap is relative to p, the value of
        ``tr(S T) + |alpha o T|_1`` at the optimum, so that the test does not depend on units.
    init : PrecisionResult, optional
        Result for a similar S or alpha, to start from.
    max_iter : int, default=1000
        Sweeps over the columns of a connected component of at most 100 variables before dearer
        second-order steps take over; the tolerance is the same. Of an array of torch or CuPy,
        components with more than 200 variables take second-order steps from the start.

    Returns
    -------
    PrecisionResult
        With ``precision`` (sparse), ``covariance``, ``objective``, ``duality_gap``, ``n_iter``
        and ``components``.

    Raises
    ------
    ValueError
        If the input is not valid, or no solution can be certified (for instance ``alpha=0`` with
        a singular S). The message names the remedy.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import sparse_precision
    >>> S = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, 0.1], [0.0, 0.1, 1.0]])
    >>> result = sparse_precision(S, alpha=0.2)
    >>> result.precision.toarray().round(2)
    array([[ 0.66, -0.46,  0.  ],
           [-0.46,  1.32,  0.  ],
           [ 0.  ,  0.  ,  1.  ]])
    >>> [component.tolist() for component in result.components]
    [[0, 1], [2]]
    """
    tol = check_tolerance(tol)
    problem, labels = make_problem(S, alpha, penalize_diagonal)
    foreign = is_foreign_array(S)
    if init is not None:
        check_start(init, problem.size, foreign)
    if foreign:
        return solve_foreign(problem, labels, tol, init, max_iter)
    return solve_problem(problem, labels, tol, None if init is None else Start(init), max_iter)


def check_start(init: PrecisionResult, p: int, foreign: bool) -> None:
    """Raise unless init is a result for p variables, in other memory than NumPy's or not."""
    if is_foreign_array(init.precision) != foreign:
        raise ValueError("init lives in other memory than S; pass a result for the same kind of S.")
    if init.precision.shape != (p, p):
        raise ValueError(f"init is for {init.precision.shape[0]} variables, S has {p}.")


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
