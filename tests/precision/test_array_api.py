"""The parts of the solver for covariances in other memory, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca import sparse_precision
from mnpca.engines.arrays import to_numpy
from mnpca.precision import array_api
from mnpca.precision.newton import QUICK, STEADY, THOROUGH, NewtonPoint
from mnpca.precision.problem import ASYMMETRY, NotCertifiedError

from .reference import factor_covariance, objective, penalty_matrix


@pytest.fixture(params=["torch", "array_api_strict"])
def put(request):
    """Takes a NumPy array to another library."""
    library = pytest.importorskip(request.param)
    return lambda array: library.asarray(np.array(array))


@pytest.fixture
def strict():
    library = pytest.importorskip("array_api_strict")
    return lambda array: library.asarray(np.array(array))


def blocks(*matrices):
    p = sum(map(len, matrices))
    S, at = np.zeros((p, p)), 0
    for matrix in matrices:
        S[at : at + len(matrix), at : at + len(matrix)] = matrix
        at += len(matrix)
    return S


def test_sweeps_of_small_components_are_limited(strict, monkeypatch):
    S = factor_covariance(12, 20, seed=52)
    asked = []
    solve = array_api.sparse_precision
    monkeypatch.setattr(
        array_api, "sparse_precision", lambda *a, **k: asked.append(k["max_iter"]) or solve(*a, **k)
    )
    limited = sparse_precision(strict(S), 0.05, tol=1e-8, max_iter=1)
    assert asked == [1]
    assert limited.n_iter != sparse_precision(strict(S), 0.05, tol=1e-8).n_iter
    assert limited.duality_gap <= 1e-8 * 12


def test_values_gaps_and_iterations_add_up_over_components(strict, monkeypatch):
    """Two components by Newton's method, one on the processor, two variables alone."""
    monkeypatch.setattr(array_api, "SMALL", 3)
    one, two = factor_covariance(8, 30, seed=50), 4 * factor_covariance(6, 20, seed=51)
    three, alone = np.array([[2.0, 1.0], [1.0, 3.0]]), [[0.25]]
    S = blocks(one, alone, two, three, alone)
    parts = [sparse_precision(strict(m), 0.1, tol=1e-5) for m in (one, two, three)]
    assert [len(part.components) for part in parts] == [1, 1, 1]
    found = sparse_precision(strict(S), 0.1, tol=1e-5)
    assert found.objective == pytest.approx(
        sum(part.objective for part in parts) + 2 * (np.log(0.25) + 1)
    )
    assert found.duality_gap == pytest.approx(sum(part.duality_gap for part in parts))
    assert found.n_iter == max(part.n_iter for part in parts)
    assert len({part.n_iter for part in parts}) == 3
    inverse = [[4.0]]
    expected = [to_numpy(part.precision) for part in parts]
    assert_allclose(
        to_numpy(found.precision),
        blocks(expected[0], inverse, expected[1], expected[2], inverse),
        atol=1e-12,
    )
    T = to_numpy(found.precision)
    assert_allclose(found.objective, objective(S, penalty_matrix(0.1, len(S), False), T))


@pytest.mark.parametrize("size", [3, 4])
def test_components_of_the_limit_s_size_are_left_to_the_processor(strict, monkeypatch, size):
    monkeypatch.setattr(array_api, "SMALL", size)
    called = []
    newton = array_api._solve_large
    monkeypatch.setattr(
        array_api, "_solve_large", lambda *args: called.append(args[0].size) or newton(*args)
    )
    S = factor_covariance(4, 30, seed=52)
    sparse_precision(strict(S), 0.01)
    assert called == ([4] if size == 3 else [])


@pytest.mark.parametrize(
    ("S", "alpha", "message"),
    [
        (np.zeros((0, 0)), 0.1, r"square covariance matrix, got shape \(0, 0\)"),
        (np.ones((2, 3)), 0.1, r"square covariance matrix, got shape \(2, 3\)"),
        (np.ones(3), 0.1, r"got shape \(3,\)"),
        (np.ones((1, 1, 1)), 0.1, r"got shape \(1, 1, 1\)"),
        (np.diag([1.0, np.inf]), 0.1, "finite"),
        (np.diag([1.0, -1.0]), 0.1, "negative diagonal entry, at 1"),
        (np.diag([1.0, 0.0]), 0.1, "zero variance at 1"),
        (np.eye(2), np.full((2, 2), np.inf), "alpha must be finite"),
        (np.eye(2), np.nan, "alpha must be finite"),
        (np.eye(2), -np.eye(2), "not negative"),
        (np.eye(2), np.ones((1, 3)), r"S's shape \(2, 2\), got \(1, 3\)"),
        (np.eye(2), np.ones((2, 1)), r"S's shape \(2, 2\), got \(2, 1\)"),
    ],
)
def test_bad_input_is_named(put, S, alpha, message):
    with pytest.raises(ValueError, match=message):
        sparse_precision(put(S), alpha)


@pytest.mark.parametrize("share", [0.9, 1.1])
@pytest.mark.parametrize("corner", [(0, 1), (1, 0)])
def test_asymmetry_is_measured_in_units_of_the_variables(strict, share, corner):
    S = np.array([[4.0, 1.0], [1.0, 9.0]])
    S[corner] += share * ASYMMETRY * 6.0
    if share < 1:
        assert sparse_precision(strict(S), 0.1).n_iter > 0
    else:
        with pytest.raises(ValueError, match="symmetric"):
            sparse_precision(strict(S), 0.1)


