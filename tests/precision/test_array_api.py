"""Covariances in other memory, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca import sparse_precision
from mnpca.engines.arrays import to_numpy
from mnpca.precision import NotCertifiedError, newton

from .reference import (
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)


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


def test_values_gaps_and_iterations_add_up_over_components(strict, monkeypatch):
    """Two components by Newton's method, one on the processor, two variables alone."""
    monkeypatch.setattr(newton, "SMALL", 3)
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


@pytest.mark.parametrize(
    ("S", "alpha", "message"),
    [
        (np.ones((2, 3)), 0.1, r"square covariance matrix, got shape \(2, 3\)"),
        (np.diag([1.0, np.inf]), 0.1, "finite"),
        (np.diag([1.0, -1.0]), 0.1, "negative diagonal entry, at 1"),
        (np.eye(2), np.full((2, 2), np.inf), "alpha must be finite"),
        (np.eye(2), np.ones((1, 3)), r"S's shape \(2, 2\), got \(1, 3\)"),
    ],
)
def test_bad_input_is_named(put, S, alpha, message):
    with pytest.raises(ValueError, match=message):
        sparse_precision(put(S), alpha)


@pytest.mark.parametrize("small", [1, 200])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["number", "matrix", "array_api"])
def test_every_kind_of_penalty(strict, monkeypatch, small, diagonal, kind):
    """The order of variables mixes two components, so rows of penalties must follow them."""
    monkeypatch.setattr(newton, "SMALL", small)
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    S = blocks(factor_covariance(4, 20, seed=53), 3 * factor_covariance(3, 20, seed=54))
    S = S[np.ix_(order, order)]
    spread = np.random.default_rng(0).uniform(0.05, 0.2, (7, 7))
    matrix = (spread + spread.T) / 2
    if kind == "number":
        matrix = np.full((7, 7), 0.1)
    given = {"number": 0.1, "matrix": matrix, "array_api": strict(matrix)}
    expected = sparse_precision(S, matrix, penalize_diagonal=diagonal, tol=1e-9)
    found = sparse_precision(strict(S), given[kind], penalize_diagonal=diagonal, tol=1e-9)
    assert found.objective == pytest.approx(expected.objective, abs=1e-7)
    assert_allclose(to_numpy(found.precision), expected.precision.toarray(), atol=1e-3)
    assert_array_equal(found.labels, expected.labels)


def test_an_earlier_result_is_a_start_for_each_component(strict, monkeypatch):
    monkeypatch.setattr(newton, "SMALL", 1)
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    S = blocks(factor_covariance(4, 20, seed=55), factor_covariance(3, 20, seed=56))
    S = S[np.ix_(order, order)]
    first = sparse_precision(strict(S), 0.1, tol=1e-6)
    again = sparse_precision(strict(S), 0.1, tol=1e-5, init=first)
    assert first.n_iter > 1
    assert again.n_iter == 1
    assert_array_equal(to_numpy(again.precision), to_numpy(first.precision))


@pytest.mark.parametrize(("make", "alpha"), [(chain_covariance, 0.1), (factor_covariance, 0.3)])
def test_a_large_component_is_solved_where_it_lives(put, make, alpha):
    S = make(210, 300, seed=58)
    found = sparse_precision(put(S), alpha, tol=1e-7)
    T = to_numpy(found.precision)
    assert type(found.precision) is type(put(S))
    assert found.duality_gap <= 1e-7 * 210
    assert optimality_error(S, penalty_matrix(alpha, 210, False), T) < 1e-2
    best = sparse_precision(S, alpha, tol=1e-9).objective
    assert -1e-6 <= found.objective - best <= found.duality_gap + 1e-6
    assert_allclose(to_numpy(found.covariance) @ T, np.eye(210), atol=1e-8)


def test_an_ill_conditioned_component_is_certified(strict, monkeypatch):
    """Fewer samples than variables and a small penalty."""
    monkeypatch.setattr(newton, "SMALL", 1)
    S, alpha = factor_covariance(30, 12, seed=59), 0.02
    found = sparse_precision(strict(S), alpha, tol=1e-6)
    assert found.duality_gap <= 30e-6
    assert found.objective == pytest.approx(
        sparse_precision(S, alpha, tol=1e-8).objective, abs=4e-5
    )


def test_a_problem_without_a_solution_is_refused(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(newton, "SMALL", 1)
    with pytest.raises(NotCertifiedError, match="increase alpha"):
        sparse_precision(torch.asarray(np.array([[1.0, 2.0], [2.0, 1.0]])), 0.1)


def test_a_start_in_other_memory_is_refused(strict):
    with pytest.raises(ValueError, match="init lives in other memory than S"):
        sparse_precision(strict(np.eye(3)), 0.1, init=sparse_precision(np.eye(3), 0.1))
    with pytest.raises(ValueError, match="init is for 2 variables"):
        sparse_precision(strict(np.eye(3)), 0.1, init=sparse_precision(strict(np.eye(2)), 0.1))
