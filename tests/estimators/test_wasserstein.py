"""WassersteinMNPCA: what it recovers, what it reports and what it refuses."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from mnpca import WassersteinMNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import psnr


@pytest.fixture(scope="module")
def data():
    return make_paper_small(64, 1000, n_samples=90, n_features=60, density=0.03)


@pytest.fixture(scope="module")
def fitted(data):
    return WassersteinMNPCA(2, center=False).fit(data.Y)


def pca_signal(Y):
    left, values, right = np.linalg.svd(Y, full_matrices=False)
    return (left[:, :2] * values[:2]) @ right[:2]


def test_it_recovers_more_than_pca(data, fitted):
    assert psnr(fitted.denoise(), data.signal) > psnr(pca_signal(data.Y), data.signal) + 2
    for side in (fitted.row_precision_, fitted.col_precision_):
        assert side.nnz < 0.2 * side.shape[0] ** 2


def test_the_units_of_the_data_do_not_matter(data, fitted):
    units = 10 ** np.linspace(-1.5, 1.5, 60)
    other = WassersteinMNPCA(2, center=False).fit(data.Y * units)
    np.testing.assert_allclose(other.denoise() / units, fitted.denoise(), atol=1e-4)


def test_centering_takes_the_mean_out(data):
    model = WassersteinMNPCA(2).fit(data.Y + 100)
    np.testing.assert_allclose(model.mean_, data.Y.mean(axis=0) + 100)
    np.testing.assert_allclose(
        model.denoise() - 100, WassersteinMNPCA(2).fit(data.Y).denoise(), atol=1e-6
    )


def test_all_components_leave_no_noise():
    X = np.random.default_rng(1000).normal(size=(20, 3))
    model = WassersteinMNPCA(3).fit(X)
    np.testing.assert_allclose(model.denoise(), X)
    np.testing.assert_array_equal(model.row_precision_.toarray(), np.eye(20))
    reference = PCA(3).fit(X).components_
    np.testing.assert_allclose(np.abs(model.components_ @ reference.T), np.eye(3), atol=1e-8)


@pytest.mark.parametrize("objective", ["relaxed", "original"])
def test_gradient_method(data, objective):
    model = WassersteinMNPCA(
        2, method="gradient", objective=objective, center=False, max_iter=30, tol=1.0
    ).fit(data.Y)
    assert len(model.objective_history_) == 31
    assert model.objective_history_[-1] < model.objective_history_[0]
    assert model.row_precision_.nnz == 90**2
    assert np.isfinite(model.denoise()).all()


@pytest.mark.parametrize(
    ("method", "remedy"), [("convex", "Increase max_iter or tol"), ("gradient", "unit variance")]
)
def test_a_fit_that_did_not_converge_says_what_to_change(data, method, remedy):
    with pytest.warns(ConvergenceWarning, match=remedy):
        WassersteinMNPCA(2, method=method, max_iter=3).fit(data.Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "original"}, 'Use method="gradient"'),
        ({"alpha_row": 0.0}, "alpha_row must be positive"),
        ({"alpha_col": 0}, "alpha_col must be positive"),
        ({"alpha_row": 1e6}, "penalty outweighs the noise"),
        ({"method": "newton"}, "'method' parameter"),
        ({"n_components": 61}, "n_components=61"),
    ],
)
def test_what_is_refused(data, params, message):
    with pytest.raises(ValueError, match=message):
        WassersteinMNPCA(**params).fit(data.Y)
