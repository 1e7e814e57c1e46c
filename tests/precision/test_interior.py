"""The interior-point method, and the ill-conditioned problems it is for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import interior
from mnpca.precision.interior import solve_by_interior_point, suits
from mnpca.precision.problem import make_problem

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
@pytest.mark.parametrize("diagonal", [False, True])
def test_agrees_with_block_descent(make, diagonal):
    S = make(20, 30, seed=40)
    problem, _ = make_problem(S, 0.2, diagonal)
    point = solve_by_interior_point(problem, 1e-7)
    expected = sparse_precision(S, 0.2, penalize_diagonal=diagonal, tol=1e-10)
    assert 0 <= point.gap <= 1e-7
    assert_allclose(point.value, objective(S, penalty_matrix(0.2, 20, diagonal), point.T))
    assert_allclose(point.value, expected.objective, atol=2e-7)
    assert_allclose(point.T, expected.precision.toarray(), atol=1e-3)
    # Entries of W well inside their bounds give exact zeros.
    assert np.count_nonzero(point.T) < 400


def test_zero_penalties_are_equations():
    S = chain_covariance(10, 200, seed=41)
    alpha = np.full((10, 10), 0.1)
    alpha[0, :3] = alpha[:3, 0] = 0.0
    point = solve_by_interior_point(make_problem(S, alpha, False)[0], 1e-8)
    expected = sparse_precision(S, alpha, tol=1e-11)
    assert_allclose(point.T, expected.precision.toarray(), atol=1e-3)
    assert_allclose(point.W[0, :3], S[0, :3])


def test_a_singular_covariance_without_penalty_has_no_first_point():
    alpha = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.1], [0.1, 0.1, 0.0]])
    problem, _ = make_problem(np.ones((3, 3)), alpha, False)
    assert solve_by_interior_point(problem, 1e-6) is None


@pytest.mark.parametrize("seed", [3, 29, 32])
@pytest.mark.parametrize("exponent", [-6, -5, -4])
def test_few_samples_and_a_tiny_penalty(seed, exponent):
    """Problems on which sweeps and Newton's method on the precision both break down."""
    rng = np.random.default_rng(seed)
    p, n = rng.integers(2, 13), rng.integers(1, 25)
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    X[:, -1] = X[:, 0]
    S = X.T @ X / n
    result = sparse_precision(S, 10.0**exponent * np.diagonal(S).mean())
    assert result.duality_gap <= 1e-4 * p
    assert np.linalg.eigvalsh(result.precision.toarray()).min() > 0


def test_units_over_many_decades():
    rng = np.random.default_rng(42)
    X = rng.standard_normal((15, 30)) * 10.0 ** rng.uniform(-4, 4, 30)
    S = X.T @ X / 15
    assert suits(make_problem(S, 1.0, False)[0])
    for share in (1e-1, 1e-3):
        result = sparse_precision(S, share * np.median(np.diagonal(S)))
        assert result.duality_gap <= 1e-4 * 30


# ---- its pieces, on a matrix of four variables -------------------------------------------------


def feasible(seed, p=4):
    """A correlation matrix, penalties and a definite point within them."""
    rng = np.random.default_rng(seed)
    S = chain_covariance(p, 30, seed=seed)
    alpha = rng.uniform(0.05, 0.3, (p, p))
    alpha = (alpha + alpha.T) / 2
    inside = rng.uniform(-0.9, 0.9, (p, p))
    W = S + alpha * np.triu(inside, 1) + alpha * np.triu(inside, 1).T
    assert np.linalg.eigvalsh(W)[0] > 0
    return S, alpha, W


def barrier_value(S, alpha, W, rows, columns, barrier):
    bound, inside = alpha[rows, columns], (W - S)[rows, columns]
    walls = np.sum(np.log((bound**2 - inside**2) / bound**2))
    sign, logdet = np.linalg.slogdet(W)
    return logdet + barrier * walls if sign > 0 else -np.inf


def pairs_of(S, alpha):
    rows, columns = np.triu_indices(len(S), 1)
    return interior._Pairs(S, rows, columns, alpha[rows, columns])


def step_from(S, alpha, W, T, barrier):
    """A step's length and the next point."""
    pairs = pairs_of(S, alpha)
    inside = (W - S)[pairs.rows, pairs.columns]
    n = len(inside)
    size, moved = interior._newton_step(pairs, inside, T, barrier, np.zeros((n, n)))
    return size, None if moved is None else pairs.point(moved)


