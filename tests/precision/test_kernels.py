"""The compiled passes against the formulas in their docstrings, on sizes that are not round."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision._kernels.certificate import (
    distance_from_inverse,
    fill_dual,
    fill_primal,
    make_feasible,
    support_size,
    to_csr,
    trace_of_square,
)
from mnpca.precision._kernels.descent import fill_mixed, fill_soft
from mnpca.precision._kernels.interior import fill_hessian
from mnpca.precision._kernels.refit import _solve_definite, refit_sweeps
from mnpca.precision._kernels.shared import (
    add_rows,
    grow,
    padded,
    seed,
    shuffle,
    store,
)

from .small import OFF, P, precision_of_regressions, sparse_precision_of


@pytest.fixture
def S(rng):
    X = rng.normal(size=(12, P)) * rng.uniform(0.5, 2, size=P)
    return X.T @ X / 12


@pytest.fixture(params=["one row", "matrix"])
def alpha(request, rng):
    if request.param == "one row":
        return rng.uniform(0.1, 0.5, size=(1, P))
    alpha = rng.uniform(0.1, 0.5, size=(P, P))
    return alpha + alpha.T


@pytest.fixture
def diagonal(S):
    return np.diagonal(S) + 0.2


def feasible(S, alpha, diagonal, W, sign):
    """W clipped to [S - alpha, S + alpha], and S + alpha sign on the support."""
    a = np.broadcast_to(alpha, S.shape)
    point = np.where(sign != 0, S + a * sign, np.clip(W, S - a, S + a))
    np.fill_diagonal(point, diagonal)
    return point


# Certificates


@pytest.mark.parametrize("on_support", [True, False])
def test_a_dual_point(rng, S, alpha, diagonal, B, on_support):
    W = S + rng.normal(size=(P, P)) * 0.4
    out = np.full((P, P), 9.0)
    fill_dual(S, alpha, diagonal, W, B, on_support, out)
    sign = np.where((B != 0) & (B.T != 0), -np.sign(B), 0.0) * on_support
    lower = np.tri(P, dtype=bool)
    assert_allclose(out[lower], feasible(S, alpha, diagonal, W, sign)[lower])
    assert (out[~lower] == 9.0).all()


@pytest.mark.parametrize("far", [0.6, 1e-3])
def test_moving_to_the_dual_point_of_a_precision(rng, S, alpha, diagonal, far):
    rows, T = sparse_precision_of(rng)
    assert 0 < np.count_nonzero(T[OFF]) < P * (P - 1)
    W = feasible(S, alpha, diagonal, S, np.sign(T) * OFF) + far * rng.normal(size=(P, P))
    before = W.copy()
    cost, parts, moved, largest = make_feasible(S, alpha, diagonal, *rows, W)
    assert_allclose(W, feasible(S, alpha, diagonal, before, np.sign(T) * OFF))
    assert_allclose(cost, np.sum(T * W))
    root = np.sqrt(np.diagonal(T))
    move = (W - before) * np.outer(root, root)
    assert_allclose(parts, np.sum(move**2, axis=1))
    assert_allclose(moved, np.abs(move).sum(axis=1).max())
    assert_allclose(largest, (np.abs(T) / np.outer(root, root)).sum(axis=1).max())


def test_the_precision_of_regressions_and_its_cost(S, alpha, diagonal, B, theta):
    T = precision_of_regressions(B, theta)
    out = np.full((P, P), 9.0)
    cost = fill_primal(S, alpha, diagonal, B, theta, out)
    lower = np.tri(P, dtype=bool)
    assert_allclose(out[lower], T[lower])
    assert (out[~lower] == 9.0).all()
    a = np.broadcast_to(alpha, S.shape)
    # One triangle is read, so the penalty of a pair is that of its row.
    below = np.tri(P, k=-1, dtype=bool)
    expected = 2 * np.sum((S * T + a * np.abs(T))[below]) + diagonal @ theta
    assert_allclose(cost, expected)
    indptr, columns, values = to_csr(B, theta)
    assert_allclose(sp.csr_array((values, columns, indptr), shape=(P, P)).toarray(), T)
    assert len(values) == np.count_nonzero(T)
    assert support_size(B) == np.count_nonzero(B)


@pytest.mark.parametrize("room", [1, P])
@pytest.mark.parametrize("off", [1e-3, 0.1])
def test_distance_from_the_inverse(rng, room, off):
    rows, T = sparse_precision_of(rng)
    W = np.linalg.inv(T) + off * rng.normal(size=(P, P))
    relative = rng.uniform(0.5, 2.0, size=P)
    theta = np.diagonal(T).copy()
    out = np.empty((room, P))
    parts, spread = distance_from_inverse(*rows, theta, W, relative, out)
    X = T @ W - np.eye(P)
    assert_allclose(out, X[-room:] if room == 1 else X, atol=1e-12)
    root = np.sqrt(theta)
    scaled = X * root[None, :] / root[:, None]
    assert_allclose(parts, np.sum(scaled**2, axis=1))
    sums = np.sum(np.abs(scaled) * relative[None, :], axis=1) / relative
    assert_allclose(spread, sums.max())


@pytest.mark.parametrize("p", [1, P, 64, 70, 130])
def test_trace_of_the_square(rng, p):
    R = rng.normal(size=(p, p))
    assert_allclose(trace_of_square(R), np.trace(R @ R))


# Starts of the descent


def test_soft_thresholding(S, alpha, diagonal):
    W = np.empty((P, P))
    fill_soft(S, alpha, diagonal, W)
    expected = np.sign(S) * np.maximum(np.abs(S) - np.broadcast_to(alpha, S.shape), 0.0)
    np.fill_diagonal(expected, diagonal)
    assert_allclose(W, expected)


@pytest.mark.parametrize("size", [0.2, 50.0])
def test_the_most_that_the_whole_off_diagonal_may_shrink(S, alpha, diagonal, size):
    W = np.empty((P, P))
    fill_mixed(S, size * alpha, diagonal, W)
    share = np.min(np.broadcast_to(size * alpha, S.shape)[OFF] / np.abs(S[OFF]))
    expected = (1.0 - min(share, 1.0)) * S
    np.fill_diagonal(expected, diagonal)
    assert_allclose(W, expected, atol=1e-14)


# Second order


def test_the_hessian_of_the_log_determinant_over_pairs(rng):
    T = sparse_precision_of(rng)[1]
    rows, columns = np.array([1, 4, 6, 2]), np.array([0, 3, 2, 2])
    out = np.full((4, 4), 9.0)
    fill_hessian(T, rows, columns, out)
    for a in range(4):
        for b in range(4):
            i, j, k, m = rows[a], columns[a], rows[b], columns[b]
            expected = 2 * (T[i, k] * T[j, m] + T[i, m] * T[j, k]) if b <= a else 9.0
            assert_allclose(out[a, b], expected)


@pytest.mark.parametrize("m", [0, 1, 2, 5])
def test_solving_with_a_definite_matrix(rng, m):
    A = rng.normal(size=(6, 6))
    H, x = A @ A.T, rng.normal(size=6)
    expected = x.copy()
    expected[:m] = np.linalg.solve(H[:m, :m], x[:m])
    assert _solve_definite(H.copy(), m, x)
    assert_allclose(x, expected)


@pytest.mark.parametrize("worst", [0.0, -1.0])
def test_solving_refuses_a_matrix_that_is_not_definite(worst):
    assert not _solve_definite(np.diag([1.0, worst]), 2, np.ones(2))


# The sweeps on a graph


def graph(*edges):
    """Row pointers and neighbors of a graph on P variables."""
    adjacency = np.zeros((P, P), bool)
    for i, j in edges:
        adjacency[i, j] = adjacency[j, i] = True
    support = sp.csr_array(adjacency)
    return adjacency, support.indptr.astype(np.int64), support.indices.astype(np.int64)


def test_sweeps_on_a_graph_solve_the_likelihood_equations(S):
    """W = S on the graph and on the diagonal, and zero in the inverse elsewhere."""
    adjacency, indptr, neighbors = graph((0, 1), (1, 2), (2, 3), (0, 3), (4, 5))
    W, B, theta = S.copy(), np.zeros((P, P)), np.zeros(P)
    sweeps, progress, ok = refit_sweeps(S, indptr, neighbors, W, B, theta, 1e-16, 500)
    assert ok
    assert sweeps < 500
    assert progress <= 1e-16
    inside = adjacency | ~OFF
    assert_allclose(W[inside], S[inside], rtol=1e-6)
    T = np.linalg.inv(W)
    assert np.abs(T[~inside]).max() < 1e-6
    assert_allclose(np.diagonal(T), theta, rtol=1e-6)
    assert_allclose(B, np.where(OFF, -T / theta[:, None], 0.0), atol=1e-5)


def test_one_sweep_tells_its_progress(S):
    """From no regressions the lasso without penalty gains s'W^-1 s / 2 in every column."""
    _, indptr, neighbors = graph((2, 5))
    W, B, theta = np.diag(np.diagonal(S)), np.zeros((P, P)), np.zeros(P)
    sweeps, progress, ok = refit_sweeps(S, indptr, neighbors, W, B, theta, 0.0, 1)
    assert (sweeps, ok) == (1, True)
    explained = S[2, 5] ** 2 / (S[2, 2] * S[5, 5])
    assert_allclose(progress, 2 * explained / (1 - explained))


