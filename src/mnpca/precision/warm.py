"""Starts from earlier results."""

from __future__ import annotations

import numpy as np

from mnpca.precision._kernels import warm as kernels
from mnpca.precision.block_descent import Iterate
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, Index, PrecisionResult


def restart(result: PrecisionResult, index: Index, problem: Problem) -> Iterate:
    """Start the problem of the variables in index from an earlier result for all variables."""
    iterate = recall(result, index, problem.diagonal)
    kernels.make_feasible(problem.covariance, problem.alpha, problem.diagonal, iterate.B, iterate.W)
    return iterate


def go_on(
    last: PrecisionResult, before: PrecisionResult, t: float, index: Index, problem: Problem
) -> Iterate:
    """Start from the line through two results, t times their distance beyond the last."""
    iterate = recall(last, index, problem.diagonal)
    other = recall(before, index, problem.diagonal)
    kernels.extrapolate(iterate.W, iterate.B, iterate.theta, other.W, other.B, other.theta, t)
    kernels.make_feasible(problem.covariance, problem.alpha, problem.diagonal, iterate.B, iterate.W)
    return iterate


def recall(result: PrecisionResult, index: Index, diagonal: Array) -> Iterate:
    """Return the iterate behind a result for the variables in index, scaled to new variances."""
    p = len(index)
    whole = p == result.precision.shape[0]
    precision = result.precision if whole else result.precision[index][:, index]
    theta = precision.diagonal()
    W = _working_covariance(result, index, theta)
    scale = np.sqrt(diagonal / np.diagonal(W))
    row = np.repeat(np.arange(p), np.diff(precision.indptr))
    column = precision.indices
    B = np.zeros((p, p))
    B[row, column] = -precision.data / theta[row]
    np.fill_diagonal(B, 0.0)
    if not np.all(scale == 1.0):
        W *= scale
        W *= scale[:, None]
        B *= scale[:, None]
        B /= scale
    return Iterate(W, B, theta / scale**2)


def _working_covariance(result: PrecisionResult, index: Index, theta: Array) -> Array:
    """Gather the components' working covariances for the variables in index."""
    p = len(index)
    for block in result._blocks:
        if np.array_equal(block.index, index):
            return block.working_covariance.copy()
    W = np.zeros((p, p))
    np.fill_diagonal(W, 1.0 / theta)
    position = np.full(result.precision.shape[0], -1)
    position[index] = np.arange(p)
    for block in result._blocks:
        here = position[block.index]
        kept = here >= 0
        if kept.any():
            part = block.working_covariance
            W[np.ix_(here[kept], here[kept])] = part if kept.all() else part[np.ix_(kept, kept)]
    return W