@pytest.mark.parametrize("small", [1, 200])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["number", "row", "matrix", "array_api"])
def test_every_kind_of_penalty(strict, monkeypatch, small, diagonal, kind):
    """The order of variables mixes two components, so rows of penalties must follow them."""
    monkeypatch.setattr(array_api, "SMALL", small)
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    S = blocks(factor_covariance(4, 20, seed=53), 3 * factor_covariance(3, 20, seed=54))
    S = S[np.ix_(order, order)]
    spread = np.random.default_rng(0).uniform(0.05, 0.2, (7, 7))
    matrix = (spread + spread.T) / 2
    if kind in ("number", "row"):
        matrix = np.full((7, 7), 0.1)
    given = {"number": 0.1, "row": matrix[:1], "matrix": matrix, "array_api": strict(matrix)}
    expected = sparse_precision(S, matrix, penalize_diagonal=diagonal, tol=1e-9)
    found = sparse_precision(strict(S), given[kind], penalize_diagonal=diagonal, tol=1e-9)
    assert found.objective == pytest.approx(expected.objective, abs=1e-7)
    assert_allclose(to_numpy(found.precision), expected.precision.toarray(), atol=1e-3)
    assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("small", [1, 200])
def test_two_variables_with_penalties_of_their_own(strict, monkeypatch, small):
    monkeypatch.setattr(array_api, "SMALL", small)
    S, alpha = np.array([[2.0, 0.9], [0.9, 3.0]]), np.array([[0.1, 0.2], [0.2, 0.7]])
    expected = sparse_precision(S, alpha, penalize_diagonal=True, tol=1e-9)
    found = sparse_precision(strict(S), alpha, penalize_diagonal=True, tol=1e-9)
    assert_allclose(to_numpy(found.precision), expected.precision.toarray(), atol=1e-4)
    problem = array_api._checked(strict(S), alpha, True)
    assert_allclose(to_numpy(problem.diagonal), [2.1, 3.7])


def test_an_earlier_result_is_a_start_for_each_component(strict, monkeypatch):
    monkeypatch.setattr(array_api, "SMALL", 1)
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    S = blocks(factor_covariance(4, 20, seed=55), factor_covariance(3, 20, seed=56))
    S = S[np.ix_(order, order)]
    first = sparse_precision(strict(S), 0.1, tol=1e-6)
    again = sparse_precision(strict(S), 0.1, tol=1e-5, init=first)
    assert first.n_iter > 1
    assert again.n_iter == 1
    assert_array_equal(to_numpy(again.precision), to_numpy(first.precision))


def test_newton_starts_from_the_diagonal(strict):
    """A solution that is diagonal is found at once."""
    problem = array_api._checked(strict([[2.0, 0.1], [0.1, 4.0]]), 0.2, False)
    point = array_api._solve_large(problem, 1e-9, None)
    assert point.n_iter == 1
    assert_allclose(to_numpy(point.T), np.diag([0.5, 0.25]), rtol=1e-14)
    start = strict(np.array([[0.5, 0.01], [0.01, 0.25]]))
    assert array_api._solve_large(problem, 1e-9, start).n_iter > 1


@pytest.mark.parametrize("succeeds", [0, 1, 2, 3])
def test_more_effort_where_less_fails(strict, monkeypatch, succeeds):
    """The goal is tol per variable; every method gets it, and stops the others when it succeeds."""
    problem = array_api._checked(strict(np.eye(4)), 0.1, False)
    tried = []

    def outcome(effort, goal):
        assert goal == pytest.approx(4e-3)
        tried.append(effort)
        gap = 4e-3 if len(tried) > succeeds else 4.1e-3
        return NewtonPoint(None, None, 0.0, gap, len(tried))

    monkeypatch.setattr(
        array_api,
        "newton",
        lambda problem, start, goal, max_iter, effort: (
            outcome(effort, goal) if max_iter == array_api.QUICK_ITERATIONS else None
        ),
    )
    monkeypatch.setattr(
        array_api, "newton_along_path", lambda problem, goal, effort: outcome(effort, goal)
    )
    if succeeds == 3:
        with pytest.raises(NotCertifiedError, match=r"stands at 1\.0e-03 per variable"):
            array_api._solve_large(problem, 1e-3, None)
        succeeds = 2
    else:
        assert array_api._solve_large(problem, 1e-3, None).n_iter == succeeds + 1
    assert tried == [QUICK, STEADY, THOROUGH][: succeeds + 1]


def test_blocks_are_taken_and_placed(put):
    matrix = np.arange(25.0).reshape(5, 5)
    index = np.array([3, 0, 4])
    block = array_api._block(put(matrix), index)
    assert_array_equal(to_numpy(block), matrix[np.ix_(index, index)])
    assert_array_equal(to_numpy(array_api._columns(put(matrix), index)), matrix[:, index])
    new = np.arange(100.0, 109.0).reshape(3, 3)
    diagonal = np.diag(np.arange(1.0, 6.0))
    expected = diagonal.copy()
    expected[np.ix_(index, index)] = new
    assert_array_equal(to_numpy(array_api._placed(put(diagonal), index, put(new))), expected)


def test_a_part_of_a_problem(strict):
    S = factor_covariance(5, 20, seed=57)
    alpha = np.full((5, 5), 0.1) + np.diag(np.arange(5.0))
    index = np.array([1, 4])
    for penalty, expected in ((alpha, alpha[np.ix_(index, index)]), (0.1, [[0.1, 0.1]])):
        part = array_api._restrict(array_api._checked(strict(S), penalty, True), index)
        assert_array_equal(to_numpy(part.covariance), S[np.ix_(index, index)])
        assert_array_equal(to_numpy(part.alpha), expected)
        added = np.diagonal(np.broadcast_to(penalty, (5, 5)))
        assert_allclose(to_numpy(part.diagonal), (np.diagonal(S) + added)[index])
    whole = array_api._checked(strict(S), 0.1, False)
    assert array_api._restrict(whole, np.arange(5)) is whole
