"""Sparse precision of a covariance, for one penalty or along several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numba
import numpy as np
from scipy import sparse

from mnpca._components import group_by_label
from mnpca._typing import IntArray
from mnpca.engines.arrays import is_foreign_array, like, namespace, to_numpy
from mnpca.precision.block_descent import MAX_TOTAL, ComponentSolution, solve_component
from mnpca.precision.certificate import Iterate
from mnpca.precision.problem import Problem, make_problem
from mnpca.precision.proximal import proximal_gradient
from mnpca.precision.result import PrecisionResult, start_from

Start: TypeAlias = Callable[[Problem, IntArray], Iterate]
"""Returns the first iterate for some variables of a problem."""

# Components at least this large are worth a thread of their own.
LARGE = 200
# Problems in other memory without a component above this size are solved by the processor.
SMALL = 200
# A component below this size is solved as quickly from scratch as from an earlier result.
SMALLEST_WARM = 60


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
        second-order steps take over; the tolerance is the same. An array of torch or CuPy with
        a component of more than 200 variables takes gradient steps of the whole matrix instead.

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
    found = solve_along(S, [alpha], penalize_diagonal, tol, init=init, max_iter=max_iter)
    return next(found)


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
    alphas: Iterable[Any],
    penalize_diagonal: bool,
    tol: float,
    *,
    init: PrecisionResult | None = None,
    max_iter: int = MAX_TOTAL,
) -> Iterator[PrecisionResult]:
    """Yield the solution for one penalty after the other.

    Each is started on the line through the two before, as a function of the penalty.
    """
    if np.ndim(tol) != 0 or not 0 < tol < np.inf:
        raise ValueError(f"tol must be a positive number, got {tol!r}.")
    # Penalties and results so far, the last two of them.
    known: list[float] = []
    found: list[PrecisionResult] = []
    for alpha in alphas:
        # One component stays one for smaller penalties.
        one = found and alpha <= known[-1] and not found[-1].labels.any()
        labels = found[-1].labels if one else None
        problem, labels = make_problem(S, alpha, penalize_diagonal, labels)
        S = problem.covariance
        last = found[-1] if found else init
        start: Start | None = None
        if last is not None:
            _check_start(last, problem)
            start = partial(start_from, last=last)
            if len(found) == 2 and known[0] != known[1]:
                t = (alpha - known[1]) / (known[1] - known[0])
                start = partial(start_from, last=last, before=found[0], t=t)
        if is_foreign_array(S):
            result = _solve_foreign(problem, labels, tol, last, max_iter)
        else:
            result = _solve_components(problem, labels, tol, start, max_iter)
        yield result
        known, found = [*known[-1:], alpha], [*found[-1:], result]


def _check_start(init: PrecisionResult, problem: Problem) -> None:
    """Raise unless init fits the problem."""
    if is_foreign_array(init.precision) != is_foreign_array(problem.covariance):
        raise ValueError("init lives in other memory than S; pass a result for the same kind of S.")
    p = init.precision.shape[0]
    if p != problem.size:
        raise ValueError(f"init is for {p} variables, S has {problem.size}.")


def _solve_components(
    problem: Problem, labels: IntArray, tol: float, start: Start | None, max_iter: int
) -> PrecisionResult:
    """Solve a problem by connected component, each from a start if there is one."""
    linked = np.bincount(labels) > 1
    variables = np.flatnonzero(linked[labels])
    number = (np.cumsum(linked) - 1)[labels[variables]]
    components = [variables[part] for part in group_by_label(number) if len(part)]

    def solve(index: IntArray) -> ComponentSolution:
        part = problem.restrict(index)
        warm = None
        if start is not None and len(index) >= SMALLEST_WARM:
            warm = partial(start, part, index)
        return solve_component(part, tol, max_iter, warm)

    n_large = sum(len(index) >= LARGE for index in components)
    # numba.get_num_threads would start numba's own threads, which slows other libraries down.
    n_threads = min(numba.config.NUMBA_NUM_THREADS, n_large)  # type: ignore[attr-defined]
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            solutions = list(pool.map(solve, components))
    else:
        solutions = [solve(index) for index in components]
    working = np.zeros_like(problem.covariance)
    np.fill_diagonal(working, problem.diagonal)
    alone = np.ones(problem.size, dtype=bool)
    rows, columns, entries = [], [], []
    for index, solution in zip(components, solutions, strict=True):
        T, W = solution.certificate.precision, solution.iterate.W
        rows.append(index[T.rows])
        columns.append(index[T.columns])
        entries.append(T.values)
        alone[index] = False
        if len(index) == problem.size:
            working = W
        else:
            working[np.ix_(index, index)] = W
    places, diagonal = np.flatnonzero(alone), problem.diagonal[alone]
    coordinates = (np.concatenate([*rows, places]), np.concatenate([*columns, places]))
    values = np.concatenate([*entries, 1.0 / diagonal])
    proofs = [solution.certificate for solution in solutions]
    return PrecisionResult(
        precision=sparse.coo_array((values, coordinates), shape=2 * (problem.size,)).tocsr(),
        objective=float(np.sum(np.log(diagonal) + 1.0)) + sum(proof.value for proof in proofs),
        duality_gap=float(sum(proof.gap for proof in proofs)),
        n_iter=max((solution.n_iter for solution in solutions), default=0),
        labels=labels,
        _working=working,
    )


def _solve_foreign(
    problem: Problem, labels: IntArray, tol: float, init: PrecisionResult | None, max_iter: int
) -> PrecisionResult:
    """Solve a problem of another library's arrays where they live.

    The processor and its compiled kernels solve it where all components are small, and where the
    proximal gradient steps do not reach the tolerance.
    """
    S = problem.covariance
    if np.bincount(labels).max() > SMALL:
        start = None
        if init is not None:  # the blocks of a definite matrix are definite
            xp, label = namespace(S), like(labels, S)
            together = label[:, None] == label[None, :]
            start = xp.where(together, init.precision, xp.zeros_like(S))
        point = proximal_gradient(problem, tol * problem.size, start)
        if point.gap <= tol * problem.size:
            return PrecisionResult(point.T, point.value, point.gap, point.n_iter, labels)
    arrays = (problem.covariance, problem.alpha, problem.diagonal)
    here = Problem(*(np.array(to_numpy(array), order="C") for array in arrays))
    result = _solve_components(here, labels, tol, None, max_iter)
    return replace(result, precision=like(result.precision.toarray(), S), _working=None)
