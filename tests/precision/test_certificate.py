"""The duality gap is a bound, whichever way it was found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import certificate
from mnpca.precision._kernels.certificate import largest_gap
from mnpca.precision.problem import make_problem

from .reference import (
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)


def assert_honest(result, S, alpha, best):
    """The result is what it says: definite, of this value, and this near to the optimum."""
    T = result.precision.toarray()
    assert np.linalg.eigvalsh(T).min() > 0
    value = objective(S, penalty_matrix(alpha, len(S), False), T)
    assert_allclose(result.objective, value, rtol=1e-10)
    assert value - best <= result.duality_gap * (1 + 1e-9) + 1e-9 * len(S)


@pytest.mark.parametrize(("make", "alpha"), [(chain_covariance, 0.3), (factor_covariance, 0.9)])
@pytest.mark.parametrize("change", [0.001, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-7])
def test_gap_of_warm_starts_on_sparse_graphs(make, alpha, change, tol):
    S = make(90, 60, seed=30)
    changed = (1 - change) * S + change * make(90, 60, seed=31)
    best = sparse_precision(changed, alpha, tol=1e-11).objective
    cold = sparse_precision(S, alpha, tol=tol)
    assert cold.precision.nnz < 90**2 * certificate.SPARSE
    warm = sparse_precision(changed, alpha, tol=tol, init=cold)
    assert warm.duality_gap <= tol * 90
    assert_honest(warm, changed, alpha, best)
    # A second one, from a result that came without factorizations.
    twice = sparse_precision(S, alpha, tol=tol, init=warm)
    assert_honest(twice, S, alpha, sparse_precision(S, alpha, tol=1e-11).objective)


@pytest.mark.parametrize("seed", range(20))
def test_bound_on_the_gap_of_any_pair(seed):
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


def test_an_earlier_solution_that_still_is_one_comes_back():
    S = chain_covariance(80, 60, seed=32)
    first = sparse_precision(S, 0.3)
    again = sparse_precision(S, 0.3, init=first)
    assert again.n_iter == 0
    assert_allclose(again.precision.toarray(), first.precision.toarray())
    assert_allclose(again.objective, first.objective)
    # In other units too: the precision is brought to the new variances.
    scaled = sparse_precision(4 * S, 1.2, init=first)
    assert scaled.n_iter == 0
    assert_allclose(4 * scaled.precision.toarray(), first.precision.toarray())
    assert_honest(scaled, 4 * S, 1.2, sparse_precision(4 * S, 1.2, tol=1e-11).objective)


def test_both_ways_to_the_gap_agree(monkeypatch):
    S = factor_covariance(80, 60, seed=33)
    product = sparse_precision(S, 0.9)
    monkeypatch.setattr(certificate, "SPARSE", 0.0)
    factors = sparse_precision(S, 0.9)
    assert_allclose(product.objective, factors.objective, atol=2e-4 * 80)
    best = sparse_precision(S, 0.9, tol=1e-11).objective
    assert_honest(factors, S, 0.9, best)


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_warm_starts(seed):
    """Whatever the graph, the change of S and of the penalty, and the tolerance."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 60))
    make = (chain_covariance, factor_covariance)[seed % 2]
    first, last = (make(p, int(rng.integers(p, 4 * p)), seed=2 * seed + i) for i in range(2))
    largest = np.abs(first - np.diag(np.diagonal(first))).max()
    tol, change = 10 ** rng.uniform(-6, -2.5), 10 ** rng.uniform(-4, -0.3)
    result, S = sparse_precision(first, 0.4 * largest, tol=tol), first
    for _ in range(3):
        S = (1 - change) * S + change * last
        alpha = largest * rng.uniform(0.2, 0.7)
        result = sparse_precision(S, alpha, tol=tol, init=result)
        assert result.duality_gap <= tol * p
        assert_honest(result, S, alpha, sparse_precision(S, alpha, tol=1e-9).objective)


def test_warm_starts_where_components_join_and_part():
    S = chain_covariance(60, 100, seed=34)
    best = {alpha: sparse_precision(S, alpha, tol=1e-11).objective for alpha in (0.3, 0.4, 0.5)}
    few = sparse_precision(S, 0.3)
    many = sparse_precision(S, 0.5, init=few)
    assert len(many.components) > len(few.components)
    assert_honest(many, S, 0.5, best[0.5])
    between = sparse_precision(S, 0.4, init=many)
    assert_honest(between, S, 0.4, best[0.4])
    assert_honest(sparse_precision(S, 0.3, init=many), S, 0.3, best[0.3])


def test_halves_that_differ_by_more_than_rounding_are_averaged():
    S = chain_covariance(20, 60, seed=35)
    uneven = S.copy()
    uneven[np.triu_indices(20, 1)] *= 1 + 1e-7
    problem, _ = make_problem(uneven, 0.2, False)
    assert np.array_equal(problem.covariance, problem.covariance.T)
    result = sparse_precision(uneven, 0.2, tol=1e-9)
    penalty = penalty_matrix(0.2, 20, False)
    assert optimality_error((uneven + uneven.T) / 2, penalty, result.precision.toarray()) < 1e-4


def test_few_sweeps_leave_the_rest_to_second_order_steps():
    S = factor_covariance(40, 30, seed=36)
    few = sparse_precision(S, 0.1, tol=1e-8, max_iter=1)
    many = sparse_precision(S, 0.1, tol=1e-8)
    assert few.duality_gap <= 1e-8 * 40
    assert_allclose(few.objective, many.objective, atol=2e-6)
