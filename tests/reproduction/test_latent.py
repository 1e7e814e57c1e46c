"""PPCA and GPLVM against closed forms, scikit-learn and finite differences."""

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from reproduction.baselines import GPLVM, PPCA


def test_ppca_has_the_maximum_of_likelihood_and_posterior_means():
    rows = scale(load_wine().data)
    model = PPCA(3).fit(rows)
    loadings = model.loadings_
    covariance = loadings @ loadings.T + model.noise_variance_ * np.eye(13)
    np.testing.assert_allclose(covariance, PCA(3).fit(rows).get_covariance(), atol=1e-10)
    # Conditional mean of the joint Gaussian of (x, y), without the Woodbury identity.
    expected = (rows - model.mean_) @ np.linalg.inv(covariance) @ loadings
    np.testing.assert_allclose(model.transform(rows), expected, atol=1e-10)


def test_gplvm_lowers_its_objective_and_keeps_the_classes_of_seen_and_unseen_rows():
    rows, labels = load_iris(return_X_y=True)
    rows = scale(rows)
    model = GPLVM(2, max_rows=75, random_state=0)
    positions = model.fit_transform(rows)
    assert model.objective_ < model.set_params(max_iter=1).fit(rows).objective_
    assert positions.shape == (150, 2)
    assert model.latent_.shape == (75, 2)
    neighbors = KNeighborsClassifier(5).fit(positions[::2], labels[::2])
    assert neighbors.score(positions[1::2], labels[1::2]) > 0.85
