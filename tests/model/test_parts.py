"""The small functions of the model against their definitions."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal

from mnpca.datasets import random_sparse_precision
from mnpca.model.gauge import normalize_gauge
from mnpca.model.likelihood import row_log_likelihood
from mnpca.model.low_rank import LowRank, fix_signs
from mnpca.model.projection import gls_scores
from mnpca.model.sparse import blocks, components, logdet


def test_low_rank_and_its_signs():
    left, right = np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [-3.0, 2.0], [0.0, -2.0]])
    fixed = fix_signs(left, right)
    np.testing.assert_array_equal(fixed.dense(), LowRank(left, right).dense())
    np.testing.assert_array_equal(fixed.right[:, 0], [-1, 3, 0])
    np.testing.assert_array_equal(fixed.right[:, 1], right[:, 1])  # a tie: the first one decides
    assert fix_signs(np.zeros((3, 0)), np.zeros((2, 0))).dense().shape == (3, 2)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_scores_minimize_the_distance(form):
    rng = np.random.default_rng(0)
    rows, loadings, mean = rng.normal(size=(7, 9)), rng.normal(size=(9, 2)), rng.normal(size=9)
    B = random_sparse_precision(9, 0.3, 8.0, 0)
    scores = gls_scores(form(rows), B, loadings, mean)
    residual = rows - mean - scores @ loadings.T
    np.testing.assert_allclose(residual @ (B @ loadings), 0, atol=1e-12)
    np.testing.assert_allclose(gls_scores(rows - mean, B, loadings), scores, atol=1e-12)


def test_an_empty_component_scores_nothing():
    loadings = np.column_stack([np.ones(4), np.zeros(4)])
    scores = gls_scores(np.ones((3, 4)), np.eye(4), loadings)
    np.testing.assert_allclose(scores, [[1, 0]] * 3)


def test_a_large_mean_does_not_cancel():
    rng = np.random.default_rng(0)
    rows, loadings = rng.normal(size=(5, 6)), rng.normal(size=(6, 2))
    mean = np.full(6, 1e9)
    far = gls_scores(rows + mean, np.eye(6), loadings, mean)
    np.testing.assert_allclose(far, gls_scores((rows + mean) - mean, np.eye(6), loadings))


def test_logdet_by_components():
    precision = sp.csr_array(
        sp.block_diag([random_sparse_precision(6, 0.5, 8.0, 0), [[3.0]], [[0.5]]])
    )
    np.testing.assert_allclose(logdet(precision), np.linalg.slogdet(precision.toarray())[1])
    found = {tuple(items) for items in components(precision)}
    graph = nx.from_scipy_sparse_array(precision)
    assert found == {tuple(sorted(part)) for part in nx.connected_components(graph)}
    for items, block in blocks(precision):
        assert len(items) > 1
        np.testing.assert_array_equal(block, precision.toarray()[np.ix_(items, items)])


@pytest.mark.parametrize("matrix", [np.diag([1.0, -1.0]), np.array([[1.0, 2.0], [2.0, 1.0]])])
def test_logdet_of_what_is_not_positive(matrix):
    with pytest.raises(np.linalg.LinAlgError):
        logdet(sp.csr_array(matrix))


def test_gauge():
    A, B = 3 * random_sparse_precision(8, 0.3, 8.0, 0), random_sparse_precision(5, 0.3, 8.0, 1)
    row, col = normalize_gauge(A, B)
    np.testing.assert_allclose(logdet(row), 0, atol=1e-12)
    np.testing.assert_allclose(
        sp.kron(row, col).toarray(), sp.kron(A, B).toarray(), rtol=1e-12, atol=1e-15
    )


def test_likelihood_of_rows():
    rng = np.random.default_rng(0)
    p, k, noise = 7, 2, 1.7
    B, W = random_sparse_precision(p, 0.4, 8.0, 0), rng.normal(size=(p, k))
    root = rng.normal(size=(k, k))
    covariance = W @ (root @ root.T) @ W.T + noise * np.linalg.inv(B.toarray())
    rows = rng.normal(size=(4, p))
    np.testing.assert_allclose(
        row_log_likelihood(rows, B, W, root @ root.T, noise),
        multivariate_normal(np.zeros(p), covariance).logpdf(rows),
    )
