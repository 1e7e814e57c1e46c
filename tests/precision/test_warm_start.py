"""A start from an earlier result changes the work, not the optimum, and every gap is honest."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import PrecisionResult

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


def assert_honest(result, S, alpha, tol):
    """The result is what it says: definite, of this value, and this near to the optimum."""
    T = result.precision.toarray()
    assert np.linalg.eigvalsh(T).min() > 0
    value = objective(S, penalty_matrix(alpha, len(S), False), T)
    assert_allclose(result.objective, value, rtol=1e-10)
    assert result.duality_gap <= tol * len(S)
    best = sparse_precision(S, alpha, tol=1e-10).objective
    assert value - best <= result.duality_gap * (1 + 1e-9) + 1e-9 * len(S)


@pytest.mark.parametrize("seed", range(10))
def test_chains_of_starts(seed):
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
        assert_honest(result, S, alpha, tol)


def test_a_start_saves_sweeps_whatever_the_units():
    S, units = factor_covariance(100, 80, seed=7), np.logspace(-3, 3, 100)
    both = np.outer(units, units)
    cold = sparse_precision(S, 0.2, tol=1e-8)
    warm = sparse_precision(1.02 * S * both, 0.2 * both, tol=1e-8, init=cold)
    again = sparse_precision(1.02 * S, 0.2, tol=1e-8)
    shift = 2 * np.log(units).sum()
    assert_allclose(warm.objective - shift, again.objective, atol=2e-6)
    assert_allclose(warm.precision.toarray() * both, again.precision.toarray(), atol=1e-3)
    assert warm.n_iter < again.n_iter


def test_components_join_and_part():
    S = chain_covariance(60, 100, seed=34)
    few = sparse_precision(S, 0.3)
    many = sparse_precision(S, 0.5, init=few)
    assert len(many.components) > len(few.components)
    assert_honest(many, S, 0.5, 1e-4)
    assert_honest(sparse_precision(S, 0.4, init=many), S, 0.4, 1e-4)
    assert_honest(sparse_precision(S, 0.3, init=sparse_precision(S, 2.0)), S, 0.3, 1e-4)
    no_use = sparse_precision(S[::-1, ::-1], 0.01)
    assert_honest(sparse_precision(S, 0.4, init=no_use), S, 0.4, 1e-4)


# ---- results and their stored state -----------------------------------------------------------


@pytest.fixture
def result():
    """Variables 0 and 3, 2 and 4 and 5 belong together, 1 stands alone."""
    S = np.eye(6)
    S[0, 3] = S[2, 4] = S[4, 5] = 0.5
    return sparse_precision(np.maximum(S, S.T), 0.1)


def test_a_result_tells_its_components_and_covariance(result):
    assert [part.tolist() for part in result.components] == [[0, 3], [1], [2, 4, 5]]
    assert_allclose(result.covariance, np.linalg.inv(result.precision.toarray()), atol=1e-14)


def test_a_start_from_a_stored_result_is_the_same_to_the_bit():
    S = factor_covariance(30, 60, seed=15)
    result = sparse_precision(S, 0.4)
    again = PrecisionResult.from_state(result.state())
    assert (again.objective, again.duality_gap, again.n_iter) == (
        result.objective,
        result.duality_gap,
        result.n_iter,
    )
    one, other = (sparse_precision(S, 0.3, init=init) for init in (result, again))
    assert np.array_equal(one.precision.toarray(), other.precision.toarray())


@pytest.mark.parametrize("damage", [{"labels": np.zeros(5, np.int64)}, {"working": np.eye(5)}])
def test_a_damaged_state_is_refused(result, damage):
    with pytest.raises(ValueError, match="sizes do not agree"):
        PrecisionResult.from_state(result.state() | damage)
