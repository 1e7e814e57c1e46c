"""From a covariance to components and back: problem, parts, assembly, starts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca import sparse_precision, sparse_precision_path
from mnpca.precision import path, solve, warm
from mnpca.precision.block_descent import MAX_TOTAL
from mnpca.precision.blocks import Groups
from mnpca.precision.path import Walk
from mnpca.precision.problem import ASYMMETRY, make_problem

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


def blocks(*matrices):
    p = sum(map(len, matrices))
    S, at = np.zeros((p, p)), 0
    for matrix in matrices:
        S[at : at + len(matrix), at : at + len(matrix)] = matrix
        at += len(matrix)
    return S


# Where the variables of two components and one on its own are in a larger matrix.
FIRST, SECOND, ALONE = [0, 1, 4, 6], [2, 5, 7], [3]
ORDER = np.argsort([*FIRST, *SECOND, *ALONE])


def mixed(scale=1.0):
    first, second = factor_covariance(4, 20, seed=90), 2 * factor_covariance(3, 20, seed=91)
    return scale * blocks(first, second, [[0.5]])[np.ix_(ORDER, ORDER)]


# ---- the problem ------------------------------------------------------------------------------


def test_a_part_of_a_problem():
    S = factor_covariance(5, 20, seed=92)
    alpha = 0.1 + np.add.outer(np.arange(5.0), np.arange(5.0))
    index = np.array([1, 4])
    for penalty, expected in ((alpha, alpha[np.ix_(index, index)]), (0.1, [[0.1, 0.1]])):
        problem, _ = make_problem(S, penalty, True)
        assert problem.size == 5
        part = problem.restrict(index)
        assert part.size == 2
        assert_array_equal(part.covariance, S[np.ix_(index, index)])
        assert_array_equal(part.alpha, expected)
        added = np.diagonal(np.broadcast_to(penalty, (5, 5)))
        assert_allclose(part.diagonal, (np.diagonal(S) + added)[index])
        assert problem.restrict(np.arange(5)) is problem


@pytest.mark.parametrize("share", [0.9, 1.3])
@pytest.mark.parametrize("corner", [(0, 1), (1, 0)])
def test_asymmetry_is_measured_in_units_of_the_variables(share, corner):
    S = np.array([[4.0, 1.0], [1.0, 9.0]])
    S[corner] += share * ASYMMETRY * 6.0
    if share < 1:
        problem, _ = make_problem(S, 0.1, False)
        assert_allclose(problem.covariance, (S + S.T) / 2, rtol=1e-15)
    else:
        with pytest.raises(ValueError, match="symmetric"):
            make_problem(S, 0.1, False)


def test_an_even_covariance_is_not_copied():
    S = factor_covariance(5, 20, seed=93)
    S = (S + S.T) / 2
    problem, _ = make_problem(S, 0.1, True)
    assert problem.covariance is S
    assert_allclose(problem.diagonal, np.diagonal(S) + 0.1)
    assert not np.shares_memory(problem.diagonal, S)


@pytest.mark.parametrize(
    ("S", "alpha", "tol", "message"),
    [
        (np.diag([1.0, -2.0]), 0.1, 1e-4, "negative diagonal entry, at 1"),
        (np.diag([1.0, 0.0]), 0.1, 1e-4, "zero variance at 1"),
        (np.ones(3), 0.1, 1e-4, r"square covariance matrix, got shape \(3,\)"),
        (np.ones((2, 3)), 0.1, 1e-4, r"got shape \(2, 3\)"),
        (np.ones((1, 1, 1)), 0.1, 1e-4, r"got shape \(1, 1, 1\)"),
        (np.eye(2), np.ones((1, 2)), 1e-4, r"S's shape \(2, 2\), got \(1, 2\)"),
        (np.eye(2), np.diag([np.inf, 1.0]), 1e-4, "alpha must be finite"),
        (np.eye(2), -np.eye(2), 1e-4, "not negative"),
        (np.diag([1.0, 1e-310]), 0.1, 1e-4, "zero variance at 1"),
        (np.eye(2) * 1j, 0.1, 1e-4, "it is complex or masked"),
        (np.ma.array(np.eye(2), mask=np.eye(2)), 0.1, 1e-4, "it is complex or masked"),
        (np.eye(2), 0.1, np.inf, "tol must be a positive number"),
        (np.eye(2), 0.1, np.nan, "tol must be a positive number"),
        (np.eye(2), 0.1, [1e-4], "tol must be a positive number"),
    ],
)
def test_bad_input_is_named(S, alpha, tol, message):
    with pytest.raises(ValueError, match=message):
        sparse_precision(S, alpha, tol=tol)


@pytest.mark.parametrize("penalty", [0.0, 0.1])
def test_penalties_of_zero_are_penalties(penalty):
    problem, labels = make_problem(np.eye(3), np.full((3, 3), penalty), True)
    assert_array_equal(labels, [0, 1, 2])
    assert_allclose(problem.diagonal, 1 + penalty)


# ---- assembly ---------------------------------------------------------------------------------


def test_groups_are_the_components_of_two_variables_or_more():
    labels = np.array([0, 1, 0, 2, 3, 1, 3, 3])
    groups = Groups.of(labels)
    assert [component.variables.tolist() for component in groups] == [
        [0, 2],
        [1, 5],
        [4, 6, 7],
    ]
    assert groups.number.tolist() == [0, 1, 0, -1, 2, 1, 2, 2]
    assert groups.place[groups.number >= 0].tolist() == [0, 0, 1, 0, 1, 1, 2]
    assert Groups.of(np.arange(4)).count == 0


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_result_is_put_together_from_its_components(diagonal):
    S = mixed()
    options = {"penalize_diagonal": diagonal, "tol": 1e-6}
    result = sparse_precision(S, 0.05, **options)
    assert [part.tolist() for part in result.components] == [FIRST, SECOND, ALONE]
    parts = [
        sparse_precision(S[np.ix_(index, index)], 0.05, **options) for index in result.components
    ]
    T = result.precision.toarray()
    for index, part in zip(result.components, parts, strict=True):
        assert_allclose(T[np.ix_(index, index)], part.precision.toarray(), rtol=1e-12)
        T[np.ix_(index, index)] = 0.0
    assert not T.any()
    assert_allclose(result.objective, sum(part.objective for part in parts))
    assert_allclose(result.duality_gap, sum(part.duality_gap for part in parts))
    assert result.n_iter == max(part.n_iter for part in parts)
    T = result.precision.toarray()
    assert_allclose(result.objective, objective(S, penalty_matrix(0.05, 8, diagonal), T))
    assert_allclose(result._cost - np.linalg.slogdet(T)[1], result.objective)
    assert result.precision.has_sorted_indices
    assert result.precision.nnz == np.count_nonzero(T)
    assert len(result._blocks) == 2


def test_variables_that_all_stand_alone():
    result = sparse_precision(np.diag([1.0, 2.0, 4.0]), 0.1)
    assert_allclose(result.precision.toarray(), np.diag([1, 0.5, 0.25]))
    assert_allclose(result.objective, np.log(8) + 3)
    assert (result.duality_gap, result.n_iter) == (0, 0)
    assert sparse_precision(mixed(), 100.0).n_iter == 0


@pytest.mark.parametrize("large", [3, 4, 5])
def test_large_components_get_threads(monkeypatch, large):
    """Two components of three and four variables, two threads at most."""
    pools = []

    class Pool(solve.ThreadPoolExecutor):
        def __init__(self, n_threads):
            pools.append(n_threads)
            super().__init__(n_threads)

    monkeypatch.setattr(solve, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(solve, "LARGE", large)
    monkeypatch.setattr(solve.numba.config, "NUMBA_NUM_THREADS", 2)
    found = sparse_precision(mixed(), 0.05)
    assert pools == ([2] if large == 3 else [])
    monkeypatch.setattr(solve, "LARGE", 1000)
    alone = sparse_precision(mixed(), 0.05)
    assert_array_equal(found.precision.toarray(), alone.precision.toarray())


def test_sweeps_are_limited_in_every_component(monkeypatch):
    limits = []
    whole = solve.solve_component
    monkeypatch.setattr(
        solve, "solve_component", lambda *args: limits.append(args[2]) or whole(*args)
    )
    first = sparse_precision(mixed(), 0.05, max_iter=17)
    sparse_precision(mixed(), 0.05, max_iter=18, init=first)
    sparse_precision(mixed(), 0.05)
    assert limits == [17, 17, 18, 18, MAX_TOTAL, MAX_TOTAL]


# ---- starts from earlier results --------------------------------------------------------------


def scaled(T, W, scale):
    return T / np.outer(scale, scale), W * np.outer(scale, scale)


def component_of(index, p=8):
    """A component of the variables in index, among p."""
    labels = np.arange(1, p + 1)
    labels[index] = 0
    return Groups.of(labels)[0]


def working_covariance(result):
    """W of all variables: that of each component, variances of the others."""
    W = np.diag(1 / result.precision.diagonal())
    for block in result._blocks:
        W[np.ix_(block.index, block.index)] = block.working_covariance
    return W


@pytest.mark.parametrize("index", [FIRST, [0, 3, 4], [2, 5], list(range(8))])
def test_an_earlier_result_in_the_units_of_the_problem(index):
    result = sparse_precision(mixed(), 0.05)
    index = np.array(index)
    T = result.precision.toarray()[np.ix_(index, index)]
    W = working_covariance(result)[np.ix_(index, index)]
    kept = [block.working_covariance.copy() for block in result._blocks]
    diagonal = np.diagonal(W) * np.array([1.0, 4.0, 9.0, 0.25, 1.0, 2.0, 3.0, 1.0])[: len(index)]
    T, W = scaled(T, W, np.sqrt(diagonal / np.diagonal(W)))
    iterate = warm.recall(result, component_of(index), diagonal)
    assert_allclose(iterate.W, W)
    assert_allclose(iterate.theta, np.diagonal(T))
    expected = -T / np.diagonal(T)[:, None]
    np.fill_diagonal(expected, 0.0)
    assert_allclose(iterate.B, expected)
    # What is returned may be changed; the result may not.
    iterate.W[:] = np.nan
    for block, before in zip(result._blocks, kept, strict=True):
        assert_array_equal(block.working_covariance, before)


def test_a_start_on_the_line_through_two_results():
    """W and the regressions go on by t; entries neither appear nor change sign."""
    S, index = factor_covariance(6, 30, seed=94), np.arange(6)
    before, last = (sparse_precision(S, alpha, tol=1e-8) for alpha in (0.09, 0.07))
    assert len(before.components) == len(last.components) == 1
    kept = last._blocks[0].working_covariance.copy()
    t, alpha = 1.5, 0.04
    problem, _ = make_problem(S, alpha, False)
    iterate = warm.line(last, before, t, component_of(index, 6), problem)
    (T0, W0), (T1, W1) = (
        (r.precision.toarray(), r._blocks[0].working_covariance) for r in (before, last)
    )
    B0, B1 = (-T / np.diagonal(T)[:, None] for T in (T0, T1))
    ahead = np.where(B0 != 0, B1 + t * (B1 - B0), B1)
    B = np.where(ahead * B1 > 0, ahead, 0.0)
    np.fill_diagonal(B, 0.0)
    assert_allclose(iterate.B, B, atol=1e-14)
    theta = np.diagonal(T1) * (np.diagonal(T1) / np.diagonal(T0)) ** t
    assert_allclose(iterate.theta, theta)
    both = (B != 0) & (B.T != 0)
    W = np.clip(W1 + t * (W1 - W0), S - alpha, S + alpha)
    W = np.where(both, S - alpha * np.sign(B), W)
    np.fill_diagonal(W, np.diagonal(S))
    assert_allclose(iterate.W, W, atol=1e-12)
    assert_array_equal(last._blocks[0].working_covariance, kept)


# ---- paths ------------------------------------------------------------------------------------


def starts_of(monkeypatch, walk, alphas):
    """Walk, and return the start each penalty was given."""
    given = []
    whole = path.solve_problem
    monkeypatch.setattr(path, "solve_problem", lambda *args: given.append(args[3]) or whole(*args))
    return given, [walk.step(alpha) for alpha in alphas]


def test_a_walk_starts_on_the_line_through_the_two_results_before(monkeypatch):
    S = factor_covariance(6, 30, seed=95)
    given, results = starts_of(monkeypatch, Walk(S, False, 1e-6), [0.5, 0.4, 0.25, 0.25, 0.2])
    assert given[0] is None
    assert given[1].func is warm.restart
    assert given[1].args == (results[0],)
    assert given[2].func is warm.go_on
    assert given[2].args == (results[1], results[0], pytest.approx(1.5))
    assert given[3].args == (results[2], results[1], pytest.approx(0.0))
    # No line goes through two results for one penalty.
    assert given[4].func is warm.restart
    assert given[4].args == (results[3],)


def test_a_walk_from_a_result_whose_penalty_is_not_known(monkeypatch):
    S = factor_covariance(6, 30, seed=95)
    first = sparse_precision(S, 0.6)
    given, results = starts_of(monkeypatch, Walk(S, False, 1e-6, first), [0.5, 0.4, 0.3])
    assert given[0].args == (first,)
    assert given[1].func is warm.restart
    assert given[1].args == (results[0],)
    assert given[2].func is warm.go_on


@pytest.mark.parametrize("diagonal", [False, True])
def test_components_are_looked_for_until_there_is_one(monkeypatch, diagonal):
    S = factor_covariance(6, 30, seed=95)
    looked = []
    whole = path.make_problem
    monkeypatch.setattr(path, "make_problem", lambda *args: looked.append(args[1]) or whole(*args))
    alphas = [5.0, 0.3, 0.2, 0.1, 0.2, 0.0]
    walk = Walk(S, diagonal, 1e-9)
    for alpha in alphas:
        result = walk.step(alpha)
        single = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-9)
        assert_allclose(result.objective, single.objective, atol=1e-7)
        assert_array_equal(result.labels, single.labels)
    # One component stays one for a smaller penalty, not for a larger one.
    assert looked == [5.0, 0.3, 0.2, 0.2]
    with pytest.raises(ValueError, match="not negative"):
        walk.step(-0.1)


def test_a_path_goes_from_large_penalties_to_small_ones(monkeypatch):
    asked = []
    step = Walk.step
    monkeypatch.setattr(Walk, "step", lambda self, alpha: asked.append(alpha) or step(self, alpha))
    sparse_precision_path(factor_covariance(6, 30, seed=96), [0.2, 0.4, 0.1, 0.3])
    assert asked == [0.4, 0.3, 0.2, 0.1]


def test_a_path_may_start_from_a_result_and_checks_it():
    S = factor_covariance(6, 30, seed=96)
    solved = sparse_precision(S, 0.4)
    assert sparse_precision_path(S, [0.4], init=solved)[0].n_iter == 0
    assert all(r.duality_gap <= 6e-4 for r in sparse_precision_path(S, [0.4, 0.05, 0.01]))
    with pytest.raises(ValueError, match="init is for 6 variables, S has 5"):
        sparse_precision_path(S[:5, :5], [0.4], init=solved)
    with pytest.raises(ValueError, match="tol must be"):
        sparse_precision_path(S, [0.4], tol=0)
    penalized = sparse_precision_path(S, [0.4], penalize_diagonal=True)[0]
    single = sparse_precision(S, 0.4, penalize_diagonal=True)
    assert_allclose(penalized.precision.toarray(), single.precision.toarray())


def test_a_path_elsewhere_starts_each_from_the_one_before():
    strict = pytest.importorskip("array_api_strict")
    S = chain_covariance(5, 30, seed=97)
    found = sparse_precision_path(strict.asarray(S), [0.1, 0.3], penalize_diagonal=True, tol=1e-8)
    for alpha, result in zip([0.1, 0.3], found, strict=True):
        expected = sparse_precision(S, alpha, penalize_diagonal=True, tol=1e-8)
        assert_allclose(result.objective, expected.objective, atol=1e-6)


def test_a_walk_limits_sweeps(monkeypatch):
    limits = []
    whole = path.solve_problem
    monkeypatch.setattr(path, "solve_problem", lambda *a: limits.append(a[2:]) or whole(*a))
    Walk(mixed(), False, 1e-3, max_iter=9).step(0.1)
    assert limits == [(1e-3, None, 9)]