def test_a_later_sweep_tells_its_progress(S):
    """From any regressions, in any working covariance, it is what each column gains in turn."""
    _, indptr, neighbors = graph((0, 1), (1, 2), (2, 3), (0, 3), (4, 5))
    W, B, theta = S + np.diag(np.diagonal(S)), np.zeros((P, P)), np.zeros(P)
    B[0, [1, 3]], B[2, 1], B[4, 5] = (0.5, -0.2), 0.4, -1.0
    order, state = np.arange(P), seed()
    shuffle(order, state)
    expected, copy = 0.0, W.copy()
    for j in order:
        near = neighbors[indptr[j] : indptr[j + 1]]
        H, s, b = copy[np.ix_(near, near)], S[j, near], B[j, near]
        new = np.linalg.solve(H, s)
        free = copy[j, j] - new @ s
        gain = (0.5 * b @ H @ b - s @ b) - (0.5 * new @ H @ new - s @ new)
        expected += 2 * gain / free
        fit = new @ copy[near]
        fit[j] = copy[j, j]
        copy[j], copy[:, j] = fit, fit
    start = (W.copy(), B.copy())
    progress = refit_sweeps(S, indptr, neighbors, W, B, theta, 0.0, 1)[1]
    assert_allclose(progress, expected)
    assert_allclose(W, copy)
    # A target is reached when progress equals it.
    again = refit_sweeps(S, indptr, neighbors, *start, theta, progress, 9)
    assert again == (1, progress, True)


