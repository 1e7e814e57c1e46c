"""The compiled descent on the covariance: its column problems, its progress and its verdicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision._kernels.descent import _copy_row, _nonzeros, _violators, descend

from .reference import chain_covariance, optimality_error, penalty_matrix

# The work buffer of a column has room for 16 variables at first.
SIZES = [2, 7, 23]


def lasso(H, s, a, passes=2000):
    """Minimizer of b'Hb/2 - s'b + a'|b| by plain coordinate descent."""
    b = np.zeros(len(s))
    for _ in range(passes):
        for k in range(len(s)):
            r = s[k] - H[k] @ b + H[k, k] * b[k]
            b[k] = np.sign(r) * max(abs(r) - a[k], 0.0) / H[k, k]
    return b


def column_objective(H, s, a, b):
    return 0.5 * b @ H @ b - s @ b + a @ np.abs(b)


def problem(p, kind):
    """A covariance, penalties and a working covariance in other units."""
    rng = np.random.default_rng(p)
    unit = rng.uniform(0.5, 2.0, size=p)
    S = chain_covariance(p, 3 * p, seed=p) * np.outer(unit, unit)
    alpha = rng.uniform(0.02, 0.1, size=(1, p))
    if kind == "matrix":
        alpha = np.repeat(alpha, p, axis=0) * rng.uniform(0.5, 1.0, size=(p, 1))
    W = S + np.diag(0.3 * np.diagonal(S))
    return S, alpha, W, rng


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("kind", ["one row", "matrix"])
@pytest.mark.parametrize("start", ["cold", "warm", "full"])
def test_a_column_becomes_the_solution_of_its_lasso(p, kind, start):
    S, alpha, W, rng = problem(p, kind)
    j = p // 2
    others = np.arange(p) != j
    B, theta = np.zeros((p, p)), np.ones(p)
    if start != "cold":
        B[j] = rng.normal(size=p) * (rng.random(p) < (0.3 if start == "warm" else 1.0)) * others
        B[j, (j + 1) % p] = 0.7
    H, s, a = W[np.ix_(others, others)], S[j, others], alpha[min(j, len(alpha) - 1), others]
    before = column_objective(H, s, a, B[j, others])
    expected = lasso(H, s, a)
    assert expected.any()
    W_before, theta_before = W.copy(), theta.copy()
    sweeps, progress, ok, definite = descend(
        S, alpha, W, B, theta, 0.0, 1e-20, 1e-20, 1, np.array([j])
    )
    assert (sweeps, ok, definite) == (1, True, True)
    assert_allclose(B[j, others], expected, atol=1e-8)
    assert B[j, j] == 0.0
    free = W_before[j, j] - expected @ H @ expected
    assert_allclose(theta[j], 1.0 / free, rtol=1e-8)
    gain = before - column_objective(H, s, a, expected)
    assert_allclose(progress, 2.0 * gain / free, rtol=1e-8)
    assert_allclose(W[j, others], H @ expected, atol=1e-8)
    assert_array_equal(W[j], W[:, j])
    assert W[j, j] == W_before[j, j]
    # Nothing else has changed.
    assert_array_equal(W[np.ix_(others, others)], W_before[np.ix_(others, others)])
    assert_array_equal(theta[others], theta_before[others])
    assert not B[others].any()


@pytest.mark.parametrize("inner", [1e-6, 1e-3, 1e-1])
@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_column_that_is_solved_loosely_still_fits_what_it_says(inner, start):
    """Its row of W is that of its regression, and its progress that of the objective."""
    p, j = 23, 11
    S, alpha, W, rng = problem(p, "one row")
    others = np.arange(p) != j
    B, theta = np.zeros((p, p)), 1.0 / np.diagonal(S)
    if start == "warm":
        B[j] = rng.normal(size=p) * (rng.random(p) < 0.3) * others
    H, s, a = W[np.ix_(others, others)], S[j, others], alpha[0, others]
    before = column_objective(H, s, a, B[j, others])
    best = column_objective(H, s, a, lasso(H, s, a))
    W_before, theta_before = W.copy(), theta[j]
    _, progress, ok, _ = descend(S, alpha, W, B, theta, 0.0, inner, inner, 1, np.array([j]))
    assert ok
    assert_allclose(W[j, others], H @ B[j, others], atol=1e-12)
    now = column_objective(H, s, a, B[j, others])
    assert_allclose(theta[j], 1.0 / (W_before[j, j] + 2 * now))
    assert_allclose(progress, 2.0 * (before - now) * theta[j], atol=1e-12)
    # A pass gained no more than the rule says; what is left is of its order.
    assert now - best < 30 * inner / theta_before


@pytest.mark.parametrize("p", SIZES)
@pytest.mark.parametrize("kind", ["one row", "matrix"])
def test_sweeps_end_at_the_graphical_lasso(p, kind):
    S, alpha, W, _ = problem(p, kind)
    alpha = np.minimum(alpha, alpha.T) if kind == "matrix" else np.full((1, p), 0.06)
    diagonal = np.diagonal(W).copy()
    B, theta = np.zeros((p, p)), 1.0 / diagonal
    sweeps, progress, ok, definite = descend(
        S, alpha, W, B, theta, 1e-15, 1e-8, 1e-18, 500, np.arange(p)
    )
    assert ok
    assert definite
    assert 1 < sweeps < 500
    assert progress <= 1e-15
    T = -B * theta[:, None]
    np.fill_diagonal(T, theta)
    penalty = penalty_matrix(alpha, p, False)
    np.fill_diagonal(penalty, diagonal - np.diagonal(S))
    assert optimality_error(S, penalty, 0.5 * (T + T.T)) < 1e-6
    assert_allclose(W @ T, np.eye(p), atol=1e-5)


