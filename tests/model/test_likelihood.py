"""Log-density of unseen rows against SciPy's multivariate normal."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from mnpca.model.rows import row_log_likelihood


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
    found = row_log_likelihood(rows, sp.csr_array(precision), loadings, covariance, variance)
    assert_allclose(found, expected, rtol=1e-9)


def test_identity_noise_is_probabilistic_pca():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 7)) + 0.1 * rng.normal(size=(50, 7))
    pca = PCA(2).fit(rows)
    found = row_log_likelihood(
        rows - pca.mean_,
        sp.eye_array(7, format="csr"),
        pca.components_.T,
        np.diag(pca.explained_variance_ - pca.noise_variance_),
        pca.noise_variance_,
    )
    assert_allclose(found, pca.score_samples(rows), rtol=1e-9)


def test_components_far_above_the_noise():
    """Signal to noise of 1e20; the density along the signal is that of the signal alone."""
    loadings = np.array([[1.0], [0.0]])
    args = (sp.eye_array(2, format="csr"), loadings, np.array([[1e10]]), 1e-10)
    peak = row_log_likelihood(np.zeros((1, 2)), *args)
    assert_allclose(peak, -np.log(2 * np.pi), atol=1e-9)
