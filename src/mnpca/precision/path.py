"""Sparse precisions along decreasing penalties, each started from the one before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mnpca.engines.arrays import is_foreign_array
from mnpca.precision._types import Array, Index
from mnpca.precision.block_descent import MAX_TOTAL, ComponentSolution
from mnpca.precision.blocks import Component
from mnpca.precision.problem import Problem, check_covariance, check_tolerance, make_problem
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import check_start, solve_problem, sparse_precision
from mnpca.precision.warm import go_on, restart


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
    step = (
        _steps_elsewhere(S, penalize_diagonal, tol, init)
        if is_foreign_array(S)
        else Walk(check_covariance(S), penalize_diagonal, tol, init).step
    )
    results = dict(zip(order.tolist(), map(step, alphas[order]), strict=True))
    return [results[i] for i in range(alphas.size)]


def _steps_elsewhere(
    S: Any, penalize_diagonal: bool, tol: float, init: PrecisionResult | None
) -> Callable[[float], PrecisionResult]:
    """Return a function that solves for one penalty after the other, where S lives."""

    def step(alpha: float) -> PrecisionResult:
        nonlocal init
        init = sparse_precision(S, alpha, penalize_diagonal=penalize_diagonal, tol=tol, init=init)
        return init

    return step


class Walk:
    """Solutions for falling penalties, each started on the line through the two before."""

    def __init__(
        self,
        S: Array,
        penalize_diagonal: bool,
        tol: float,
        init: PrecisionResult | None = None,
        max_iter: int = MAX_TOTAL,
    ):
        self.S = S
        self.penalize_diagonal = penalize_diagonal
        self.tol = check_tolerance(tol)
        self.last = init
        self.max_iter = max_iter
        self.before: PrecisionResult | None = None
        self.alphas: list[float] = []

    def step(self, alpha: float) -> PrecisionResult:
        """Solve for the next penalty."""
        problem, labels = self._problem(alpha)
        attempt: Callable[[Component, Problem, float, int], ComponentSolution | None] | None = None
        if self.last is not None:
            check_start(self.last, problem.size)
            attempt = partial(restart, self.last)
            if self.before is not None and len(set(self.alphas[-2:])) == 2:
                t = (alpha - self.alphas[-1]) / (self.alphas[-1] - self.alphas[-2])
                attempt = partial(go_on, self.last, self.before, t)
        result = solve_problem(problem, labels, self.tol, attempt, self.max_iter)
        # A result given by the user has a penalty that is not known, so no line goes through it.
        self.before = self.last if self.alphas else None
        self.last = result
        self.alphas.append(alpha)
        return result

    def _problem(self, alpha: float) -> tuple[Problem, Index]:
        """Return the problem and its components: one component stays one for smaller penalties."""
        known = self.last is not None and self.alphas and self.last.labels.max() == 0
        if not known or not 0 <= alpha <= self.alphas[-1]:
            problem, labels = make_problem(self.S, alpha, self.penalize_diagonal)
            self.S = problem.covariance
            return problem, labels
        assert self.last is not None
        diagonal = np.diagonal(self.S) + (alpha if self.penalize_diagonal else 0.0)
        return Problem(self.S, np.full((1, len(diagonal)), alpha), diagonal), self.last.labels
