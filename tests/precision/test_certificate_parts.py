"""The pieces of the certificate against dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision import certificate
from mnpca.precision._kernels.certificate import distance_from_inverse, largest_gap, to_csr
from mnpca.precision.certificate import by_factors, certify, dual_value, move_to_feasible
from mnpca.precision.iterate import Sparse, from_precision
from mnpca.precision.newton import newton
from mnpca.precision.problem import Problem, make_problem

from .reference import factor_covariance, objective, penalty_matrix

P, ALPHA = 8, 0.2


def problem_and_solution(seed=80, goal=1e-12):
    problem, _ = make_problem(factor_covariance(P, 30, seed=seed), ALPHA, False)
    point = newton(problem, np.diag(1 / problem.diagonal), goal)
    return problem, point


def near(point, size, seed=0):
    """The solution's precision with its entries changed a little, and a W changed too."""
    rng = np.random.default_rng(seed)
    T = point.T * np.exp(size * rng.standard_normal(point.T.shape))
    T = (T + T.T) / 2
    noise = size * rng.standard_normal(T.shape)
    return T, point.W + (noise + noise.T) / 2


def linear(problem, T):
    off = problem.covariance * T + ALPHA * np.abs(T)
    np.fill_diagonal(off, problem.diagonal * np.diagonal(T))
    return off.sum()


def feasible(problem, T, W):
    """S + alpha sign(T) on the support of T, W clipped elsewhere."""
    S = problem.covariance
    point = np.where(T != 0, S + ALPHA * np.sign(T), np.clip(W, S - ALPHA, S + ALPHA))
    np.fill_diagonal(point, problem.diagonal)
    return point


def sparse_of(T):
    iterate = from_precision(T, np.zeros_like(T))
    return Sparse(*to_csr(iterate.B, iterate.theta))


def bound(distance, radius=np.inf):
    return largest_gap(distance, radius)


def test_bound_is_the_worst_eigenvalue_s():
    for distance in (0.0, 1e-3, 0.5, 0.999):
        assert_allclose(bound(distance), -distance - np.log(1 - distance), atol=1e-15)
    assert bound(1.0) == bound(1.5) == np.inf


@pytest.mark.parametrize("size", [0.01, 0.2])
def test_dual_points_by_regressions(size):
    problem, point = problem_and_solution()
    T, W = near(point, size)
    S = problem.covariance
    clipped = np.clip(W, S - ALPHA, S + ALPHA)
    np.fill_diagonal(clipped, problem.diagonal)
    first = np.linalg.slogdet(feasible(problem, T, W))[1] + P
    second = np.linalg.slogdet(clipped)[1] + P
    B, work = from_precision(T, W).B, np.empty((P, P))
    assert_allclose(dual_value(problem, W, B, work, first - 1e-9), first)
    assert_allclose(dual_value(problem, W, B, work, np.inf), max(first, second))
    assert first != second


def test_the_second_dual_point_serves_where_the_first_is_indefinite():
    """Signs that cannot all be true take the first point out of the cone."""
    S = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    problem, _ = make_problem(S, 0.9, False)
    B = -np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    value = dual_value(problem, np.eye(3), B, np.empty((3, 3)), 0.0)
    assert_allclose(value, 3.0)  # of the identity, which is feasible


def test_moving_to_the_feasible_point():
    problem, point = problem_and_solution()
    T, W = near(point, 0.1)
    before = W.copy()
    cost, parts, moved, size = move_to_feasible(problem, W, sparse_of(T))
    expected = feasible(problem, T, before)
    assert_allclose(W, expected)
    assert_allclose(cost, np.sum(T * expected))
    assert_allclose(cost, linear(problem, T))
    units = np.sqrt(np.outer(np.diagonal(T), np.diagonal(T)))
    move = np.abs(W - before) * units
    assert_allclose(parts, (move**2).sum(axis=1))
    assert_allclose(moved, move.sum(axis=1).max())
    assert_allclose(size, (np.abs(T) / units).sum(axis=1).max())


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("dual", [-np.inf, 100.0])
def test_gap_by_factors(size, dual):
    problem, point = problem_and_solution()
    T, W = near(point, size)
    found = by_factors(problem, from_precision(T, W), 1e-3, dual, np.empty((P, P)))
    value = objective(problem.covariance, penalty_matrix(ALPHA, P, False), T)
    assert_allclose(found.cost, linear(problem, T))
    assert_allclose(found.logdet, np.linalg.slogdet(T)[1])
    assert_allclose(found.objective, value)
    if dual > 0:
        assert (found.gap, found.dual) == (0.0, dual)
        return
    assert_allclose(found.gap, value - found.dual, atol=1e-13)
    assert found.estimate == found.gap
    assert found.gap >= value - point.value
    assert not found.definite
    assert_array_equal(found.precision.indptr, sparse_of(T).indptr)


