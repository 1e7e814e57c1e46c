"""The pieces of Newton's method against dense algebra: systems written out entry by entry."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision import newton as module
from mnpca.precision.newton import (
    QUICK,
    THOROUGH,
    Effort,
    NewtonPoint,
    _direction,
    _inflation,
    _n_stages,
    _search,
    _Smooth,
    _step,
    newton,
    newton_along_path,
    with_diagonal,
)
from mnpca.precision.problem import Problem, make_problem

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


def definite(p, seed, density=1.0):
    rng = np.random.default_rng(seed)
    kept = np.triu(rng.random((p, p)) < density, 1)
    T = np.where(kept | kept.T, 0.3 * rng.standard_normal((p, p)), 0.0)
    T = (T + T.T) / 2
    return T + np.diag(np.abs(T).sum(axis=0) + rng.uniform(0.5, 2.0, p))


def test_the_problem_as_matrices():
    S = factor_covariance(4, 20, seed=60)
    alpha = np.arange(16.0).reshape(4, 4) + np.arange(16.0).reshape(4, 4).T
    for penalty in (alpha, 0.3):
        smooth = _Smooth.of(make_problem(S, penalty, True)[0])
        expected = np.broadcast_to(penalty, (4, 4)).copy()
        assert_allclose(smooth.linear, S + np.diag(np.diagonal(expected)), rtol=1e-13)
        np.fill_diagonal(expected, 0.0)
        assert_allclose(smooth.penalty, expected, atol=1e-15)
        T = definite(4, seed=61)
        value, factor = smooth.at(T)
        assert_allclose(value, objective(S, np.broadcast_to(penalty, (4, 4)), T))
        assert_allclose(np.tril(factor) @ np.tril(factor).T, T)
    assert smooth.at(-T) == (np.inf, None)


def test_another_diagonal():
    assert_array_equal(with_diagonal(np.ones((2, 2)), np.array([3.0, 5.0])), [[3, 1], [1, 5]])


def dual_points(S, alpha, T, W):
    """The two feasible points, entry by entry."""
    p = len(S)
    clipped, on_support = np.diag(np.diagonal(S)), np.diag(np.diagonal(S))
    for i in range(p):
        for j in range(p):
            if i != j:
                near = W[i, j] * np.sqrt(S[i, i] / W[i, i]) * np.sqrt(S[j, j] / W[j, j])
                clipped[i, j] = np.clip(near, S[i, j] - alpha, S[i, j] + alpha)
                edge = S[i, j] + alpha * np.sign(T[i, j])
                on_support[i, j] = edge if T[i, j] != 0 else clipped[i, j]
    return on_support, clipped


def value_or_nothing(W):
    return np.linalg.slogdet(W)[1] + len(W) if np.linalg.eigvalsh(W)[0] > 0 else -np.inf


def test_dual_points_near_the_inverse():
    """The second point is tried where the first is worth too little or is not definite."""
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        S = factor_covariance(5, 8, seed=seed)
        alpha = rng.choice([0.05, 0.3])
        T = definite(5, seed, density=0.5)
        W = np.linalg.inv(definite(5, seed + 1000))
        smooth = _Smooth.of(make_problem(S, alpha, False)[0])
        first, second = map(value_or_nothing, dual_points(S, alpha, T, W))
        assert_allclose(smooth.dual(T, W, np.inf), max(first, second))
        if first > -np.inf:
            assert_allclose(smooth.dual(T, W, first - 1e-9), first)
            assert_allclose(smooth.dual(T, W, first + 1e-9), max(first, second))
        seen.add((first == -np.inf, second == -np.inf, first < second))
    assert {(True, False, True), (False, False, True), (False, False, False)} <= seen


def test_stages_of_a_path():
    S = np.array([[5.0, 0.8, 0.1], [0.8, 7.0, -0.1], [0.1, -0.1, 9.0]])
    for alpha, ratio, expected in (
        (0.1, 2.0, 3),
        (0.099, 2.0, 4),
        (0.101, 2.0, 3),
        (0.1, 8.01, 1),
        (0.8, 2.0, 1),
        (0.8, 1.1, 1),
        (2.0, 2.0, 1),
    ):
        assert _n_stages(make_problem(S, alpha, True)[0], ratio) == expected
    # Entries without a penalty have none to come down from.
    alpha = np.array([[0.0, 0.0, 0.05], [0.0, 0.0, 0.05], [0.05, 0.05, 0.0]])
    assert _n_stages(make_problem(S, alpha, False)[0], 2.0) == 1
    assert _n_stages(make_problem(S, alpha / 2, False)[0], 2.0) == 2


def test_inflation_is_the_largest_ratio_of_variances():
    T = np.array([[3.0, 9.0], [9.0, 2.0]])
    assert _inflation(T, np.array([2.0, 5.0])) == 10.0


def test_a_path_comes_down_to_the_problem(monkeypatch):
    S = factor_covariance(6, 20, seed=62)
    problem, _ = make_problem(S, 0.05, False)
    calls = []

    def solve(problem, T, goal, max_iter=None, effort=None):
        calls.append((problem, T, goal, max_iter, effort))
        return NewtonPoint(T + 1, None, 0.0, 0.0, len(calls))

    monkeypatch.setattr(module, "newton", solve)
    effort = Effort(accuracy=0.1, solves=1, by_precision=False, stage_ratio=1.5)
    last = newton_along_path(problem, 1e-7, effort)
    ratios = [call[0].alpha[0, 0] / 0.05 for call in calls]
    assert_allclose(ratios, 1.5 ** np.arange(len(calls) - 1.0, -1, -1))
    off = np.abs(S - np.diag(np.diagonal(S))).max()
    assert 0.05 * ratios[0] >= off > 0.05 * ratios[1]
    # Each starts where the one before it ended, the first at the diagonal.
    for k, call in enumerate(calls):
        assert_allclose(call[1], np.diag(1 / np.diagonal(S)) + k)
        assert call[4] is effort
    assert all(call[2:4] == (0.06, module.MAX_STAGE_ITERATIONS) for call in calls[:-1])
    assert calls[-1][0] is problem
    assert calls[-1][2] == 1e-7
    assert last.n_iter == len(calls)


def conjugate_gradients(T, W, slope, free, by_precision, n_steps):
    """Textbook preconditioned conjugate gradients on the free entries; powers too."""
    at = np.flatnonzero(free)
    H = np.kron(W, W)[np.ix_(at, at)]
    variance = np.diagonal(W)
    M = (
        np.kron(T, T)[np.ix_(at, at)]
        if by_precision
        else np.diag(1 / (np.outer(variance, variance) + W * W).ravel()[at])
    )
    x, r = np.zeros(len(at)), -slope.ravel()[at]
    z = M @ r
    d, powers = z, [r @ z]
    for _ in range(n_steps):
        length = powers[-1] / (d @ H @ d)
        x, r = x + length * d, r - length * (H @ d)
        z = M @ r
        powers.append(r @ z)
        d = z + powers[-1] / powers[-2] * d
    full = np.zeros(T.size)
    full[at] = x
    return full.reshape(T.shape), np.array(powers)


def equation(seed, p=5):
    rng = np.random.default_rng(seed)
    T = definite(p, seed)
    W = np.linalg.inv(definite(p, seed + 500))
    free = np.triu(rng.random((p, p)) < 0.6)
    free = free | free.T
    slope = rng.standard_normal((p, p))
    return T, W, np.where(free, slope + slope.T, 0.0), free


@pytest.mark.parametrize("by_precision", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_newton_equation_is_solved_on_the_free_entries(monkeypatch, by_precision, seed):
    T, W, slope, free = equation(seed)
    at = np.flatnonzero(free)
    expected = np.zeros(T.size)
    expected[at] = np.linalg.solve(np.kron(W, W)[np.ix_(at, at)], -slope.ravel()[at])
    found = _direction(T, W, slope, free, Effort(1e-12, 1, by_precision))
    assert_allclose(found.ravel(), expected, atol=1e-8 * np.abs(expected).max())
    assert not _direction(T, W, slope, free, Effort(1.0, 1, by_precision)).any()
    assert not _direction(T, W, 0 * slope, free, Effort(0.0, 1, by_precision)).any()
    monkeypatch.setattr(module, "MAX_CONJUGATE_STEPS", 2)
    expected, _ = conjugate_gradients(T, W, slope, free, by_precision, 2)
    found = _direction(T, W, slope, free, Effort(1e-12, 1, by_precision))
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("by_precision", [False, True])
def test_newton_equation_is_solved_as_well_as_asked(by_precision):
    T, W, slope, free = equation(7)
    _, powers = conjugate_gradients(T, W, slope, free, by_precision, 8)
    for accuracy in (0.5, 0.1, 0.01):
        n_steps = int(np.argmax(powers <= accuracy**2 * powers[0]))
        assert n_steps > 0
        expected, _ = conjugate_gradients(T, W, slope, free, by_precision, n_steps)
        found = _direction(T, W, slope, free, Effort(accuracy, 1, by_precision))
        assert_allclose(found, expected, rtol=1e-7, atol=1e-10)


class Parabola:
    """An objective of one number, not defined below zero."""

    def at(self, x):
        return ((x - 1.0) ** 2, x) if x >= 0 else (np.inf, None)


def test_line_search_takes_the_first_step_that_gains():
    tried = []

    def trial(size):
        tried.append(size)
        return 3.0 - 8.0 * size

    assert _search(Parabola(), 4.0, trial, lambda x: 0.0) == (1.0, 0.0, 1.0)
    assert tried == [1.0, 0.5, 0.25]
    # A step must gain more than expected of it.
    assert _search(Parabola(), 4.0, trial, lambda x: -4.0) is None
    assert _search(Parabola(), 4.0, trial, lambda x: -3.9)[1] == 0.0
    tried.clear()
    assert _search(Parabola(), 0.0, trial, lambda x: 0.0) is None
    assert tried == [0.5**k for k in range(27)]


def reference_direction(W, gradient, penalty, T, solves):
    """Newton's direction with dense algebra, entries on the wrong side left out."""
    free = (T != 0) | (np.abs(gradient) > penalty)
    orthant = np.where(T != 0, np.sign(T), -np.sign(gradient))
    direction = np.zeros(T.size)
    for _ in range(solves):
        slope = np.where(free, gradient + penalty * orthant, 0.0)
        at = np.flatnonzero(free)
        direction = np.zeros(T.size)
        direction[at] = np.linalg.solve(np.kron(W, W)[np.ix_(at, at)], -slope.ravel()[at])
        wrong = free & (T == 0) & (penalty > 0) & (direction.reshape(T.shape) * orthant < 0)
        if not wrong.any():
            break
        free = free & ~wrong
        slope = np.where(free, slope, 0.0)
    return direction.reshape(T.shape), slope, orthant


