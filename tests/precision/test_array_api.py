"""Covariances in other memory, against NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca import sparse_precision
from mnpca.engines.arrays import to_numpy
from mnpca.precision import NotCertifiedError

from .reference import (
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)


@pytest.fixture(params=[1, 200])
def small(request, monkeypatch):
    """Components up to this size come to the processor."""
    monkeypatch.setattr("mnpca.precision.solve.SMALL", request.param)


@pytest.fixture
def two_components():
    """The order of variables mixes them; variable 7 stands alone."""
    S = np.zeros((8, 8))
    S[:4, :4], S[4:7, 4:7] = factor_covariance(4, 20, seed=53), 3 * chain_covariance(3, 20, seed=54)
    S[7, 7] = 0.25
    order = np.array([3, 0, 6, 2, 5, 1, 4, 7])
    return S[np.ix_(order, order)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("kind", ["number", "matrix", "foreign"])
def test_every_kind_of_penalty(put, two_components, diagonal, kind):
    S = two_components
    spread = np.random.default_rng(0).uniform(0.05, 0.2, S.shape)
    matrix = np.full(S.shape, 0.1) if kind == "number" else (spread + spread.T) / 2
    given = {"number": 0.1, "matrix": matrix, "foreign": put(matrix)}[kind]
    expected = sparse_precision(S, matrix, penalize_diagonal=diagonal, tol=1e-9)
    found = sparse_precision(put(S), given, penalize_diagonal=diagonal, tol=1e-9)
    assert found.duality_gap <= 1e-9 * len(S)
    T = to_numpy(found.precision)
    value = objective(S, penalty_matrix(matrix, len(S), diagonal), T)
    assert [found.objective] * 2 == pytest.approx([expected.objective, value], abs=1e-7)
    assert_allclose(T, expected.precision.toarray(), atol=1e-3)
    assert_array_equal(found.labels, expected.labels)
    assert not T[found.labels[:, None] != found.labels].any()


def test_an_earlier_result_is_a_start(put, two_components, monkeypatch):
    monkeypatch.setattr("mnpca.precision.solve.SMALL", 1)
    first = sparse_precision(put(two_components), 0.1, tol=1e-6)
    again = sparse_precision(put(two_components), 0.1, tol=1e-5, init=first)
    assert first.n_iter > 1
    assert again.n_iter == 1
    assert_array_equal(to_numpy(again.precision), to_numpy(first.precision))
    joined = sparse_precision(put(factor_covariance(8, 20, seed=55)), 0.05)
    apart = sparse_precision(put(two_components), 0.1, init=joined)
    assert apart.objective == pytest.approx(first.objective, abs=1e-3)
    assert not to_numpy(apart.precision)[apart.labels[:, None] != apart.labels].any()


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


def test_what_its_own_library_does_not_certify_comes_to_the_processor(put, monkeypatch):
    """Fewer samples than variables and a small penalty; and a problem without a solution."""
    monkeypatch.setattr("mnpca.precision.solve.SMALL", 1)
    S = factor_covariance(30, 12, seed=59)
    found = sparse_precision(put(S), 0.02, tol=1e-6)
    assert found.duality_gap <= 30e-6
    best = sparse_precision(S, 0.02, tol=1e-8).objective
    assert found.objective == pytest.approx(best, abs=4e-5)
    with pytest.raises(NotCertifiedError, match="increase alpha"):
        sparse_precision(put(np.array([[1.0, 2.0], [2.0, 1.0]])), 0.1)


def test_a_start_in_other_memory_is_refused(put):
    with pytest.raises(ValueError, match="init lives in other memory than S"):
        sparse_precision(put(np.eye(3)), 0.1, init=sparse_precision(np.eye(3), 0.1))
    with pytest.raises(ValueError, match="init is for 2 variables"):
        sparse_precision(put(np.eye(3)), 0.1, init=sparse_precision(put(np.eye(2)), 0.1))
