"""Starts from earlier results."""

from __future__ import annotations

import numpy as np

from mnpca.precision._kernels.blocks import put_block
from mnpca.precision._kernels.certificate import to_csr
from mnpca.precision._kernels.warm import extrapolate, fill_regressions, recall_rows
from mnpca.precision.certificate import move_to_feasible
from mnpca.precision.iterate import Iterate, Sparse, Start
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, Block, Index, PrecisionResult


def restart(result: PrecisionResult, index: Index, problem: Problem) -> Start:
    """Start the problem of the variables in index from an earlier result for all variables."""
    iterate, precision = recall(result, index, problem.diagonal)
    blocks, whole = _blocks_within(result, index)
    definite = all(block.definite for block in blocks)
    # Parts of components are principal submatrices: definite, but of unknown determinant.
    logdet = _log_determinant(result, index, blocks, iterate.theta) if whole else np.nan
    return Start(iterate, precision, logdet, definite)


def go_on(
    last: PrecisionResult, before: PrecisionResult, t: float, index: Index, problem: Problem
) -> Start:
    """Start from the line through two results, t times their distance beyond the last."""
    W, theta, precision = _look_up(last, index, problem.diagonal)
    W = W.copy()
    W_before, theta_before, precision_before = _look_up(before, index, problem.diagonal)
    B = np.zeros_like(W)
    extrapolate(W, theta, *precision, (W_before, *precision_before), theta_before, t, B)
    move_to_feasible(problem, W, Sparse(*to_csr(B, theta)))
    return Start(Iterate(W, B, theta))


def recall(result: PrecisionResult, index: Index, diagonal: Array) -> tuple[Iterate, Sparse]:
    """Return the iterate behind a result and its precision, scaled to new variances."""
    W, theta, precision = _look_up(result, index, diagonal)
    B = np.zeros_like(W)
    fill_regressions(*precision, theta, B)
    return Iterate(W.copy(), B, theta), precision


def _look_up(result: PrecisionResult, index: Index, diagonal: Array) -> tuple[Array, Array, Sparse]:
    """W, theta and the precision of the variables in index, to be read only."""
    position = np.full(result.precision.shape[0], -1)
    position[index] = np.arange(len(index))
    W = _working_covariance(result, index, position)
    scale = np.sqrt(diagonal / np.diagonal(W))
    if not np.all(scale == 1.0):
        W = W * scale
        W *= scale[:, None]
    T = result.precision
    *rows, theta = recall_rows(
        T.indptr.astype(np.int64), T.indices.astype(np.int64), T.data, index, position, scale
    )
    return W, theta, Sparse(*rows)


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
        return blocks[0].working_covariance
    W = np.zeros((p, p))
    np.fill_diagonal(W, 1.0 / result.precision.diagonal()[index])
    for block in blocks:
        put_block(block.working_covariance, position[block.index], W)
    return W