def by_product(problem, T, W, goal, definite):
    work = np.empty((P, P))
    iterate = from_precision(T, W.copy())
    return certificate._by_product(problem, iterate, goal, definite, work), iterate


def pair(problem, T, W):
    """Norm of T W - I in units of T's diagonal, trace of its square, and the true gap."""
    there = feasible(problem, T, W)
    X = T @ there - np.eye(P)
    scale = np.sqrt(np.diagonal(T))
    norm = np.linalg.norm(X * scale[None, :] / scale[:, None])
    cost = linear(problem, T)
    gap = cost - np.linalg.slogdet(T)[1] - np.linalg.slogdet(there)[1] - P
    return norm, np.trace(X @ X), gap, cost


def spread(problem, T, W):
    """Largest row sum of |T W - I| in units of T's diagonal."""
    scale = np.sqrt(np.diagonal(T))
    X = T @ feasible(problem, T, W) - np.eye(P)
    return np.abs(X * scale[None, :] / scale[:, None]).sum(axis=1).max()


def test_gap_by_the_product_alone():
    """Near the solution and with W known to be definite, nothing is factorized."""
    problem, point = problem_and_solution()
    T, W = near(point, 1e-4)
    norm, _, gap, cost = pair(problem, T, W)
    goal = 1.01 * bound(norm)
    found, iterate = by_product(problem, T, W, goal, True)
    assert np.isnan(found.logdet)
    assert found.definite
    assert_allclose(found.cost, cost)
    assert_allclose([found.gap, found.estimate], bound(norm))
    assert gap <= found.gap
    assert_allclose(iterate.W, feasible(problem, T, W))
    # Without that knowledge T is factorized, after which W is known too.
    found, _ = by_product(problem, T, W, goal, False)
    assert_allclose(found.logdet, np.linalg.slogdet(T)[1])
    assert found.definite
    assert_allclose(found.gap, bound(norm))


def test_gap_by_the_trace_of_the_square(monkeypatch):
    """The norm is too large for the goal, the trace of the square is not."""
    problem, point = problem_and_solution()
    T, W = near(point, 3e-3)
    norm, square, gap, _ = pair(problem, T, W)
    radius = spread(problem, T, W)
    by_trace = bound(np.sqrt(square), radius)
    assert square < norm**2
    goal = (by_trace + bound(norm, radius)) / 2
    found, _ = by_product(problem, T, W, goal, True)
    assert_allclose(found.gap, by_trace, rtol=1e-6)
    assert np.isnan(found.logdet)
    assert found.definite
    # Without the knowledge that W is definite, T is factorized.
    found, _ = by_product(problem, T, W, goal, False)
    assert_allclose(found.gap, by_trace, rtol=1e-6)
    assert_allclose(found.logdet, np.linalg.slogdet(T)[1])
    # Where half of the trace passes and the bound does not, factors of both give the gap itself.
    goal = (square / 2 + by_trace) / 2
    found, _ = by_product(problem, T, W, goal, False)
    assert_allclose(found.gap, gap, rtol=1e-5)
    assert found.definite
    # With W known to be definite, sweeps go on, unless the bound is far above the goal.
    found, _ = by_product(problem, T, W, goal, True)
    assert found.gap == np.inf
    assert np.isnan(found.logdet)
    monkeypatch.setattr(certificate, "NEARLY", 0.99 * by_trace / goal)
    found, _ = by_product(problem, T, W, goal, True)
    assert_allclose(found.gap, gap, rtol=1e-5)
    # Where half of the trace does not pass, it is the estimate, and nothing else is computed.
    found, _ = by_product(problem, T, W, 0.49 * square, True)
    assert_allclose(found.estimate, square / 2, rtol=1e-6)
    assert found.gap == np.inf
    assert np.isnan(found.logdet)


def test_what_is_known_of_w_is_lost_where_it_moves_far():
    problem, point = problem_and_solution()
    T, _ = near(point, 1e-5)
    norm, _, _, _ = pair(problem, T, point.W)
    rows = np.abs(T) / np.sqrt(np.outer(np.diagonal(T), np.diagonal(T)))
    for step, known in ((0.5, True), (2.0, False)):
        W = feasible(problem, T, point.W)
        # An entry on the support, which moves back.
        i, j = np.argwhere(np.triu(T, 1))[0]
        change = step * (1 - norm) / rows.sum(axis=1).max() / np.sqrt(T[i, i] * T[j, j])
        W[i, j] += change
        W[j, i] += change
        found, _ = by_product(problem, T, W, 1.0, True)
        assert np.isnan(found.logdet) == known
        assert found.definite


