"""sparse_precision against an independent solver, and its promises on hostile input."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import NotCertifiedError

from .reference import (
    admm,
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def covariances(draw, max_p=9):
    """Positive semi-definite matrices, often singular, with duplicates, at any scale."""
    p = draw(st.integers(1, max_p))
    n = draw(st.integers(1, 2 * max_p))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    if p > 1 and draw(st.booleans()):
        X[:, -1] = X[:, 0]
    X *= 10.0 ** draw(st.floats(-4, 4))
    return X.T @ X / n


@st.composite
def problems(draw):
    S = draw(covariances())
    p = len(S)
    scale = np.diagonal(S).mean()
    alpha = scale * 10.0 ** draw(st.floats(-2.5, 0.2))
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        factor = rng.uniform(0.2, 1.0, (p, p))
        alpha = alpha * (factor + factor.T) / 2
    return S, alpha, draw(st.booleans())


@SETTINGS
@given(problems())
def test_agrees_with_admm_and_is_certified(problem):
    S, alpha, diagonal = problem
    assume(np.diagonal(S).min() > 1e-6 * np.diagonal(S).max())
    p = len(S)
    penalty = penalty_matrix(alpha, p, diagonal)
    result = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-10)
    T = result.precision.toarray()
    assert_allclose(T, T.T, rtol=1e-12)
    assert np.linalg.eigvalsh(T).min() > 0
    assert 0 <= result.duality_gap <= 1e-10 * p
    assert_allclose(objective(S, penalty, T), result.objective, rtol=1e-9, atol=1e-9)
    # In units where the largest variance is one, so that ADMM's penalty parameter suits.
    unit = np.diagonal(S).max()
    reference = admm(S / unit, penalty / unit) / unit
    assert result.objective <= objective(S, penalty, reference) + 1e-6 * p
    if optimality_error(S, penalty, reference) < 1e-9:
        assert_allclose(T, reference, atol=1e-4 * np.abs(reference).max())
        assert abs(result.objective - objective(S, penalty, reference)) < 1e-6


@SETTINGS
@given(problems(), st.integers(0, 1000))
def test_permutation_and_scaling_equivariance(problem, seed):
    S, alpha, diagonal = problem
    assume(np.diagonal(S).min() > 1e-6 * np.diagonal(S).max())
    p = len(S)
    rng = np.random.default_rng(seed)
    order = rng.permutation(p)
    scale = 10.0 ** rng.uniform(-3, 3, p)
    penalty = np.broadcast_to(np.asarray(alpha), (p, p))
    moved = sparse_precision(
        (S * np.outer(scale, scale))[np.ix_(order, order)],
        (penalty * np.outer(scale, scale))[np.ix_(order, order)],
        penalize_diagonal=diagonal,
        tol=1e-11,
    )
    direct = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-11)
    back = np.empty((p, p))
    back[np.ix_(order, order)] = moved.precision.toarray()
    T = direct.precision.toarray()
    size = np.sqrt(np.diagonal(T))
    error = (back * np.outer(scale, scale) - T) / np.outer(size, size)
    assert np.abs(error).max() < 1e-4
    assert_allclose(
        moved.objective - 2 * np.log(scale).sum(), direct.objective, atol=1e-9 * p, rtol=1e-9
    )


@SETTINGS
@given(covariances(max_p=12), st.floats(-6, 0), st.booleans())
def test_default_tolerance_is_certified_on_singular_input(S, exponent, diagonal):
    p = len(S)
    alpha = 10.0**exponent * np.diagonal(S).mean()
    result = sparse_precision(S, alpha, penalize_diagonal=diagonal)
    assert 0 <= result.duality_gap <= 1e-4 * p
    T = result.precision.toarray()
    size = np.sqrt(np.diagonal(T))
    assert np.linalg.eigvalsh(T / np.outer(size, size)).min() > 0


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.4])
def test_optimality_conditions_with_more_variables_than_samples(make, alpha):
    S = make(120, 60, seed=2)
    result = sparse_precision(S, alpha, tol=1e-9)
    T = result.precision.toarray()
    assert optimality_error(S, penalty_matrix(alpha, 120, False), T) < 1e-4
    assert_allclose(result.covariance @ T, np.eye(120), atol=1e-9)


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


def test_a_zero_variance_is_solved_with_a_penalized_diagonal_and_named_without():
    S = chain_covariance(6, 50, seed=3)
    S[2], S[:, 2] = 0.0, 0.0
    result = sparse_precision(S, 0.1, penalize_diagonal=True)
    assert_allclose(result.precision.toarray()[2, 2], 10.0)
    with pytest.raises(ValueError, match=r"zero variance at 2.*penalize_diagonal=True"):
        sparse_precision(S, 0.1)


def test_one_variable_and_a_pair():
    result = sparse_precision([[4.0]], 1.0)
    assert result.precision.toarray() == [[0.25]]
    assert (result.duality_gap, result.objective) == pytest.approx((0, np.log(4.0) + 1))
    assert sparse_precision([[4.0]], 1.0, penalize_diagonal=True).precision.toarray() == [[0.2]]
    pair = sparse_precision([[2.0, -0.9], [-0.9, 3.0]], 0.4)
    assert_allclose(pair.precision.toarray(), np.linalg.inv([[2.0, -0.5], [-0.5, 3.0]]))
    assert pair.duality_gap <= 1e-14


def test_no_penalty_is_the_inverse_or_a_clear_error():
    S = chain_covariance(8, 50, seed=4)
    assert_allclose(sparse_precision(S, 0).precision.toarray(), np.linalg.inv(S), rtol=1e-8)
    with pytest.raises(ValueError, match="alpha > 0"):
        sparse_precision(chain_covariance(8, 7, seed=0), 0)


def test_zero_penalties_on_some_entries():
    S = chain_covariance(10, 200, seed=5)
    alpha = np.full((10, 10), 0.1)
    alpha[0, :3] = alpha[:3, 0] = 0.0
    result = sparse_precision(S, alpha, tol=1e-10)
    assert optimality_error(S, penalty_matrix(alpha, 10, False), result.precision.toarray()) < 1e-4
    singular = np.ones((3, 3))
    alpha = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.1], [0.1, 0.1, 0.0]])
    with pytest.raises(ValueError, match="increase alpha"):
        sparse_precision(singular, alpha)


def test_an_exact_copy_with_a_tiny_penalty():
    """All variables equal: as far from well-conditioned as a penalty allows."""
    for alpha in (1e-1, 1e-3, 1e-6, 1e-9):
        result = sparse_precision(np.ones((3, 3)), alpha, tol=1e-6)
        T = result.precision.toarray()
        # The solution has covariance 1 - alpha off the diagonal.
        expected = np.linalg.inv((1 - alpha) * np.ones((3, 3)) + alpha * np.eye(3))
        assert_allclose(T, expected, rtol=1e-2)


@pytest.mark.parametrize(
    ("S", "alpha", "options", "message"),
    [
        ([[1.0, 0.5], [0.0, 1.0]], 0.1, {}, r"symmetric; entries \(0, 1\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], 0.1, {}, r"finite; entry \(0, 1\)"),
        ([[np.inf, 0.0], [0.0, 1.0]], 0.1, {}, r"finite; entry \(0, 0\)"),
        ([[1.0, np.inf], [np.inf, 1.0]], 0.1, {}, r"finite; entry \(0, 1\)"),
        ([[1.0, 0.0]], 0.1, {}, "square"),
        (np.zeros((0, 0)), 0.1, {}, "square"),
        ([[-1.0, 0.0], [0.0, 1.0]], 0.1, {}, "negative diagonal entry, at 0"),
        (np.eye(2) * 1j, 0.1, {}, "complete matrix of real numbers"),
        (np.ma.masked_equal(np.eye(2), 0.0), 0.1, {}, "complete matrix of real numbers"),
        (np.eye(2), -0.1, {}, "not negative"),
        (np.eye(2), np.nan, {}, "finite"),
        (np.eye(2), np.ones((3, 3)), {}, "S's shape"),
        (np.eye(2), [[0.0, 1.0], [2.0, 0.0]], {}, "alpha must be symmetric"),
        (np.eye(2), 0.1, {"tol": 0.0}, "tol must be a positive number"),
        (np.eye(2), 0.1, {"init": sparse_precision(np.eye(3), 0.1)}, "init is for 3"),
    ],
)
def test_bad_input_is_named(S, alpha, options, message):
    with pytest.raises(ValueError, match=message):
        sparse_precision(S, alpha, **options)


@pytest.mark.parametrize("decades", [0, 6])
def test_halves_are_averaged_or_refused_in_the_units_of_their_variables(decades):
    unit = np.logspace(-decades, decades, 20)
    S = chain_covariance(20, 60, seed=35) * np.outer(unit, unit)
    alpha = 0.2 * np.outer(unit, unit)
    uneven = S.copy()
    uneven[np.triu_indices(20, 1)] *= 1 + 1e-7
    before = uneven.copy()
    result = sparse_precision(uneven, alpha, tol=1e-9)
    assert np.array_equal(uneven, before)
    even = sparse_precision((uneven + uneven.T) / 2, alpha, tol=1e-9)
    assert np.array_equal(result.precision.toarray(), even.precision.toarray())
    S[17, 3] += 3e-6 * unit[17] * unit[3]
    with pytest.raises(ValueError, match=r"symmetric; entries \(3, 17\) and \(17, 3\)"):
        sparse_precision(S, alpha)


# ---- components -------------------------------------------------------------------------------


def test_an_entry_as_large_as_its_penalty_is_no_edge():
    S = np.eye(4)
    S[0, 3] = S[3, 0] = 0.5
    S[1, 2] = S[2, 1] = -0.6
    result = sparse_precision(S, 0.5)
    assert [component.tolist() for component in result.components] == [[0], [1, 2], [3]]
    assert result.labels.tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("density", [0.005, 0.02, 0.1])
def test_components_are_those_of_the_solution_and_solved_alone(density):
    rng = np.random.default_rng(37)
    S = chain_covariance(60, 200, seed=37)
    S = (S + S.T) / 2
    edges = np.triu(rng.random((60, 60)) < density, 1)
    alpha = np.where(edges | edges.T, 0.5 * np.abs(S), np.abs(S) + 1e-3)
    result = sparse_precision(S, alpha, tol=1e-8)
    T = result.precision.toarray()
    assert not np.any(T[result.labels[:, None] != result.labels])
    assert optimality_error(S, penalty_matrix(alpha, 60, False), T) < 1e-4
    total = 0.0
    for component in result.components:
        block = np.ix_(component, component)
        alone = sparse_precision(S[block], alpha[block], tol=1e-8)
        assert len(alone.components) == 1
        assert_allclose(T[block], alone.precision.toarray(), rtol=1e-7, atol=1e-9)
        total += alone.objective
    assert_allclose(result.objective, total)


def test_large_components_in_parallel_are_solved_as_alone():
    block = factor_covariance(220, 100, seed=8)
    S = np.zeros((440, 440))
    S[::2, ::2] = S[1::2, 1::2] = block
    result = sparse_precision(S, 0.3)
    alone = sparse_precision(block, 0.3)
    assert_allclose(result.precision.toarray()[::2, ::2], alone.precision.toarray())
    assert_allclose(result.objective, 2 * alone.objective)


# ---- ill-conditioned problems, which second-order steps solve ----------------------------------


@pytest.mark.parametrize("p", [40, 130])
def test_few_sweeps_leave_the_rest_to_second_order_steps(p):
    S = factor_covariance(p, 30, seed=36)
    few = sparse_precision(S, 0.2, tol=1e-7, max_iter=1)
    many = sparse_precision(S, 0.2, tol=1e-7)
    assert few.duality_gap <= 1e-7 * p
    assert_allclose(few.objective, many.objective, atol=2e-7 * p)
    T = few.precision.toarray()
    assert_allclose(T, T.T, rtol=1e-10)
    assert np.count_nonzero(T) < p**2
    assert optimality_error(S, penalty_matrix(0.2, p, False), T) < 1e-2
    assert_allclose(few.objective, objective(S, penalty_matrix(0.2, p, False), T), rtol=1e-9)


@pytest.mark.parametrize("seed", [3, 29, 32])
@pytest.mark.parametrize("decades", [0, 4])
def test_few_samples_a_copy_a_tiny_penalty_and_units_over_decades(seed, decades):
    rng = np.random.default_rng(seed)
    p, n = rng.integers(2, 13), rng.integers(1, 25)
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    X[:, -1] = X[:, 0]
    X *= 10.0 ** rng.uniform(-decades, decades, p)
    S = X.T @ X / n
    for exponent in (-6, -4):
        result = sparse_precision(S, 10.0**exponent * np.median(np.diagonal(S)))
        assert result.duality_gap <= 1e-4 * p
        T = result.precision.toarray()
        size = np.sqrt(np.diagonal(T))
        assert np.linalg.eigvalsh(T / np.outer(size, size)).min() > 0


def test_an_indefinite_covariance_is_solved_where_the_penalty_allows_and_refused_elsewhere():
    S = np.array([[1.0, 1.2, 0.0], [1.2, 1.0, 0.3], [0.0, 0.3, 1.0]])
    result = sparse_precision(S, 0.4, tol=1e-8)
    assert optimality_error(S, penalty_matrix(0.4, 3, False), result.precision.toarray()) < 1e-3
    with pytest.raises(NotCertifiedError, match="increase alpha"):
        sparse_precision(S, 0.1)
    large = factor_covariance(120, 200, seed=10)
    large[0, 1] = large[1, 0] = 2 * np.sqrt(large[0, 0] * large[1, 1])
    with pytest.raises(NotCertifiedError, match="increase alpha"):
        sparse_precision(large, 0.1)