@pytest.mark.parametrize("solves", [1, 2, 5])
def test_a_step_offers_a_newton_and_then_a_proximal_direction(monkeypatch, solves):
    offered = []
    monkeypatch.setattr(module, "_search", lambda *args: offered.append(args[1:]))
    again = 0
    for seed in range(12):
        S = factor_covariance(6, 8, seed=seed)
        alpha = np.full((6, 6), 0.2)
        alpha[0, 1] = alpha[1, 0] = 0.0
        smooth = _Smooth.of(make_problem(S, alpha, False)[0])
        T = definite(6, seed, density=0.4)
        T[0, 1] = T[1, 0] = 0.0
        W = np.linalg.inv(T)
        gradient, penalty = S - W, penalty_matrix(alpha, 6, False)
        direction, slope, orthant = reference_direction(W, gradient, penalty, T, solves)
        first, _, _ = reference_direction(W, gradient, penalty, T, 1)
        again += not np.allclose(first, direction)
        offered.clear()
        assert _step(smooth, T, W, 7.0, Effort(1e-13, solves, True)) is None
        (value, trial, expected), (same, proximal, nothing) = offered
        assert value == same == 7.0
        for size in (1.0, 0.25):
            there = T + size * direction
            there[(there * orthant < 0) & (penalty > 0)] = 0.0
            assert_allclose(trial(size), there, atol=1e-7)
            assert_allclose(expected(there), 1e-4 * np.sum(slope * (there - T)))
            d = np.diagonal(W)
            curvature = np.outer(d, d) + W * W
            there = T - size * gradient / curvature
            there = np.sign(there) * np.maximum(np.abs(there) - size * penalty / curvature, 0.0)
            assert_allclose(proximal(size), there, atol=1e-12)
        assert nothing(T) == 0.0
    assert (again > 0) == (solves > 1)