def test_an_indefinite_precision_has_no_gap():
    problem, point = problem_and_solution()
    # T W - I with eigenvalues near -2 has T indefinite; half of 4 is below this goal.
    values, vectors = np.linalg.eigh(point.T)
    T = point.T - 2 * values[0] * np.outer(vectors[:, 0], vectors[:, 0])
    found, _ = by_product(problem, T, point.W, 1e3, False)
    assert (found.logdet, found.gap, found.estimate) == (-np.inf, np.inf, np.inf)
    assert not found.definite


def test_an_indefinite_pair_has_no_gap_however_near_to_inverse():
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    T = hadamard @ np.diag([-5.0, 3.0, 3.0, 3.0]) @ hadamard
    W = np.linalg.inv(T)
    assert np.diagonal(T).min() > 0 < np.diagonal(W).min()
    # The covariance whose feasible point, on the support of T, is W.
    alpha = 0.01
    S = W - alpha * np.sign(T)
    np.fill_diagonal(S, np.diagonal(W))
    problem = Problem(S, np.full((1, 4), alpha), np.diagonal(W).copy())
    iterate = from_precision(T, W.copy())
    found = certificate._by_product(problem, iterate, 0.1, False, np.empty((4, 4)))
    assert_allclose(iterate.W, W)
    assert (found.logdet, found.gap, found.estimate) == (-np.inf, np.inf, np.inf)


def test_an_indefinite_dual_point_gives_no_gap():
    """T is definite; the point that belongs to it, with signs that contradict, is not."""
    S = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    problem, _ = make_problem(S, 0.9, False)
    T = np.eye(3) + 0.1 * np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 1.0], [-1.0, 1.0, 0.0]])
    assert np.linalg.eigvalsh(T)[0] > 0
    iterate = from_precision(T, np.eye(3))
    # A goal that half of the trace passes, but not the bound.
    found = certificate._by_product(problem, iterate, 100.0, False, np.empty((3, 3)))
    assert np.linalg.eigvalsh(iterate.W)[0] < 0
    assert found.gap == np.inf
    assert not found.definite


def test_the_way_is_chosen_by_the_number_of_edges(monkeypatch):
    problem, point = problem_and_solution()
    iterate = from_precision(point.T, point.W)
    n_edges = np.count_nonzero(iterate.B)
    assert 0 < n_edges < P * (P - 1)
    monkeypatch.setattr(certificate, "_by_product", lambda *args: "product")
    monkeypatch.setattr(certificate, "by_factors", lambda *args: "factors")
    for share, expected in ((n_edges, "product"), (n_edges - 0.5, "factors")):
        monkeypatch.setattr(certificate, "SPARSE", share / P**2)
        assert certify(problem, iterate, 1e-3, True, -np.inf, np.empty((P, P))) == expected


@pytest.mark.parametrize("seed", range(10))
def test_row_sums_bound_the_eigenvalues_in_any_weights(seed):
    _, point = problem_and_solution()
    T, W = near(point, 0.05, seed=seed)
    relative = np.random.default_rng(seed).uniform(0.2, 5.0, P)
    theta = np.diagonal(T).copy()
    out = np.empty((P, P))
    parts, spread = distance_from_inverse(*sparse_of(T), theta, W, relative, out)
    X = T @ W - np.eye(P)
    assert_allclose(out, X, atol=1e-13)
    scaled = X * np.sqrt(theta / theta[:, None])
    assert_allclose(parts, np.sum(scaled**2, axis=1))
    assert_allclose(spread, np.max(np.abs(scaled) @ relative / relative))
    assert spread >= np.abs(np.linalg.eigvals(X)).max()


@pytest.mark.parametrize("seed", range(10))
def test_bound_with_a_radius(seed):
    """It bounds the sum of l - log(1 + l) over eigenvalues up to the radius."""
    values = np.random.default_rng(seed).uniform(-0.4, 0.4, 7)
    gap = np.sum(values - np.log1p(values))
    radius, root = np.abs(values).max(), np.linalg.norm(values)
    assert gap <= bound(root, radius) <= bound(root)
    assert_allclose(bound(root, np.inf), bound(root))
    equal = np.full(7, -radius)
    assert_allclose(
        bound(np.linalg.norm(equal), radius), np.sum(equal - np.log1p(equal)), rtol=1e-12
    )
    assert bound(0.0, 0.0) == 0.0
    assert bound(3.0, 1.0) == np.inf
    assert bound(3.0, 0.5) < np.inf
