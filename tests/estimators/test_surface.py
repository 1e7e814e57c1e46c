"""What the estimators have in common with PCA and with each other."""

import inspect

import numpy as np
import pytest
from sklearn.decomposition import PCA

import mnpca
from mnpca.datasets import make_low_rank_matrix_normal, make_tensor_normal

X = make_low_rank_matrix_normal(40, 15, 3, condition=4, signal_scale=2.0, random_state=1000).Y
PCA_LIKE = ("GeneralizedPCA", "LikelihoodMNPCA", "MNPCA", "WassersteinMNPCA")
ESTIMATORS = (*PCA_LIKE, "DimensionFoldingPCA", "SparsePrecision", "TensorMNPCA")


@pytest.mark.parametrize("center", [True, False])
def test_in_the_identity_metric_variances_are_those_of_pca(center):
    data = X + 2.0 if center else X - X.mean(axis=0)
    model = mnpca.GeneralizedPCA(3, center=center).fit(data)
    plain = PCA(3).fit(data)
    # Without a mean the divisor is n instead of n - 1.
    scale = 1.0 if center else (len(X) - 1) / len(X)
    np.testing.assert_allclose(model.explained_variance_, scale * plain.explained_variance_)
    np.testing.assert_allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_)


@pytest.mark.parametrize("name", PCA_LIKE)
def test_variances_are_those_of_the_scores_and_of_the_model(name):
    model = getattr(mnpca, name)(2).fit(X)
    scores = model.transform(X)
    np.testing.assert_allclose(
        model.explained_variance_, scores.T.dot(scores).diagonal() / (len(X) - 1), rtol=0.2
    )
    total = np.trace(model.col_precision_ @ model.get_covariance())
    np.testing.assert_allclose(
        model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-8
    )
    assert 0 < model.explained_variance_ratio_.sum() < 1


def test_a_share_shows_the_fewest_components_that_have_it():
    every = mnpca.MNPCA(noise="diagonal").fit(X)
    squares = np.cumsum(every.singular_values_**2) / np.sum(every.singular_values_**2)
    share = float(squares[1] - 1e-6)
    model = mnpca.MNPCA(share, noise="diagonal").fit(X)
    assert model.n_components_ == 2 < model.n_signal_ == every.n_components_
    np.testing.assert_allclose(model.components_, every.components_[:2], atol=1e-6)
    with pytest.raises(ValueError, match="share of the signal"):
        mnpca.MNPCA(0.5).fit(np.where(X > 3, np.nan, X))
    with pytest.raises(ValueError, match="'n_components' parameter"):
        mnpca.LikelihoodMNPCA(0.5).fit(X)


def test_a_share_of_the_data_is_that_of_pca():
    for share in (0.3, 0.6, 0.95):
        assert mnpca.GeneralizedPCA(share).fit(X).n_components_ == PCA(share).fit(X).n_components_


def test_all_processors_give_the_same_fit():
    one, every = (
        mnpca.MNPCA(2, noise="graph", prior="gaussian", n_jobs=jobs).fit(X) for jobs in (1, -1)
    )
    np.testing.assert_array_equal(one.denoise(), every.denoise())
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        mnpca.MNPCA(n_jobs=0).fit(X)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_parameter_that_many_have_means_one_thing(name):
    parameters = inspect.signature(getattr(mnpca, name)).parameters
    defaults = {key: value.default for key, value in parameters.items()}
    # A Tucker signal can hold the mean of a tensor; MNPCA decides by the evidence.
    own = {"MNPCA": "auto", "TensorMNPCA": False}
    assert defaults["center"] == own.get(name, True)
    assert "rank" not in defaults
    assert defaults.get("random_state") is None
    assert ("random_state" in defaults) == (name in ("GeneralizedPCA", "MNPCA", "TensorMNPCA"))


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (mnpca.MNPCA(2), X),
        (mnpca.MNPCA(2), np.where(X > 4, np.nan, X)),
        (mnpca.LikelihoodMNPCA(2), X),
        (mnpca.WassersteinMNPCA(2), X),
        (mnpca.TensorMNPCA(1), make_tensor_normal((12, 9, 8), 1, random_state=1000).Y),
        (mnpca.DimensionFoldingPCA(1, 1), make_tensor_normal((12, 9, 8), 1, random_state=1000).Y),
    ],
    ids=["MNPCA", "missing", "likelihood", "Wasserstein", "tensor", "folding"],
)
def test_callbacks_hear_an_objective_that_is_minimized(model, data):
    heard = []
    model.fit(data, callback=lambda progress: heard.append((progress.stage, progress.objective)))
    last = [value for stage, value in heard if stage == heard[-1][0]]
    assert last[-1] <= last[0] + 1e-9
