"""Maximum likelihood on a given graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from mnpca import sparse_precision
from mnpca.precision import refit_on_support

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
