"""PPCA and GPLVM against closed forms, scikit-learn and finite differences."""

import numpy as np
import pytest
import scipy.optimize
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from reproduction.baselines import GPLVM, PPCA
from reproduction.baselines.gplvm import _objective, _placing


def test_ppca_is_the_maximum_of_its_likelihood():
    rows = scale(load_wine().data)
    model = PPCA(3).fit(rows)
    reference = PCA(3).fit(rows)
    covariance = model.loadings_ @ model.loadings_.T + model.noise_variance_ * np.eye(13)
    np.testing.assert_allclose(covariance, reference.get_covariance(), atol=1e-10)
    best = multivariate_normal(model.mean_, covariance).logpdf(rows).mean()
    assert best == pytest.approx(reference.score(rows))
    for seed in range(5):
        step = 0.02 * np.random.default_rng(seed).standard_normal(model.loadings_.shape)
        moved = model.loadings_ + step
        other = moved @ moved.T + model.noise_variance_ * np.eye(13)
        assert multivariate_normal(model.mean_, other).logpdf(rows).mean() < best


def test_ppca_scores_are_posterior_means():
    rows = scale(load_wine().data)
    model = PPCA(2).fit(rows)
    loadings, noise = model.loadings_, model.noise_variance_
    # Conditional mean of the joint Gaussian of (x, y), without the Woodbury identity.
    expected = (rows - model.mean_) @ np.linalg.inv(loadings @ loadings.T + noise * np.eye(13))
    np.testing.assert_allclose(model.transform(rows), expected @ loadings, atol=1e-10)
    # The scores of PCA, each axis rescaled.
    scores = PCA(2).fit_transform(rows)
    correlation = np.corrcoef(model.transform(rows).T, scores.T)[:2, 2:]
    np.testing.assert_allclose(np.abs(correlation), np.eye(2), atol=1e-10)


def test_gplvm_gradients():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 5))
    point = np.concatenate([rng.standard_normal(24), [0.1, -1.0]])
    numeric = scipy.optimize.approx_fprime(point, lambda x: _objective(x, rows, 2)[0], 1e-6)
    np.testing.assert_allclose(_objective(point, rows, 2)[1], numeric, rtol=1e-4, atol=1e-3)

    model = GPLVM(2, max_iter=5).fit(rows)
    latent = model.latent_
    gap = ((latent[:, None] - latent[None]) ** 2).sum(-1)
    covariance = model.signal_variance_ * np.exp(-gap / 2) + model.noise_variance_ * np.eye(12)
    inverse = np.linalg.inv(covariance)
    extra = (rng.standard_normal((3, 5)), model, inverse, inverse @ model._rows)
    point = rng.standard_normal(6)
    numeric = scipy.optimize.approx_fprime(point, lambda x: _placing(x, *extra)[0], 1e-6)
    np.testing.assert_allclose(_placing(point, *extra)[1], numeric, rtol=1e-4, atol=1e-3)


def test_gplvm_lowers_its_objective_and_keeps_the_classes():
    rows, labels = load_iris(return_X_y=True)
    rows = scale(rows)
    short = GPLVM(2, max_iter=1).fit(rows)
    model = GPLVM(2).fit(rows)
    assert model.objective_ < short.objective_
    neighbors = KNeighborsClassifier(5).fit(model.latent_, labels)
    assert neighbors.score(model.latent_, labels) > 0.93


def test_gplvm_places_unseen_rows_among_their_class():
    rows, labels = load_iris(return_X_y=True)
    rows = scale(rows)
    model = GPLVM(2, max_rows=75, random_state=0)
    positions = model.fit_transform(rows)
    assert positions.shape == (150, 2)
    assert model.latent_.shape == (75, 2)
    neighbors = KNeighborsClassifier(5).fit(positions[::2], labels[::2])
    assert neighbors.score(positions[1::2], labels[1::2]) > 0.85
