"""Sparse precision of a covariance: screening, components, assembly."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numba
import numpy as np
from scipy import sparse

from mnpca.engines.arrays import is_foreign_array
from mnpca.precision._kernels.blocks import join_rows
from mnpca.precision._types import Array, Index
from mnpca.precision.block_descent import MAX_TOTAL, ComponentSolution, solve_component
from mnpca.precision.blocks import Blocks, Component, Groups
from mnpca.precision.iterate import Sparse
from mnpca.precision.problem import Problem, check_tolerance, make_problem
from mnpca.precision.result import PrecisionResult
from mnpca.precision.warm import restart

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
        Sweeps over the columns of a connected component before dearer second-order steps take
        over; the tolerance is the same. Of an array of torch or CuPy, components with more than
        200 variables take second-order steps from the start.

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
    if is_foreign_array(S):
        from mnpca.precision.array_api import solve_elsewhere  # which uses this function

        return solve_elsewhere(S, alpha, penalize_diagonal, tol, init, max_iter)
    problem, labels = make_problem(S, alpha, penalize_diagonal)
    if init is None:
        return solve_problem(problem, labels, tol, None, max_iter)
    check_start(init, problem.size)
    return solve_problem(problem, labels, tol, partial(restart, init), max_iter)


def check_start(init: PrecisionResult, p: int, *, elsewhere: bool = False) -> None:
    """Raise unless init is a result for p variables, in other memory than NumPy's or not."""
    if is_foreign_array(init.precision) != elsewhere:
        raise ValueError("init lives in other memory than S; pass a result for the same kind of S.")
    if init.precision.shape != (p, p):
        raise ValueError(f"init is for {init.precision.shape[0]} variables, S has {p}.")


def solve_problem(
    problem: Problem,
    labels: Index,
    tol: float,
    attempt: Callable[[Component, Problem, float, int], ComponentSolution | None] | None = None,
    max_iter: int = MAX_TOTAL,
) -> PrecisionResult:
    """Solve a checked problem by connected component and assemble the result.

    ``attempt`` tries a component first: it takes the component, then what `solve_component` gives.
    """
    groups = Groups.of(labels)

    def solve(component: Component) -> ComponentSolution:
        part = problem.restrict(component.variables)
        first = None if attempt is None else partial(attempt, component)
        return solve_component(part, tol, max_iter, first)

    n_large = int(np.count_nonzero(np.diff(groups.bounds) >= LARGE))
    # numba.get_num_threads would start numba's own threads, which slows other libraries down.
    n_threads = min(numba.config.NUMBA_NUM_THREADS, n_large)  # type: ignore[attr-defined]
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            solutions = list(pool.map(solve, groups))
    else:
        solutions = [solve(component) for component in groups]
    return assemble(problem.diagonal, labels, groups, solutions)


def assemble(
    diagonal: Array, labels: Index, groups: Groups, solutions: list[ComponentSolution]
) -> PrecisionResult:
    """One result from the solutions of the components; variables in none of them stand alone."""
    proofs = [solution.certificate for solution in solutions]
    logdets = [proof.logdet for proof in proofs]
    precision, logs = _join(diagonal, groups, [proof.precision for proof in proofs])
    # A variable that stands alone has T_ii = 1 / diagonal_i.
    cost = len(diagonal) - len(groups.order) + sum(proof.cost for proof in proofs)
    return PrecisionResult(
        precision=precision,
        _objective=cost + logs - sum(logdets),
        duality_gap=float(sum(proof.gap for proof in proofs)),
        n_iter=max((solution.n_iter for solution in solutions), default=0),
        labels=labels,
        _blocks=Blocks.join(groups, [solution.iterate.W for solution in solutions], logdets),
        _cost=cost,
    )


def _join(diagonal: Array, groups: Groups, parts: list[Sparse]) -> tuple[Any, float]:
    """Sorted CSR precision from those of the components and the variables that stand alone.

    Also the sum of the logarithms of these variables' diagonal.
    """
    p = len(diagonal)
    if groups.count == 1:
        indptr, columns, values = parts[0]
        if len(groups.order) == p:
            return sparse.csr_array((values, columns, indptr), shape=(p, p)), 0.0
        starts, ends = indptr[:-1], indptr[1:]
    else:
        lengths = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
        at = np.cumsum(lengths)
        starts, ends = at[:-1], at[1:]
        columns = np.concatenate([np.empty(0, np.int64), *(part.columns for part in parts)])
        values = np.concatenate([np.empty(0), *(part.values for part in parts)])
    *rows, logs = join_rows(
        diagonal, groups.order, groups.bounds, groups.number, starts, ends, columns, values
    )
    return sparse.csr_array(tuple(rows), shape=(p, p)), logs
