"""The compiled passes on components and earlier solutions, against their docstrings."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision._kernels.blocks import join_rows, take_block
from mnpca.precision._kernels.certificate import to_csr
from mnpca.precision._kernels.shared import diagonal_of
from mnpca.precision._kernels.warm import (
    extrapolate,
    fill_regressions,
    list_regressions,
    recall,
    symmetric_rows,
)
from mnpca.precision.blocks import Blocks, Groups

from .small import OFF, P, precision_of_regressions, sparse_precision_of


def test_a_block_is_taken(rng):
    matrix, index = rng.normal(size=(P, P)), np.array([5, 0, 3])
    out = np.empty((3, 2))
    take_block(matrix, index, np.array([6, 1]), out)
    assert_array_equal(out, matrix[np.ix_(index, [6, 1])])


@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 3, 0, 1], [0, 0, 0, 0, 0, 0, 0], range(P)])
def test_rows_are_joined(rng, labels):
    groups = Groups.of(np.array(labels))
    parts = [sparse_precision_of(rng, k) for k in np.diff(groups.bounds)]
    diagonal = rng.uniform(1.0, 2.0, size=P)
    whole = np.diag(1 / diagonal)
    for c, (_, T) in enumerate(parts):
        index = groups[c].variables
        whole[np.ix_(index, index)] = T
    ends, columns, values = (
        np.concatenate([np.empty(0, kind), *entries])
        for kind, entries in (
            (np.int64, [np.cumsum(np.diff(rows[0])) for rows, _ in parts]),
            (np.int64, [rows[1] for rows, _ in parts]),
            (np.float64, [rows[2] for rows, _ in parts]),
        )
    )
    before = np.cumsum([0, *(len(rows[1]) for rows, _ in parts)])[:-1]
    ends += np.repeat(before, np.diff(groups.bounds))
    starts = np.concatenate([[0], ends[:-1]])
    *joined, logs = join_rows(
        diagonal, groups.order, groups.bounds, groups.number, starts, ends, columns, values
    )
    assert_allclose(logs, np.log(diagonal[groups.number < 0]).sum())
    found = sp.csr_array(tuple(joined), shape=(P, P))
    assert_allclose(found.toarray(), whole)
    assert found.nnz == np.count_nonzero(whole)
    assert all((np.diff(found.indices[a:b]) > 0).all() for a, b in pairwise(found.indptr))


@pytest.mark.parametrize(
    "then",
    [  # components of the earlier result: the same; larger; smaller; others; none
        [0, 1, 0, 2, 0, 3, 4],
        [0, 0, 0, 1, 0, 2, 0],
        [0, 1, 0, 2, 3, 4, 5],
        [0, 1, 2, 1, 0, 2, 0],
        range(P),
    ],
)
def test_a_solution_is_recalled_in_new_units(rng, then):
    before = Groups.of(np.array(then))
    T, W = np.diag(rng.uniform(1.0, 2.0, size=P)), np.zeros((P, P))
    np.fill_diagonal(W, 1 / np.diagonal(T))
    covariances = []
    for c in range(before.count):
        index = before[c].variables
        _, T[np.ix_(index, index)] = sparse_precision_of(rng, len(index))
        A = rng.normal(size=(len(index), len(index)))
        covariances.append(A @ A.T)
        W[np.ix_(index, index)] = covariances[-1]
    blocks = Blocks.join(before, covariances, [0.0] * before.count)
    rows = sp.csr_array(T)
    earlier = (
        *(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data),
        *(before.bounds, before.number, before.place, blocks.offsets, blocks.covariances),
    )
    now = Groups.of(np.array([0, 1, 0, 2, 0, 3, 4]))
    index, diagonal = now[0].variables, rng.uniform(1.0, 2.0, size=3)
    out = np.full((3, 3), 9.0)
    found = recall(earlier, index, now.number, now.place, diagonal, out)
    scale = np.sqrt(diagonal / np.diagonal(W)[index])
    assert_allclose(out, W[np.ix_(index, index)] * np.outer(scale, scale))
    expected = T[np.ix_(index, index)] / np.outer(scale, scale)
    assert_allclose(sp.csr_array((found[2], found[1], found[0]), shape=(3, 3)).toarray(), expected)


def test_regressions_are_filled_and_listed(rng):
    rows, T = sparse_precision_of(rng)
    theta = diagonal_of(*rows)
    assert_allclose(theta, np.diagonal(T))
    expected = np.where(OFF, -T / theta[:, None], 0.0)
    B = np.zeros((P, P))
    fill_regressions(*rows, theta, B)
    assert_allclose(B, expected)
    lists = list_regressions(*rows, theta)
    assert_allclose(from_lists(lists), expected)
    # Room for a sweep over every column.
    assert len(lists[2]) == len(lists[3]) >= 2 * np.count_nonzero(expected)


def from_lists(lists):
    start, count, near, values = lists
    B = np.zeros((len(start), len(start)))
    for i in range(len(start)):
        at = slice(start[i], start[i] + count[i])
        B[i, near[at]] = values[at]
    return B


def test_rows_of_listed_regressions(B, theta, rng):
    """The lists are in no order, with gaps between them."""
    start, count, near, values = [], [], [], []
    for i in range(P):
        neighbors = rng.permutation(np.flatnonzero(B[i]))
        start.append(len(near) + 2)
        count.append(len(neighbors))
        near += [-1, -1, *neighbors]
        values += [np.nan, np.nan, *B[i, neighbors]]
    lists = tuple(map(np.array, (start, count, near, values)))
    indptr, columns, entries = symmetric_rows(lists, theta)
    found = sp.csr_array((entries, columns, indptr), shape=(P, P))
    assert_allclose(found.toarray(), precision_of_regressions(B, theta))
    assert_array_equal(columns, to_csr(B, theta)[1])


def test_going_on_through_two_iterates(rng):
    """A regression may shrink to zero; it neither appears nor changes its sign."""
    rows, T = sparse_precision_of(rng)
    T_before = np.where(rng.random((P, P)) < 0.7, T * rng.uniform(0.3, 3.0, size=(P, P)), 0.0)
    np.fill_diagonal(T_before, np.diagonal(T) * rng.uniform(0.5, 1.5, size=P))
    before = sp.csr_array(T_before)
    W, W_before, t = rng.normal(size=(P, P)), rng.normal(size=(P, P)), 0.8
    theta, theta_before = np.diagonal(T).copy(), np.diagonal(T_before).copy()
    now, then = -T / theta[:, None], -T_before / theta_before[:, None]
    ahead = np.where(then != 0, now + t * (now - then), now)
    expected = np.where((ahead * now > 0) & OFF, ahead, 0.0)
    kinds = [(now != 0) & OFF & at for at in (then == 0, then != 0, ahead * now < 0)]
    assert all(kind.any() for kind in kinds)
    expected_W, expected_theta = W + t * (W - W_before), theta * (theta / theta_before) ** t
    B = np.zeros((P, P))
    parts = (before.indptr.astype(np.int64), before.indices.astype(np.int64), before.data)
    extrapolate(W, theta, *rows, (W_before, *parts), theta_before, t, B)
    assert_allclose(W, expected_W)
    assert_allclose(theta, expected_theta)
    assert_allclose(B, expected)
