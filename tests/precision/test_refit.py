"""Maximum likelihood on a given graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from mnpca import sparse_precision
from mnpca.precision import refit, refit_on_support
from mnpca.precision.certificate import Certificate
from mnpca.precision.iterate import Iterate
from mnpca.precision.newton import NewtonPoint
from mnpca.precision.problem import NotCertifiedError, Problem

from .reference import chain_covariance, factor_covariance


def random_graph(p, density, seed):
    upper = np.triu(np.random.default_rng(seed).random((p, p)) < density, 1)
    return upper | upper.T


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 15), st.floats(0, 1), st.integers(0, 1000), st.floats(-4, 4))
def test_likelihood_equations_hold_on_any_graph(p, density, seed, exponent):
    """inv(T) = S on the edges and the diagonal, T = 0 elsewhere (Dempster 1972)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, p)) * 10.0**exponent
    S = X.T @ X / 40
    graph = random_graph(p, density, seed)
    result = refit_on_support(S, graph, tol=1e-12)
    T = result.precision.toarray()
    kept = graph | np.eye(p, dtype=bool)
    assert not T[~kept].any()
    scale = np.sqrt(np.diagonal(S))
    error = (result.covariance - S) / np.outer(scale, scale)
    assert np.abs(error[kept]).max() < 1e-5
    assert 0 <= result.duality_gap <= 1e-12 * p
    assert_allclose(result.objective, p - np.linalg.slogdet(T)[1], rtol=1e-8, atol=1e-8)


def test_a_sparse_covariance_may_hold_the_support_alone():
    S = chain_covariance(80, 200, seed=30)
    support = sparse_precision(S, 0.15).precision
    dense = refit_on_support(S, support)
    partial = refit_on_support(sparse.csr_array(S * (support.toarray() != 0)), support)
    assert_allclose(partial.precision.toarray(), dense.precision.toarray(), atol=1e-3)
    assert abs(partial.objective - dense.objective) < 2e-6


def test_a_warm_start_from_a_smaller_graph():
    S = factor_covariance(60, 300, seed=31)
    small = sparse_precision(S, 0.5)
    large = sparse_precision(S, 0.4)
    start = refit_on_support(S, small.precision)
    warm = refit_on_support(S, large.precision, init=start)
    cold = refit_on_support(S, large.precision)
    assert_allclose(warm.objective, cold.objective, atol=1e-5)


def test_a_graph_without_a_maximum_is_refused_with_the_remedy():
    S = chain_covariance(10, 4, seed=32)
    with pytest.raises(ValueError, match="fewer edges"):
        refit_on_support(S, np.ones((10, 10)))
    # The same rank is enough for a tree.
    tree = np.eye(10, k=1) + np.eye(10, k=-1)
    result = refit_on_support(S, tree, tol=1e-10)
    assert_allclose(np.diagonal(result.covariance, 1), np.diagonal(S, 1), atol=1e-4)


@pytest.mark.parametrize(
    ("S", "support", "message"),
    [
        (np.eye(3), np.eye(2), "alike"),
        (np.eye(2), [[1, 1], [0, 1]], "support must be symmetric"),
        (np.diag([1.0, 0.0]), np.eye(2), "positive variances; the one at 1"),
        ([[1.0, np.nan], [np.nan, 1.0]], np.ones((2, 2)), "finite"),
        (np.eye(2), np.eye(2), None),
    ],
)
def test_bad_input_is_named(S, support, message):
    if message is None:
        assert_allclose(refit_on_support(S, support).precision.toarray(), np.eye(2))
    else:
        with pytest.raises(ValueError, match=message):
            refit_on_support(S, support)


# ---- its parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("S", "support", "message"),
    [
        (sparse.csr_array(np.ones((2, 3))), np.ones((2, 3)), r"square and alike, got \(2, 3\)"),
        (np.diag([1.0, np.inf]), np.eye(2), "positive variances"),
        (np.diag([-1.0, 1.0]), np.eye(2), "the one at 0 is not"),
        (np.diag([1.0, 1e-310]), np.eye(2), "the one at 1 is not"),
        (sparse.csr_array([[1.0, np.inf], [np.inf, 1.0]]), np.ones((2, 2)), "S must be finite"),
        ([[1.0, 0.5], [0.1, 1.0]], np.ones((2, 2)), r"entries \(0, 1\) and \(1, 0\) differ"),
        (sparse.csr_array([[1.0, 0.5], [0.0, 1.0]]), np.ones((2, 2)), "S must be symmetric"),
        (np.eye(2), np.eye(2), "tol must be a positive number"),
    ],
)
def test_more_bad_input_is_named(S, support, message):
    with pytest.raises(ValueError, match=message):
        refit_on_support(S, support, tol=-1.0 if "tol" in message else 1e-8)


def test_a_stored_zero_is_no_edge():
    S = chain_covariance(3, 50, seed=33)
    support = sparse.csr_array(np.ones((3, 3)))
    support.data[[2, 6]] = 0.0  # between the first and the last variable
    result = refit_on_support(S, support)
    assert result.precision.toarray()[0, 2] == 0
    # On a chain the maximum is known: the regressions are of one neighbor each.
    expected = S.copy()
    expected[0, 2] = expected[2, 0] = S[0, 1] * S[1, 2]
    assert_allclose(result.covariance, expected, atol=1e-4)
    assert_allclose(result.objective, 3 + np.linalg.slogdet(expected)[1], atol=3e-8)


