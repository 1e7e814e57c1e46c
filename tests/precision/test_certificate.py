"""Bounds on the duality gap, and the optimality of what they certify."""

import pytest

from mnpca import sparse_precision

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


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