def direction_by_differences(S, alpha, W, barrier, h=1e-5):
    """Gradient of the barrier function, and the direction of a primal-dual step."""
    rows, columns = np.triu_indices(len(S), 1)
    n = len(rows)

    def logdet(change):
        moved = W.copy()
        moved[rows, columns] += change
        moved[columns, rows] += change
        return np.linalg.slogdet(moved)[1]

    unit = h * np.eye(n)
    pull = np.array([logdet(e) - logdet(-e) for e in unit]) / (2 * h)
    hessian = np.array(
        [
            [logdet(a + b) - logdet(a - b) - logdet(b - a) + logdet(-a - b) for b in unit]
            for a in unit
        ]
    ) / (4 * h**2)
    bound, inside = alpha[rows, columns], (W - S)[rows, columns]
    upper, lower = bound - inside, bound + inside
    # Multipliers whose difference is the pull, the smaller with slackness of the barrier.
    at_upper = np.where(pull > 0, pull + barrier / lower, barrier / upper)
    at_lower = at_upper - pull
    assert_allclose(np.where(pull > 0, at_lower * lower, at_upper * upper), barrier)
    gradient = pull - barrier / upper + barrier / lower
    curvature = np.diag(at_upper / upper + at_lower / lower) - hessian
    return gradient, np.linalg.solve(curvature, gradient)


@pytest.mark.parametrize("barrier", [1.0, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_a_step_goes_up_the_barrier_function(seed, barrier):
    S, alpha, W = feasible(seed)
    rows, columns = np.triu_indices(4, 1)
    gradient, direction = direction_by_differences(S, alpha, W, barrier)
    length, moved = step_from(S, alpha, W, np.linalg.inv(W), barrier)
    change = (moved - W)[rows, columns]
    assert_allclose(moved, moved.T, atol=1e-15)
    assert_allclose(np.diagonal(moved), np.diagonal(W))
    # The longest of the steps within 95% of the room, halved, that gains a part of its promise.
    bound, inside = alpha[rows, columns], (W - S)[rows, columns]
    size = min(1.0, 0.95 * np.min((bound - np.sign(direction) * inside) / np.abs(direction)))
    before = barrier_value(S, alpha, W, rows, columns, barrier)
    while True:
        there = W.copy()
        there[rows, columns] += size * direction
        there[columns, rows] = there[rows, columns]
        gained = barrier_value(S, alpha, there, rows, columns, barrier) - before
        if gained >= 0.01 * size * (gradient @ direction):
            break
        size /= 2
    assert_allclose(length, size, rtol=1e-3)
    assert_allclose(change, size * direction, rtol=1e-2, atol=1e-4)


def test_values_of_the_barrier_function():
    S, alpha, W = feasible(5)
    pairs = pairs_of(S, alpha)
    inside = (W - S)[pairs.rows, pairs.columns]
    assert_allclose(pairs.point(inside), W)
    expected = barrier_value(S, alpha, W, pairs.rows, pairs.columns, 0.3)
    assert_allclose(pairs.value(inside, 0.3), expected)
    at_a_bound = inside.copy()
    at_a_bound[2] = -pairs.bound[2]
    assert pairs.value(at_a_bound, 0.3) == -np.inf


def test_slackness_is_the_gap_by_pairs():
    S, alpha, W = feasible(9)
    pairs = pairs_of(S, alpha)
    T = np.linalg.inv(W)
    inside = (W - S)[pairs.rows, pairs.columns]
    off = ~np.eye(4, dtype=bool)
    gap = objective(S, alpha * off, T) - np.linalg.slogdet(W)[1] - 4
    assert_allclose(interior._slackness(pairs, inside, T), gap / 6)


def test_no_step_from_a_singular_system():
    S, alpha, W = feasible(6)
    assert step_from(S, alpha, W, np.full((4, 4), 1e20), 0.0) == (0.0, None)


def test_the_first_point_is_half_way_to_where_a_bound_ends():
    S = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.0], [0.1, 0.0, 1.0]])
    alpha = np.full((3, 3), 0.2)
    alpha[0, 2] = alpha[2, 0] = 0.01
    # Shares of a quarter of 0.01 / 0.1, 0.2 / 0.8 and 0.01 / 0.1.
    v = 1 - np.array([0.025, 0.0625, 0.025])
    W = S + interior._first_point(S, alpha)
    assert_allclose(W, S * np.where(np.eye(3), 1.0, np.outer(v, v)))
    assert np.all(np.abs(W - S) <= alpha / 2)
    # Beyond the diagonal there is nothing to gain.
    W = S + interior._first_point(S, 100 * alpha)
    assert_allclose(W, S * np.where(np.eye(3), 1.0, 0.75**2))
    assert_allclose(interior._first_point(np.eye(3), alpha), 0.0)