def test_a_step_is_the_newton_one_where_it_gains():
    S = factor_covariance(6, 30, seed=63)
    smooth = _Smooth.of(make_problem(S, 0.1, False)[0])
    T = np.diag(1 / np.diagonal(S))
    before, _ = smooth.at(T)
    moved, value, factor = _step(smooth, T, np.linalg.inv(T), before, THOROUGH)
    assert value < before
    assert_allclose(value, smooth.at(moved)[0])
    assert_allclose(np.tril(factor) @ np.tril(factor).T, moved, atol=1e-12)


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
def test_iterations_fall_and_their_gaps_are_honest(make):
    S = make(12, 10, seed=64)
    problem, _ = make_problem(S, 0.15, False)
    T = np.diag(1 / np.diagonal(S))
    best = newton(problem, T, 1e-10).value
    points = [newton(problem, T, 1e-10, max_iter=k) for k in range(1, 9)]
    values = np.array([point.value for point in points])
    assert np.all(np.diff(values) <= 0)
    assert values[-1] < values[0]
    for k, point in enumerate(points, 1):
        assert point.n_iter <= k
        assert_allclose(point.value, objective(S, penalty_matrix(0.15, 12, False), point.T))
        assert_allclose(point.W @ point.T, np.eye(12), atol=1e-9)
        assert point.gap >= point.value - best - 1e-9
    # The best dual objective is kept, so the gap falls at least as the objective does.
    gaps = np.array([point.gap for point in points])
    assert np.all(np.diff(gaps) <= np.diff(values) + 1e-12)


