"""Bounds on the duality gap, and the optimality of what they certify."""

import numpy as np
import pytest

from mnpca import sparse_precision
from mnpca.precision.certificate import largest_gap

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_by_eigenvalues_holds_for_any_pair(seed):
    """Sum of l - log(1 + l), q and the Frobenius norm, for pairs near and far."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 12)) * 10 ** rng.uniform(-1, 1, (6, 1))
    T = A @ A.T
    E = rng.standard_normal((6, 6)) * 10 ** rng.uniform(-3, -0.5)
    root = np.linalg.cholesky(T)
    W = np.linalg.inv(root).T @ (np.eye(6) + (E + E.T) / 2) @ np.linalg.inv(root)
    X = T @ W - np.eye(6)
    eigenvalues = np.linalg.eigvals(X).real
    q, frobenius = np.sqrt(np.trace(X @ X)), np.linalg.norm(X)
    assert largest_gap(q, np.inf) <= largest_gap(max(frobenius, q), np.inf) * (1 + 1e-9)
    if q < 1:
        gap = np.sum(eigenvalues - np.log1p(eigenvalues))
        assert gap <= largest_gap(q, np.inf) * (1 + 1e-9)
        # The largest eigenvalue makes it sharper.
        sharp = largest_gap(q, np.abs(eigenvalues).max())
        assert gap <= sharp * (1 + 1e-9) <= largest_gap(q, np.inf) * (1 + 2e-9)
    else:
        assert largest_gap(q, np.inf) == np.inf


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(
    ("make", "alpha"),
    [
        (chain_covariance, 0.35),  # the gap by a product
        (chain_covariance, 0.1),  # the gap by factors
        (factor_covariance, 0.9),
        (factor_covariance, 0.3),
    ],
)
def test_the_gap_bounds_the_distance_from_the_optimum(make, alpha, diagonal, tol):
    S = make(80, 100, seed=33)
    result = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=tol)
    best = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-11).objective
    T = result.precision.toarray()
    value = objective(S, penalty_matrix(alpha, 80, diagonal), T)
    assert result.objective == pytest.approx(value, rel=1e-10)
    assert -1e-9 * 80 <= value - best <= result.duality_gap + 1e-9 * 80
    assert result.duality_gap <= tol * 80
