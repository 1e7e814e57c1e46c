"""Sparse precision of a covariance that lives in another library's memory, as on a GPU.

Block descent walks a matrix column by column, which an accelerator does badly. Large components
are solved there by Newton's method, whose steps are products and factorizations; the many small
ones come to the processor and its compiled kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mnpca.engines.arrays import (
    Array,
    astype,
    diagonal_matrix,
    is_foreign_array,
    is_torch,
    like,
    namespace,
    to_numpy,
)
from mnpca.precision._types import Index
from mnpca.precision.newton import (
    QUICK,
    STEADY,
    THOROUGH,
    NewtonPoint,
    newton,
    newton_along_path,
    with_diagonal,
)
from mnpca.precision.problem import ASYMMETRY, Problem, not_certified
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import check_start, sparse_precision

# Components up to this size are left to the processor.
SMALL = 200
# Quick steps get there in about ten; more of them are a sign that they do not.
QUICK_ITERATIONS = 20


def solve_elsewhere(
    S: Array,
    alpha: Any,
    penalize_diagonal: bool,
    tol: float,
    init: PrecisionResult | None,
    max_iter: int,
) -> PrecisionResult:
    """Solve the problem of `mnpca.sparse_precision` where S lives, in float64.

    The certificate is the processor's: a feasible dual point and its duality gap. ``max_iter`` is
    for the small components; the large ones are solved without sweeps.
    """
    problem = _checked(S, alpha, penalize_diagonal)
    labels = _labels(problem)
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    large = [index for index in groups if len(index) > SMALL]
    small = [index for index in groups if 1 < len(index) <= SMALL]
    precision = diagonal_matrix(1.0 / problem.diagonal)
    alone = to_numpy(problem.diagonal)[np.bincount(labels)[labels] == 1]
    objective, gap, n_iter = float(np.sum(np.log(alone) + 1.0)), 0.0, 0
    for index in large:
        point = _solve_large(_restrict(problem, index), tol, _start(init, index, problem.size))
        precision = point.T if len(index) == problem.size else _placed(precision, index, point.T)
        objective, gap = objective + point.value, gap + point.gap
        n_iter = max(n_iter, point.n_iter)
    if small:
        together = np.sort(np.concatenate(small))
        result = _solve_small(_restrict(problem, together), tol, max_iter)
        block = like(result.precision.toarray(), precision)
        precision = _placed(precision, together, block)
        objective, gap = objective + result.objective, gap + result.duality_gap
        n_iter = max(n_iter, result.n_iter)
    return PrecisionResult(precision, objective, gap, n_iter, labels)


def _checked(S: Array, alpha: Any, penalize_diagonal: bool) -> Problem:
    """Check the input, as `mnpca.precision.problem.make_problem` does for the processor."""
    xp = namespace(S)
    if S.ndim != 2 or S.shape[0] != S.shape[1] or S.shape[0] == 0:
        raise ValueError(f"S must be a square covariance matrix, got shape {tuple(S.shape)}.")
    S = astype(S, "float64")
    if not bool(xp.all(xp.isfinite(S))):
        raise ValueError("S must be finite.")
    diagonal = xp.linalg.diagonal(S)
    if float(xp.min(diagonal)) < 0:
        raise ValueError(f"S has a negative diagonal entry, at {int(xp.argmin(diagonal))}.")
    root = xp.sqrt(diagonal)
    if bool(xp.any(xp.abs(S - S.T) > ASYMMETRY * root[:, None] * root[None, :])):
        raise ValueError("S must be symmetric. Pass (S + S.T) / 2.")
    alpha = _penalty(alpha, S)
    if penalize_diagonal:
        weights = alpha[0, :] if alpha.shape[0] == 1 else xp.linalg.diagonal(alpha)
        diagonal = diagonal + weights
    if float(xp.min(diagonal)) == 0:
        raise ValueError(
            f"S has a zero variance at {int(xp.argmin(diagonal))}, so the precision is unbounded: "
            "drop the variable, or pass alpha > 0 with penalize_diagonal=True."
        )
    return Problem(S, alpha, diagonal)


def _penalty(alpha: Any, S: Array) -> Array:
    """Return the penalties as one row, or as a symmetric matrix."""
    xp = namespace(S)
    if np.ndim(alpha) == 0:
        alpha = float(alpha) + xp.zeros_like(S[:1, :])
    elif not is_foreign_array(alpha):
        alpha = like(alpha, S)
    one_for_all = tuple(alpha.shape) == (1, S.shape[0])
    if not one_for_all and tuple(alpha.shape) != tuple(S.shape):
        raise ValueError(
            f"alpha must be a number or have S's shape {tuple(S.shape)}, got {tuple(alpha.shape)}."
        )
    if not one_for_all and not bool(xp.all(alpha == alpha.T)):
        raise ValueError("alpha must be symmetric; pass (alpha + alpha.T) / 2.")
    if not bool(xp.all(xp.isfinite(alpha))) or float(xp.min(alpha)) < 0:
        raise ValueError("alpha must be finite and not negative.")
    return alpha


def _labels(problem: Problem) -> Index:
    """Return the connected components of |S_ij| > alpha_ij."""
    xp = namespace(problem.covariance)
    row, col = xp.nonzero(xp.abs(problem.covariance) > problem.alpha)
    row, col = to_numpy(row), to_numpy(col)
    size = problem.size
    graph = sp.coo_array((np.ones(len(row), np.int8), (row, col)), shape=(size, size))
    _, labels = connected_components(graph, directed=False)
    return np.asarray(labels, np.int64)


def _restrict(problem: Problem, index: Index) -> Problem:
    """Return the same problem on some of the variables, in rising order."""
    if len(index) == problem.size:
        return problem
    alpha = problem.alpha
    alpha = _columns(alpha, index) if alpha.shape[0] == 1 else _block(alpha, index)
    at = _positions(problem.diagonal, index)
    return Problem(_block(problem.covariance, index), alpha, problem.diagonal[at])


def _start(init: PrecisionResult | None, index: Index, size: int) -> Array | None:
    """Return the earlier precision of these variables: a block of a definite matrix is definite."""
    if init is None:
        return None
    check_start(init, size, elsewhere=True)
    return init.precision if len(index) == size else _block(init.precision, index)


def _solve_large(problem: Problem, tol: float, start: Array | None) -> NewtonPoint:
    """Solve one component by Newton steps, quick ones first, with more effort where they fail."""
    goal = tol * problem.size
    start = diagonal_matrix(1.0 / problem.diagonal) if start is None else start
    point = newton(problem, start, goal, QUICK_ITERATIONS, QUICK)
    for effort in (STEADY, THOROUGH):
        if point.gap <= goal:
            return point
        point = newton_along_path(problem, goal, effort)
    if point.gap > goal:
        raise not_certified(point.gap / problem.size)
    return point


def _solve_small(problem: Problem, tol: float, max_iter: int) -> PrecisionResult:
    """Solve the small components on the processor, together."""
    covariance = to_numpy(with_diagonal(problem.covariance, problem.diagonal))
    alpha = to_numpy(problem.alpha)
    penalty = alpha[0, 0] if len(alpha) == 1 else alpha
    return sparse_precision(covariance, penalty, tol=tol, max_iter=max_iter)


def _positions(reference: Array, index: Index) -> Array:
    """Return indices where the array lives."""
    xp = namespace(reference)
    return xp.asarray(index, device=reference.device)


def _columns(matrix: Array, index: Index) -> Array:
    return namespace(matrix).take(matrix, _positions(matrix, index), axis=1)


def _block(matrix: Array, index: Index) -> Array:
    at = _positions(matrix, index)
    xp = namespace(matrix)
    return xp.take(xp.take(matrix, at, axis=0), at, axis=1)


def _placed(matrix: Array, index: Index, block: Array) -> Array:
    """Return the matrix with a diagonal block replaced."""
    at = _positions(matrix, index)
    if is_torch(matrix):
        matrix[at[:, None], at[None, :]] = block
        return matrix
    # The standard has no assignment by index arrays: spread the block with a selection matrix.
    xp = namespace(matrix)
    chosen = astype(
        at[None, :] == xp.arange(matrix.shape[0], device=matrix.device)[:, None], "float64"
    )
    keep = 1.0 - xp.sum(chosen, axis=1)
    return keep[:, None] * matrix * keep[None, :] + chosen @ block @ chosen.T
