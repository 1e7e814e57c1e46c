"""The parts of the solver: screening, certificate, Newton fallback, results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import connected_components

from mnpca import sparse_precision
from mnpca.precision import block_descent
from mnpca.precision.block_descent import solve_component
from mnpca.precision.iterate import to_precision
from mnpca.precision.newton import newton, newton_along_path
from mnpca.precision.problem import NotCertifiedError, make_problem
from mnpca.precision.result import SMALL, PrecisionResult, inverse

from .reference import (
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)


@pytest.mark.parametrize("p", [2, 63, 64, 65, 200])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.25, 0.6])
def test_components_are_those_of_the_thresholded_covariance(p, alpha):
    S = chain_covariance(p, 100, seed=10)
    _, labels = make_problem(S, alpha, False)
    off = np.abs(S) > alpha
    np.fill_diagonal(off, False)
    count, expected = connected_components(off, directed=False)
    assert labels.max() + 1 == count
    assert len(set(zip(labels.tolist(), expected.tolist(), strict=True))) == count


def test_screening_is_exact():
    """The same solution when the components are solved together."""
    S = chain_covariance(60, 100, seed=11)
    split = sparse_precision(S, 0.45, tol=1e-10)
    assert len(split.components) > 5
    problem, _ = make_problem(S, 0.45, False)
    whole = solve_component(problem, 1e-10)
    T = to_precision(whole.iterate)
    assert_allclose(split.precision.toarray(), T, atol=1e-4)
    assert_allclose(split.objective, whole.certificate.objective, atol=1e-8)
    assert sorted(np.concatenate(split.components).tolist()) == list(range(60))


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
@pytest.mark.parametrize("alpha", [0.03, 0.3])
def test_newton_alone_from_the_diagonal(make, alpha):
    S = make(40, 30, seed=12)
    problem, _ = make_problem(S, alpha, False)
    point = newton(problem, np.diag(1 / np.diagonal(S)), 1e-9)
    T, W, value, gap = point.T, point.W, point.value, point.gap
    penalty = penalty_matrix(alpha, 40, False)
    assert gap <= 1e-9
    assert optimality_error(S, penalty, T) < 1e-4
    assert_allclose(value, objective(S, penalty, T))
    assert_allclose(T @ W, np.eye(40), atol=1e-8)
    assert_allclose(value, sparse_precision(S, alpha, tol=1e-10).objective, atol=1e-8)


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
def test_newton_along_a_path_where_copies_make_the_problem_ill_conditioned(make):
    S = np.kron(make(8, 6, seed=16), np.ones((3, 3)))
    problem, _ = make_problem(S, 1e-4, False)
    point = newton_along_path(problem, 1e-8)
    assert point.gap <= 1e-8
    assert optimality_error(S, penalty_matrix(1e-4, 24, False), point.T) < 1e-6


def test_newton_takes_over_where_block_descent_may_not_go_on(monkeypatch):
    S = factor_covariance(30, 20, seed=13)
    expected = sparse_precision(S, 0.1, tol=1e-9)
    monkeypatch.setattr(block_descent, "MAX_CERTIFICATES", 1)
    monkeypatch.setattr(block_descent, "MIN_SWEEPS", 1)
    after_one_sweep = sparse_precision(S, 0.1, tol=1e-9)
    assert_allclose(after_one_sweep.objective, expected.objective, atol=1e-7)
    monkeypatch.setattr(block_descent, "suits", lambda problem: False)
    after_one_sweep = sparse_precision(S, 0.1, tol=1e-9)
    assert_allclose(after_one_sweep.objective, expected.objective, atol=1e-7)
    monkeypatch.setattr(block_descent, "sweep_and_certify", lambda *args, **options: None)
    assert_allclose(sparse_precision(S, 0.1, tol=1e-9).objective, expected.objective, atol=1e-7)


def test_an_indefinite_covariance_is_solved_where_the_penalty_allows_and_refused_elsewhere():
    S = np.array([[1.0, 1.2, 0.0], [1.2, 1.0, 0.3], [0.0, 0.3, 1.0]])
    result = sparse_precision(S, 0.4, tol=1e-8)
    assert optimality_error(S, penalty_matrix(0.4, 3, False), result.precision.toarray()) < 1e-3
    with pytest.raises(NotCertifiedError, match="increase alpha"):
        sparse_precision(S, 0.1)


def test_a_warm_start_that_is_no_use_does_no_harm():
    S = factor_covariance(30, 60, seed=14)
    start = sparse_precision(S[::-1, ::-1], 0.01)
    result = sparse_precision(S, 0.4, tol=1e-8, init=start)
    assert_allclose(result.objective, sparse_precision(S, 0.4, tol=1e-8).objective, atol=1e-6)


def test_a_result_survives_its_state():
    result = sparse_precision(factor_covariance(20, 60, seed=15), 0.4)
    again = PrecisionResult.from_state(result.state())
    assert_allclose(again.covariance, result.covariance)
    assert again.n_iter == result.n_iter


@pytest.mark.parametrize("size", [1, 2, 7, SMALL, SMALL + 1])
def test_inverse_from_the_lower_triangle(size):
    """By the compiled kernel where the matrix is small, by LAPACK elsewhere."""
    A = chain_covariance(size, 2 * size + 5, seed=size) if size > 1 else np.array([[4.0]])
    expected = np.linalg.inv(A)
    A[np.triu_indices(size, 1)] = np.nan
    found = inverse(A)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("size", [2, SMALL + 1])
def test_inverse_refuses_an_indefinite_matrix(size):
    A = np.eye(size)
    A[0, 1] = A[1, 0] = 2.0
    with pytest.raises(np.linalg.LinAlgError):
        inverse(A)
