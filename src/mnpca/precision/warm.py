"""Starts from earlier results."""

from __future__ import annotations

import numpy as np

from mnpca.precision._kernels.certificate import make_feasible
from mnpca.precision._kernels.warm import extrapolate, largest_row_sum, recall_rows
from mnpca.precision.iterate import Iterate, Sparse, Start
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, Block, Index, PrecisionResult


def restart(result: PrecisionResult, index: Index, problem: Problem) -> Start:
    """Start the problem of the variables in index from an earlier result for all variables.

    With T the earlier precision and X = T^(1/2) W T^(1/2), the feasible W is positive definite if
    it is nearer to the earlier one than the least eigenvalue of X allows.
    """
    iterate, precision = recall(result, index, problem.diagonal)
    moved = _move_to_feasible(problem, iterate)
    blocks, whole = _blocks_within(result, index)
    if not whole:
        # A part of a component is a principal submatrix: definite, but of unknown determinant.
        return Start(iterate, precision)
    least = min((block.least for block in blocks), default=1.0)
    definite = largest_row_sum(*precision, iterate.theta) * moved < least
    logdet = _log_determinant(result, index, blocks, iterate.theta)
    return Start(iterate, precision, logdet, bool(definite))


def go_on(
    last: PrecisionResult, before: PrecisionResult, t: float, index: Index, problem: Problem
) -> Start:
    """Start from the line through two results, t times their distance beyond the last."""
    iterate, _ = recall(last, index, problem.diagonal)
    other, _ = recall(before, index, problem.diagonal)
    extrapolate(iterate.W, iterate.B, iterate.theta, other.W, other.B, other.theta, t)
    _move_to_feasible(problem, iterate)
    return Start(iterate)


def recall(result: PrecisionResult, index: Index, diagonal: Array) -> tuple[Iterate, Sparse]:
    """Return the iterate behind a result and its precision, scaled to new variances."""
    p = len(index)
    position = np.full(result.precision.shape[0], -1)
    position[index] = np.arange(p)
    W = _working_covariance(result, index, position)
    scale = np.sqrt(diagonal / np.diagonal(W))
    if not np.all(scale == 1.0):
        W *= scale
        W *= scale[:, None]
    B = np.zeros((p, p))
    T = result.precision
    *rows, theta = recall_rows(
        T.indptr.astype(np.int64), T.indices.astype(np.int64), T.data, index, position, scale, B
    )
    return Iterate(W, B, theta), Sparse(*rows)


def _move_to_feasible(problem: Problem, iterate: Iterate) -> float:
    """Move W to the dual's feasible set: elsewhere a conditional variance may turn negative."""
    W = iterate.W
    moved: float = make_feasible(
        problem.covariance, problem.alpha, problem.diagonal, iterate.B, iterate.theta, W, W
    )
    return moved


def _blocks_within(result: PrecisionResult, index: Index) -> tuple[list[Block], bool]:
    """Blocks that hold variables of index, and whether each of them lies in index as a whole."""
    number = result.block_of[index]
    blocks = [result._blocks[k] for k in np.unique(number[number >= 0])]
    return blocks, sum(len(block.index) for block in blocks) == np.count_nonzero(number >= 0)


def _log_determinant(
    result: PrecisionResult, index: Index, blocks: list[Block], theta: Array
) -> float:
    """Log-determinant of the scaled precision of whole blocks and variables that stood alone."""
    before = result.precision.diagonal()[index]
    logdet = sum(block.logdet for block in blocks)
    alone = float(np.log(before[result.block_of[index] < 0]).sum())
    return float(logdet + alone + np.log(theta / before).sum())


def _working_covariance(result: PrecisionResult, index: Index, position: Index) -> Array:
    """Gather the components' working covariances for the variables in index."""
    p = len(index)
    blocks, _ = _blocks_within(result, index)
    if len(blocks) == 1 and np.array_equal(blocks[0].index, index):
        return blocks[0].working_covariance.copy()
    W = np.zeros((p, p))
    np.fill_diagonal(W, 1.0 / result.precision.diagonal()[index])
    for block in blocks:
        here = position[block.index]
        kept = here >= 0
        part = block.working_covariance
        W[np.ix_(here[kept], here[kept])] = part if kept.all() else part[np.ix_(kept, kept)]
    return W