def test_an_earlier_result_must_fit():
    S = chain_covariance(4, 50, seed=34)
    with pytest.raises(ValueError, match="init is for 3 variables, S has 4"):
        refit_on_support(S, np.ones((4, 4)), init=sparse_precision(np.eye(3), 0.1))


def test_sweeps_are_certified_and_tightened(monkeypatch):
    """Six certificates at most, each for sweeps ten times as exact as the last."""
    targets, duals = [], []

    def sweep(*args):
        targets.append(args[6])
        return 3, 0.0, True

    def certificate(problem, iterate, goal, dual, work):
        duals.append(dual)
        return Certificate(None, 0.0, 0.0, 1.0, 1.0, dual=float(len(duals)))

    monkeypatch.setattr(refit, "refit_sweeps", sweep)
    monkeypatch.setattr(refit, "by_factors", certificate)
    S = chain_covariance(4, 50, seed=35)
    problem = Problem(S, np.zeros((4, 4)), np.ones(4))
    iterate = Iterate(S.copy(), np.ones((4, 4)), np.ones(4))
    edges = sparse.csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    assert refit._sweep(problem, edges, 1e-3, iterate) is None
    assert_allclose(targets, 0.3 * 4e-3 * 0.1 ** np.arange(6))
    assert duals == [-np.inf, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert_allclose(iterate.B, edges.toarray())
    monkeypatch.setattr(refit, "by_factors", lambda *args: Certificate(None, 0.0, 0.0, 4e-3, 4e-3))
    targets.clear()
    solution = refit._sweep(problem, edges, 1e-3, iterate)
    assert solution.n_iter == 3
    assert len(targets) == 1


def test_the_default_tolerance_is_strict():
    S = factor_covariance(12, 200, seed=36)
    assert refit_on_support(S, random_graph(12, 0.5, 3)).duality_gap <= 12e-8


@pytest.mark.parametrize(("gap", "enough"), [(4e-8, True), (4.1e-8, False)])
def test_a_gap_of_newton_s_method_that_just_passes(monkeypatch, gap, enough):
    S = 2 * chain_covariance(4, 50, seed=37)
    edges = sparse.csr_array(np.eye(4, k=1) + np.eye(4, k=-1)).astype(bool)
    monkeypatch.setattr(refit, "_sweep", lambda *args: None)

    def newton(problem, start, goal):
        assert_allclose(start, np.diag(1 / np.diagonal(S)))
        assert goal == 4e-8
        return NewtonPoint(np.eye(4), S, 0.0, gap, 1)

    monkeypatch.setattr(refit, "newton", newton)
    if enough:
        assert refit._solve(S, np.diagonal(S), edges, 1e-8, None).certificate.gap == gap
    else:
        with pytest.raises(NotCertifiedError, match="relax tol"):
            refit._solve(S, np.diagonal(S), edges, 1e-8, None)


def test_sweeps_add_up(monkeypatch):
    S = factor_covariance(12, 200, seed=36)
    whole = refit_on_support(S, random_graph(12, 0.5, 3), tol=1e-8)
    monkeypatch.setattr(refit, "MAX_SWEEPS", 1)
    pieces = refit_on_support(S, random_graph(12, 0.5, 3), tol=1e-8)
    assert 1 < pieces.n_iter <= whole.n_iter + 1
    assert pieces.duality_gap <= 12e-8


@pytest.mark.parametrize("works", [0, 1, 2])
@pytest.mark.parametrize("warm", [False, True])
def test_what_is_tried_in_turn(monkeypatch, warm, works):
    """The given start, a cold one, Newton's method; penalties are walls where there is no edge."""
    S = 3 * chain_covariance(4, 50, seed=37)
    diagonal = np.diagonal(S).copy()
    edges = sparse.csr_array(np.eye(4, k=1) + np.eye(4, k=-1)).astype(bool)
    start = Iterate(S.copy(), np.zeros((4, 4)), np.ones(4)) if warm else None
    tried = []

    def sweep(problem, edges, tol, iterate):
        tried.append(iterate)
        assert_allclose(problem.alpha[edges.toarray()], 0.0)
        assert problem.alpha[0, 2] > 2 * np.abs(S).max()
        return "solved" if len(tried) > works else None

    monkeypatch.setattr(refit, "_sweep", sweep)
    solution = refit._solve(S, diagonal, edges, 1e-8, start)
    if warm:
        assert tried[0] is start
    n_sweeps = 1 + warm
    if works < n_sweeps:
        assert solution == "solved"
        assert len(tried) == works + 1
    else:
        assert len(tried) == n_sweeps
        assert 0 <= solution.certificate.gap <= 4e-8
    if len(tried) == n_sweeps:
        cold = tried[-1]
        assert_allclose(cold.W, S)
        assert cold.W is not S
        assert not cold.B.any()
        assert_allclose(cold.theta, 1 / diagonal)


def test_only_a_part_of_the_covariance_is_looked_at():
    S = factor_covariance(5, 50, seed=38)
    index = np.array([4, 1])
    assert_allclose(refit._restrict(S, index), S[np.ix_(index, index)])
    assert_allclose(refit._restrict(sparse.csr_array(S), index), S[np.ix_(index, index)])
    assert refit._restrict(S, np.arange(5)) is S