def test_a_sweep_stops_where_a_conditional_variance_is_not_positive():
    S = np.eye(P)
    S[2, 5] = S[5, 2] = 1.0
    _, indptr, neighbors = graph((2, 5))
    W, B, theta = np.eye(P), np.zeros((P, P)), np.zeros(P)
    assert refit_sweeps(S, indptr, neighbors, W, B, theta, 0.0, 5) == (1, np.inf, False)


def test_a_sweep_stops_where_neighbors_are_not_definite():
    _, indptr, neighbors = graph((0, 1), (0, 2))
    W, B, theta = np.eye(P), np.zeros((P, P)), np.zeros(P)
    W[1, 2] = W[2, 1] = 2.0
    assert refit_sweeps(np.eye(P), indptr, neighbors, W, B, theta, 0.0, 5) == (1, np.inf, False)


# Small pieces


@pytest.mark.parametrize("m", [0, 1, 3, 4, 5, 8, 9])
def test_rows_are_added(rng, m):
    W, out = rng.normal(size=(P, P)), rng.normal(size=P)
    rows, coef = rng.integers(P, size=m), rng.normal(size=m)
    expected = out.copy()
    expected[:5] += (coef @ W[rows])[:5]
    add_rows(W, rows, coef, m, 5, out)
    assert_allclose(out, expected)


def test_whole_vectors():
    assert [padded(m) for m in (0, 1, 7, 8, 9, 16)] == [0, 8, 8, 8, 16, 16]


def test_a_buffer_grows_and_keeps_its_content(rng):
    buffer = rng.normal(size=(8, 8))
    assert grow(buffer, 8) is buffer
    bigger = grow(buffer, 9)
    assert bigger.shape == (16, 16)  # half as much again, in whole vectors
    assert_array_equal(bigger[:8, :8], buffer)
    assert grow(buffer, 20).shape == (32, 32)


def test_row_and_column_are_stored(rng):
    W, g = rng.normal(size=(P, P)), rng.normal(size=P)
    expected = W.copy()
    expected[3], expected[:, 3] = g, g
    store(g, 3, W)
    assert_array_equal(W, expected)


def test_orders_are_shuffled_evenly_and_reproducibly():
    state, count = seed(), np.zeros((5, 5))
    assert seed()[0] == state[0]
    for _ in range(2000):
        order = np.arange(5)
        shuffle(order, state)
        assert sorted(order.tolist()) == list(range(5))
        count[order, np.arange(5)] += 1
    assert np.abs(count / 2000 - 0.2).max() < 0.04
