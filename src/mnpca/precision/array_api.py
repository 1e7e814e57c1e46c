"""Sparse precision of a covariance that lives in another library's memory, as on a GPU.

Block descent walks a matrix column by column, which an accelerator does badly. Large components
are solved there by Newton's method, whose steps are products and factorizations; the many small
ones come to the processor and its compiled kernels, and so do those that Newton's method fails on.
"""

from __future__ import annotations

import numpy as np

from mnpca._components import group_by_label
from mnpca._typing import IntArray
from mnpca.engines.arrays import Array, astype, diagonal_matrix, is_torch, like, namespace, to_numpy
from mnpca.precision.newton import newton, with_diagonal
from mnpca.precision.problem import Problem, block, positions
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import sparse_precision

# Components up to this size are left to the processor.
SMALL = 200


def solve_foreign(
    problem: Problem, labels: IntArray, tol: float, init: PrecisionResult | None, max_iter: int
) -> PrecisionResult:
    """Solve a checked problem where its arrays live.

    The certificate is the processor's: a feasible dual point and its duality gap. ``max_iter`` is
    for the components that come to the processor.
    """
    groups = group_by_label(labels)
    large = [index for index in groups if len(index) > SMALL]
    left = [index for index in groups if 1 < len(index) <= SMALL]
    alone = [index[0] for index in groups if len(index) == 1]
    precision = diagonal_matrix(1.0 / problem.diagonal)
    objective, gap, n_iter = float(sum(np.log(to_numpy(problem.diagonal))[alone] + 1.0)), 0.0, 0
    for index in large:
        part = problem.restrict(index)
        whole = part is problem
        start = None
        if init is not None:  # a block of a definite matrix is definite
            start = init.precision if whole else block(init.precision, index)
        point = newton(part, tol * part.size, start)
        if point.gap > tol * part.size:
            left.append(index)
            continue
        precision = point.T if whole else _placed(precision, index, point.T)
        objective, gap = objective + point.value, gap + point.gap
        n_iter = max(n_iter, point.n_iter)
    if left:
        together = np.sort(np.concatenate(left))
        result = _solve_on_processor(problem.restrict(together), tol, max_iter)
        dense = like(result.precision.toarray(), precision)
        precision = _placed(precision, together, dense)
        objective, gap = objective + result.objective, gap + result.duality_gap
        n_iter = max(n_iter, result.n_iter)
    return PrecisionResult(precision, objective, gap, n_iter, labels)


def _solve_on_processor(problem: Problem, tol: float, max_iter: int) -> PrecisionResult:
    """Solve several components together, by compiled kernels."""
    covariance = to_numpy(with_diagonal(problem.covariance, problem.diagonal))
    alpha = to_numpy(problem.alpha)
    penalty = alpha[0, 0] if len(alpha) == 1 else alpha
    return sparse_precision(covariance, penalty, tol=tol, max_iter=max_iter)


def _placed(matrix: Array, index: IntArray, part: Array) -> Array:
    """Return the matrix with a diagonal block replaced."""
    at = positions(matrix, index)
    if is_torch(matrix):
        matrix[at[:, None], at[None, :]] = part
        return matrix
    # The standard has no assignment by index arrays: spread the block with a selection matrix.
    xp = namespace(matrix)
    chosen = astype(
        at[None, :] == xp.arange(matrix.shape[0], device=matrix.device)[:, None], "float64"
    )
    keep = 1.0 - xp.sum(chosen, axis=1)
    return keep[:, None] * matrix * keep[None, :] + chosen @ part @ chosen.T