@pytest.mark.parametrize("inner", [1e-9, 1e-3])
def test_units_do_not_matter_to_the_bit(inner):
    """In other units, by a power of two, every step and every decision is the same."""
    found = []
    for unit in (1.0, 2.0**20):
        S, alpha, W, rng = problem(23, "matrix")
        B, theta = np.where(rng.random((23, 23)) < 0.1, 0.3, 0.0), 1.0 / np.diagonal(W)
        np.fill_diagonal(B, 0.0)
        S, alpha, W, theta = unit * S, unit * alpha, unit * W, theta / unit
        told = descend(S, alpha, W, B, theta, 1e-6, inner, inner, 20, np.arange(23))
        found.append((told, W / unit, B, unit * theta))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        assert_array_equal(one, other)


def test_sweeps_end_at_their_target_or_their_number():
    S, alpha, W, _ = problem(7, "one row")
    start = (np.zeros((7, 7)), 1.0 / np.diagonal(W))

    def run(target, most):
        B, theta = (each.copy() for each in start)
        return descend(S, alpha, W.copy(), B, theta, target, 1e-12, 1e-12, most, np.arange(7))

    assert run(np.inf, 9)[0] == 1
    sweeps, progress, ok, _ = run(0.0, 3)
    assert (sweeps, ok) == (3, True)
    # A target is reached when progress equals it.
    assert run(progress, 9)[:2] == (3, progress)
    assert run(progress * (1 - 1e-9), 3)[0] == 3
    assert run(progress * (1 - 1e-9), 9)[0] > 3


def test_a_conditional_variance_that_is_not_positive_ends_the_descent():
    S = np.array([[1.0, 2.0], [2.0, 1.0]])
    W, B, theta = np.eye(2), np.zeros((2, 2)), np.ones(2)
    alpha = np.full((1, 2), 0.5)
    found = descend(S, alpha, W, B, theta, 0.0, 1e-9, 1e-9, 5, np.arange(2))
    assert found == (1, np.inf, False, False)


def test_a_fit_of_more_than_the_variance_is_not_definite():
    """A tolerance without bounds moves nothing, and the start explains four times the variance."""
    S, W, theta = np.eye(2), np.eye(2), np.ones(2)
    B = np.array([[0.0, 2.0], [0.0, 0.0]])
    alpha = np.full((1, 2), 0.1)
    sweeps, _, ok, definite = descend(S, alpha, W, B, theta, 0.0, 1e9, 1e9, 1, np.array([0]))
    assert (sweeps, ok, definite) == (1, True, False)
    assert B[0, 1] == 2.0
    assert W[0, 1] == W[1, 0] == 2.0
    # Diagonal, and twice the objective of the column there.
    assert_allclose(theta[0], 1.0 / (1.0 + 4.0 + 2 * 0.1 * 2.0))


def test_nonzeros_are_listed():
    active = np.full(6, 99, np.uint32)
    assert _nonzeros(np.array([0.0, -1.0, 0.0, 2.0, 0.0]), active) == 2
    assert active[:2].tolist() == [1, 3]
    assert _nonzeros(np.zeros(5), active) == 0


@pytest.mark.parametrize("slack", [0.0, 0.25, 5.0])
def test_variables_that_could_enter_are_appended(slack):
    s, g = np.array([1.0, 0.0, -1.0, 0.3, 2.0]), np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    a, allowed = np.full(5, 0.5), np.array([1.0, 0.4, 2.0, 1.0, 0.0])
    active = np.full(7, 99, np.uint32)
    active[0] = 4
    m = _violators(s, g, a, allowed, slack, active, 1)
    expected = np.flatnonzero((np.abs(s - g) - a) * allowed > slack).tolist()
    assert expected == {0.0: [0, 1, 2], 0.25: [0, 2], 5.0: []}[slack]
    assert m == 1 + len(expected)
    assert active[:m].tolist() == [4, *expected]


@pytest.mark.parametrize(("g", "allowed", "enters"), [(-1.0, 1.0, 1), (0.9, 3.0, 0), (0.0, 4.0, 1)])
def test_a_single_variable_that_could_enter(g, allowed, enters):
    """(|1 - g| - 1/2) allowed > 1."""
    active = np.zeros(3, np.uint32)
    one = [np.array([x]) for x in (1.0, g, 0.5, allowed)]
    assert _violators(*one, 1.0, active, 0) == enters


def test_a_row_of_the_active_variables_is_copied_and_padded():
    rng = np.random.default_rng(0)
    W, sub = rng.normal(size=(9, 9)), np.full((8, 8), 7.0)
    active = np.array([5, 2, 8, 0], np.uint32)
    _copy_row(W, active, 1, 3, 2, sub)
    expected = np.full(8, 0.0)
    expected[0], expected[1:3] = 7.0, W[8, [2, 8]]
    assert_array_equal(sub[2], expected)
    assert (np.delete(sub, 2, axis=0) == 7.0).all()
