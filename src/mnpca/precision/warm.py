"""Starts from earlier results."""

from __future__ import annotations

import numpy as np

from mnpca.precision._kernels.certificate import to_csr
from mnpca.precision._kernels.warm import (
    extrapolate,
    fill_regressions,
    recall_block,
    recall_rows,
)
from mnpca.precision.certificate import largest_eigenvalue, move_to_feasible
from mnpca.precision.iterate import Iterate, Sparse, Start
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array, Block, Index, PrecisionResult


def restart(result: PrecisionResult, index: Index, problem: Problem) -> Start:
    """Start the problem of the variables in index from an earlier result for all variables."""
    iterate, precision = recall(result, index, problem.diagonal)
    blocks = _blocks_within(result, index)
    alone = result.block_of[index] < 0
    if sum(len(block.index) for block in blocks) + np.count_nonzero(alone) > len(index):
        # Parts of a component's pair are definite, but neither inverses nor of known determinant.
        return Start(iterate, precision)
    # The scales of the precision change with those of the variables.
    before = result.precision.diagonal()[index]
    logdet = np.log(before[alone]).sum() + np.log(iterate.theta / before).sum()
    logdet += sum(block.logdet for block in blocks)
    known = all(block.definite for block in blocks)
    radius = largest_eigenvalue(result.duality_gap) if known else np.inf
    return Start(iterate, precision, float(logdet), radius)


def go_on(
    last: PrecisionResult, before: PrecisionResult, t: float, index: Index, problem: Problem
) -> Start:
    """Start from the line through two results, t times their distance beyond the last."""
    W, theta, precision = _look_up(last, index, problem.diagonal)
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
    return Iterate(W, B, theta), precision


def _look_up(result: PrecisionResult, index: Index, diagonal: Array) -> tuple[Array, Array, Sparse]:
    """W, theta and the precision of the variables in index, gathered from their components."""
    T = result.precision
    position = np.full(T.shape[0], -1)
    position[index] = np.arange(len(index))
    W = np.zeros((len(index), len(index)))
    np.fill_diagonal(W, diagonal)
    # Of a variable that stood alone; those of the components are set with them.
    scale = np.sqrt(diagonal * T.diagonal()[index])
    for block in _blocks_within(result, index):
        recall_block(block.working_covariance, position[block.index], diagonal, scale, W)
    indptr, columns = T.indptr.astype(np.int64, copy=False), T.indices.astype(np.int64, copy=False)
    *rows, theta = recall_rows(indptr, columns, T.data, index, position, scale)
    return W, theta, Sparse(*rows)


def _blocks_within(result: PrecisionResult, index: Index) -> list[Block]:
    """Blocks that hold variables of index."""
    number = result.block_of[index]
    return [result._blocks[k] for k in np.flatnonzero(np.bincount(number[number >= 0]))]