def test_a_dual_point_is_looked_for_until_the_goal_is_met(monkeypatch):
    asked = []
    monkeypatch.setattr(
        module._Smooth, "dual", lambda self, T, W, enough: asked.append(enough) or -np.inf
    )
    problem, _ = make_problem(factor_covariance(5, 20, seed=65), 0.1, False)
    point = newton(problem, np.diag(1 / problem.diagonal), 0.25, max_iter=1)
    assert asked == [point.value - 0.25]


def test_newton_ends_where_nothing_is_gained_or_rounding_rules(monkeypatch):
    problem, _ = make_problem(factor_covariance(5, 20, seed=65), 0.1, False)
    start = np.diag(1 / problem.diagonal)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_step", lambda *args: None)
        assert newton(problem, start, 1e-12).n_iter == 1
    with monkeypatch.context() as patched:
        patched.setattr(module, "MAX_INFLATION", 0.9)
        assert newton(problem, start, 1e-12).n_iter == 1
        patched.setattr(module, "MAX_INFLATION", 1.0)
        assert newton(problem, start, 1e-12).n_iter > 1
    # A goal that is met exactly is met.
    point = newton(problem, start, 1e-12, max_iter=3, effort=QUICK)
    assert newton(problem, start, point.gap, effort=QUICK).n_iter <= 3


def test_an_unbounded_problem_ends_before_numbers_do():
    S = np.ones((2, 2))
    problem = Problem(S, np.zeros((1, 2)), np.ones(2))
    point = newton(problem, np.eye(2), 1e-6)
    assert point.gap > 1e-6
    assert np.all(np.isfinite(point.T))