def test_an_indefinite_covariance_has_no_first_point():
    problem, _ = make_problem(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.1, False)
    assert solve_by_interior_point(problem, 1e-4) is None


@pytest.mark.parametrize("decades", [0, 4])
def test_units_cost_few_steps_more(decades):
    rng = np.random.default_rng(48)
    X = rng.standard_normal((8, 20)) * 10.0 ** rng.uniform(-decades, decades, 20)
    S = X.T @ X / 8
    problem, _ = make_problem(S, 1e-3 * np.median(np.diagonal(S)), False)
    point = solve_by_interior_point(problem, 2e-3)
    assert point.gap <= 2e-3
    assert point.n_iter <= (15 if decades == 0 else 30)


@pytest.mark.parametrize("goal", np.geomspace(1e-3, 10.0, 30))
@pytest.mark.parametrize("seed", [7, 8])
def test_the_sparsest_precision_that_is_good_enough(goal, seed):
    S, alpha, W = feasible(seed)
    # Entries within each of the shares of their bounds.
    for share, at in ((0.995, (0, 1)), (-0.95, (1, 2)), (0.7, (2, 3))):
        W[at] = W[at[::-1]] = S[at] + share * alpha[at]
    assert np.linalg.eigvalsh(W)[0] > 0
    T = np.linalg.inv(W)
    off = ~np.eye(4, dtype=bool)
    dual = np.linalg.slogdet(W)[1] + 4
    expected = None
    for share in (0.99, 0.9, 0.5, 0.0):
        kept = np.where(off & (np.abs(W - S) < share * alpha), 0.0, T)
        if np.linalg.eigvalsh(kept)[0] > 0:
            gap = objective(S, alpha * off, kept) - dual
            if gap <= goal:
                expected = kept, gap
                break
    found = interior._sparsest(S, alpha, W, goal, 17)
    if expected is None:
        assert found is None
    else:
        assert_allclose(found.T, expected[0], atol=1e-12)
        assert_allclose(found.gap, expected[1], atol=1e-12)
        assert_allclose(found.value, objective(S, alpha * off, found.T))
        assert found.n_iter == 17
        assert found.W is W


def test_no_zero_is_forced_on_a_dense_precision():
    """With small penalties only the inverse itself is good enough."""
    S = 0.6 * np.ones((4, 4)) + 0.4 * np.eye(4)
    alpha = np.full((4, 4), 0.01)
    W = S - 0.3 * alpha * ~np.eye(4, dtype=bool)
    found = interior._sparsest(S, alpha, W, 0.2, 1)
    assert_allclose(found.T, np.linalg.inv(W))


def test_pairs_are_counted(monkeypatch):
    problem, _ = make_problem(chain_covariance(5, 30, seed=45), 0.1, False)
    monkeypatch.setattr(interior, "MAX_PAIRS", 10)
    assert suits(problem)
    monkeypatch.setattr(interior, "MAX_PAIRS", 9)
    assert not suits(problem)


def test_few_steps_lead_there_and_a_limit_ends_them(monkeypatch):
    problem, _ = make_problem(factor_covariance(12, 30, seed=46), 0.2, False)
    steps = []
    step = interior._newton_step
    with monkeypatch.context() as patched:
        patched.setattr(interior, "_newton_step", lambda *args: steps.append(1) or step(*args))
        point = solve_by_interior_point(problem, 1e-4)
    assert point.n_iter == len(steps) <= 12
    monkeypatch.setattr(interior, "MAX_STEPS", point.n_iter)
    assert solve_by_interior_point(problem, 1e-4).n_iter == point.n_iter
    monkeypatch.setattr(interior, "MAX_STEPS", point.n_iter - 1)
    assert solve_by_interior_point(problem, 1e-4) is None


def test_a_step_that_fails_ends_the_search(monkeypatch):
    problem, _ = make_problem(factor_covariance(5, 30, seed=47), 0.2, False)
    monkeypatch.setattr(interior, "_newton_step", lambda *args: (0.0, None))
    assert solve_by_interior_point(problem, 1e-4) is None
