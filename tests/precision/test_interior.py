"""The interior-point method, and the ill-conditioned problems it is for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
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
