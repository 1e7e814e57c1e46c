"""Log-density of unseen rows against SciPy's multivariate normal and t distributions."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.decomposition import PCA

from mnpca.model.rows import RowModel, row_log_likelihood, with_row_scales


@pytest.mark.parametrize("variance", [0.3, 2.0])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_density_of_a_normal_distribution(rank, variance):
    rng = np.random.default_rng(rank)
    loadings, root = rng.normal(size=(6, rank)), rng.normal(size=(rank, rank))
    noise_root = rng.normal(size=(6, 6))
    precision, covariance = noise_root @ noise_root.T + np.eye(6), root @ root.T
    rows = rng.normal(size=(8, 6))
    total = loadings @ covariance @ loadings.T + variance * np.linalg.inv(precision)
    expected = multivariate_normal(np.zeros(6), total).logpdf(rows)
    model = RowModel(sp.csr_array(precision), loadings, covariance, variance)
    assert_allclose(row_log_likelihood(rows, model), expected, rtol=1e-9)
    expected = multivariate_t(np.zeros(6), total, 4.0).logpdf(rows)
    model = model._replace(degrees_of_freedom=4.0)
    assert_allclose(row_log_likelihood(rows, model), expected, rtol=1e-9)
    assert_allclose(model.covariance(), 2.0 * total)
    assert_allclose(model.precision() @ model.covariance(), np.eye(6), atol=1e-9)


def test_identity_noise_is_probabilistic_pca():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 7)) + 0.1 * rng.normal(size=(50, 7))
    pca = PCA(2).fit(rows)
    model = RowModel(
        sp.eye_array(7, format="csr"),
        pca.components_.T,
        np.diag(pca.explained_variance_ - pca.noise_variance_),
        pca.noise_variance_,
    )
    found = row_log_likelihood(rows - pca.mean_, model)
    assert_allclose(found, pca.score_samples(rows), rtol=1e-9)


def test_components_far_above_the_noise():
    """Signal to noise of 1e20; the density along the signal is that of the signal alone."""
    loadings = np.array([[1.0], [0.0]])
    model = RowModel(sp.eye_array(2, format="csr"), loadings, np.array([[1e10]]), 1e-10)
    peak = row_log_likelihood(np.zeros((1, 2)), model)
    assert_allclose(peak, -np.log(2 * np.pi), atol=1e-9)


def test_scales_of_rows_are_found_where_there_are_any():
    rng = np.random.default_rng(7)
    precision = sp.csr_array(np.diag(np.linspace(0.5, 2.0, 8)))
    loadings = rng.normal(size=(8, 1))
    truth = RowModel(precision, loadings, np.array([[3.0]]), 0.5, 4.0)
    scatter = truth.covariance() / truth.inflation
    heavy = multivariate_t(np.zeros(8), scatter, 4.0, seed=rng).rvs(3000)
    start = RowModel(precision, loadings, np.array([[10.0]]), 2.0)
    found = with_row_scales(start, heavy)
    assert found.degrees_of_freedom == pytest.approx(4.0, rel=0.15)
    assert found.noise_variance == pytest.approx(0.5, rel=0.1)
    assert_allclose(found.score_covariance, [[3.0]], rtol=0.15)
    assert row_log_likelihood(heavy, found).sum() > row_log_likelihood(heavy, truth).sum() - 5
    normal = multivariate_normal(np.zeros(8), scatter, seed=rng).rvs(3000)
    right = start._replace(score_covariance=np.array([[3.0]]), noise_variance=0.5)
    assert with_row_scales(right, normal) is right
