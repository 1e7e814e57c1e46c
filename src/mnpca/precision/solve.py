"""Sparse precision of a covariance: screening, components, assembly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
from scipy import sparse

from mnpca._components import group_by_label
from mnpca._typing import IntArray
from mnpca.engines.arrays import is_foreign_array
from mnpca.precision.block_descent import MAX_TOTAL, ComponentSolution, solve_component
from mnpca.precision.problem import Problem, check_tolerance, make_problem
from mnpca.precision.result import PrecisionResult
from mnpca.precision.start import Start

# Components at least this large are worth a thread of their own.
LARGE = 200


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
        from mnpca.precision.array_api import solve_foreign  # which uses this function

        return solve_foreign(problem, labels, tol, init, max_iter)
    return solve_problem(problem, labels, tol, None if init is None else Start(init), max_iter)


def check_start(init: PrecisionResult, p: int, foreign: bool) -> None:
    """Raise unless init is a result for p variables, in other memory than NumPy's or not."""
    if is_foreign_array(init.precision) != foreign:
        raise ValueError("init lives in other memory than S; pass a result for the same kind of S.")
    if init.precision.shape != (p, p):
        raise ValueError(f"init is for {init.precision.shape[0]} variables, S has {p}.")


def solve_problem(
    problem: Problem, labels: IntArray, tol: float, start: Start | None, max_iter: int
) -> PrecisionResult:
    """Solve a checked problem by connected component and assemble the result."""
    components = [index for index in group_by_label(labels) if len(index) > 1]

    def solve(index: IntArray) -> ComponentSolution:
        part = problem.restrict(index)
        warm = None if start is None else start.iterate(part, index)
        return solve_component(part, tol, max_iter, warm)

    n_large = sum(len(index) >= LARGE for index in components)
    # numba.get_num_threads would start numba's own threads, which slows other libraries down.
    n_threads = min(numba.config.NUMBA_NUM_THREADS, n_large)  # type: ignore[attr-defined]
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            solutions = list(pool.map(solve, components))
    else:
        solutions = [solve(index) for index in components]
    return _assemble(problem, labels, components, solutions)


def _assemble(
    problem: Problem,
    labels: IntArray,
    components: list[IntArray],
    solutions: list[ComponentSolution],
) -> PrecisionResult:
    """Join the solutions of the components; variables in none of them stand alone."""
    p = problem.size
    alone = np.ones(p, dtype=bool)
    proofs = [solution.certificate for solution in solutions]
    rows, columns, entries = [], [], []
    for index, proof in zip(components, proofs, strict=True):
        T = proof.precision
        rows.append(index[T.rows])
        columns.append(index[T.columns])
        entries.append(T.values)
        alone[index] = False
    rows.append(np.flatnonzero(alone))
    columns.append(np.flatnonzero(alone))
    entries.append(1.0 / problem.diagonal[alone])
    places = (np.concatenate(rows), np.concatenate(columns))
    precision = sparse.coo_array((np.concatenate(entries), places), shape=(p, p)).tocsr()
    value = float(np.sum(np.log(problem.diagonal[alone]) + 1.0))
    return PrecisionResult(
        precision=precision,
        objective=value + sum(proof.value for proof in proofs),
        duality_gap=float(sum(proof.gap for proof in proofs)),
        n_iter=max((solution.n_iter for solution in solutions), default=0),
        labels=labels,
        _blocks=tuple(
            (index, solution.iterate.W)
            for index, solution in zip(components, solutions, strict=True)
        ),
    )
