"""What the estimators have in common with PCA and with each other."""

import functools
import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

import mnpca
from mnpca.datasets import make_low_rank_matrix_normal, make_tensor_normal
from mnpca.model.rows import gls_scores

DATA = make_low_rank_matrix_normal(40, 15, 3, condition=4, signal_scale=2.0, random_state=1000)
X = DATA.Y
CUBE = make_tensor_normal((12, 9, 8), 1, random_state=1000).Y
PCA_LIKE = {
    "GeneralizedPCA": mnpca.GeneralizedPCA(2, col_metric=DATA.col_precision),
    "LikelihoodMNPCA": mnpca.LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.2, tol=1e-3),
    "MNPCA": mnpca.MNPCA(2, noise="graph", prior="gaussian"),
    "WassersteinMNPCA": mnpca.WassersteinMNPCA(2),
}
OF_AXES = {
    "DimensionFoldingPCA": mnpca.DimensionFoldingPCA(1, 1, noise="diagonal"),
    "TensorMNPCA": mnpca.TensorMNPCA(1, noise="diagonal"),
}
ESTIMATORS = (*PCA_LIKE, *OF_AXES, "SparsePrecision")


@functools.cache
def fitted(name):
    """Return a model that no test changes, fitted to X or to CUBE."""
    return clone((PCA_LIKE | OF_AXES)[name]).fit(X if name in PCA_LIKE else CUBE)


@pytest.fixture(params=PCA_LIKE)
def model(request):
    return fitted(request.param)


@pytest.fixture(params=[*PCA_LIKE, *OF_AXES])
def with_scores(request):
    """A model and the scores of its training data, as whole numbers."""
    model = fitted(request.param)
    return model, np.round(model.transform(X if request.param in PCA_LIKE else CUBE))


def test_components_are_orthonormal_in_the_metric_with_fixed_signs(model):
    loadings = model.components_
    assert loadings.shape == (model.n_components_, 15) == (2, 15)
    np.testing.assert_allclose(loadings @ (model.col_precision_ @ loadings.T), np.eye(2), atol=1e-4)
    assert (loadings[[0, 1], np.abs(loadings).argmax(axis=1)] > 0).all()
    assert model.singular_values_[0] >= model.singular_values_[1] > 0


def test_precisions_are_sparse_and_in_the_common_gauge(model):
    for precision, size in ((model.row_precision_, 40), (model.col_precision_, 15)):
        assert precision.shape == (size, size)
        assert precision.format == "csr"
        assert (precision.data != 0).all()
        np.linalg.cholesky(precision.toarray())
    assert np.linalg.slogdet(model.row_precision_.toarray())[1] == pytest.approx(0, abs=1e-6)


def test_rows_are_projected_one_by_one_and_back(model):
    rows = np.vstack([X, 1.0 - 2.0 * X[:3]])
    scores = model.transform(rows)
    expected = gls_scores(rows - model.mean_, model.col_precision_, model.components_.T)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.transform(rows[-5:]), scores[-5:], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.transform(X))
    back = scores @ model.components_ + model.mean_
    np.testing.assert_allclose(model.inverse_transform(scores), back, atol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_rows_have_the_type_of_their_scores(with_scores, kind):
    model, scores = with_scores
    rows = model.inverse_transform(scores.astype(kind))
    assert rows.dtype == (kind if kind is np.float32 else np.float64)
    np.testing.assert_allclose(rows, model.inverse_transform(scores), rtol=1e-4, atol=1e-4)


def test_scores_of_another_model_are_refused(with_scores):
    model, scores = with_scores
    with pytest.raises(ValueError, match="Pass what transform returns"):
        model.inverse_transform(np.repeat(scores, 3, axis=-1))


def test_scores_of_other_libraries(model):
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    scores = np.round(model.transform(X))
    expected = model.inverse_transform(scores)
    rows = model.inverse_transform(torch.tensor(scores, dtype=torch.int64))
    assert rows.dtype == torch.float64
    np.testing.assert_allclose(rows.numpy(), expected)
    for kind, dtype in ((np.float32, np.float32), (np.int64, np.float64)):
        rows = model.inverse_transform(da.from_array(scores.astype(kind), chunks=(10, 1)))
        assert rows.dtype == rows.compute().dtype == dtype
        np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)
    for wrong in (torch.ones((3, 3)), da.ones((3, 3))):
        with pytest.raises(ValueError, match=r"3 scores a row, but .* has 2 components"):
            model.inverse_transform(wrong)


def test_networks_are_graphs_with_the_names_of_a_frame(model):
    rows, columns = ([f"{kind} {i}" for i in range(n)] for kind, n in (("cell", 40), ("gene", 15)))
    frame = pd.DataFrame(X, index=rows, columns=columns)
    named = clone(model).set_output(transform="pandas").fit(frame)
    assert list(named.feature_names_in_) == columns
    prefix = type(model).__name__.lower()
    assert list(named.transform(frame).columns) == [f"{prefix}0", f"{prefix}1"]
    assert list(named.transform(frame).index) == rows
    for side, names in (("rows", rows), ("columns", columns)):
        precision = (named.row_precision_ if side == "rows" else named.col_precision_).toarray()
        graph = named.noise_graph(side)
        by_number = named.noise_graph(0 if side == "rows" else 1)
        assert dict(by_number.nodes) == dict(graph.nodes)
        assert set(by_number.edges) == set(graph.edges)
        assert [node["name"] for _, node in graph.nodes(data=True)] == names
        assert graph.number_of_edges() == np.count_nonzero(np.triu(precision, 1))
        for i, j, edge in graph.edges(data=True):
            assert edge["precision"] == precision[i, j]
            scale = np.sqrt(precision[i, i] * precision[j, j])
            assert edge["partial_correlation"] == pytest.approx(-precision[i, j] / scale)
    with pytest.raises(ValueError, match='side must be "rows" or "columns"'):
        named.noise_graph("genes")
    if not hasattr(named, "edges"):
        with pytest.raises(ValueError, match="tests no edges; MNPCA and SparsePrecision do"):
            named.noise_graph(fdr=0.05)
    assert not hasattr(named.fit(X), "sample_names_in_")
    assert named.noise_graph("rows").nodes[5]["name"] == "5"


def test_variances_are_those_of_the_scores_and_of_the_model(model):
    scores = model.transform(X)
    np.testing.assert_allclose(
        model.explained_variance_, scores.T.dot(scores).diagonal() / (len(X) - 1), rtol=0.2
    )
    total = np.trace(model.col_precision_ @ model.get_covariance())
    np.testing.assert_allclose(
        model.explained_variance_ratio_, model.explained_variance_ / total, rtol=1e-8
    )
    assert 0 < model.explained_variance_ratio_.sum() < 1


@pytest.mark.parametrize("center", [True, False])
def test_in_the_identity_metric_variances_are_those_of_pca(center):
    data = X + 2.0 if center else X - X.mean(axis=0)
    model = mnpca.GeneralizedPCA(3, center=center).fit(data)
    plain = PCA(3).fit(data)
    # Without a mean the divisor is n instead of n - 1.
    scale = 1.0 if center else (len(X) - 1) / len(X)
    np.testing.assert_allclose(model.explained_variance_, scale * plain.explained_variance_)
    np.testing.assert_allclose(model.explained_variance_ratio_, plain.explained_variance_ratio_)


def test_a_share_shows_the_fewest_components_that_have_it():
    every = mnpca.MNPCA(noise="diagonal", prior="gaussian").fit(X)
    squares = np.cumsum(every.singular_values_**2) / np.sum(every.singular_values_**2)
    share = float(squares[1] - 1e-6)
    model = mnpca.MNPCA(share, noise="diagonal", prior="gaussian").fit(X)
    assert model.n_components_ == 2 < model.n_signal_ == every.n_components_
    np.testing.assert_allclose(model.components_, every.components_[:2], atol=1e-6)
    with pytest.raises(ValueError, match="share of the signal"):
        mnpca.MNPCA(0.5).fit(np.where(X > 3, np.nan, X))
    with pytest.raises(ValueError, match="'n_components' parameter"):
        mnpca.LikelihoodMNPCA(0.5).fit(X)
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        mnpca.MNPCA(n_jobs=0).fit(X)


def test_a_share_of_the_data_is_that_of_pca():
    for share in (0.3, 0.6, 0.95):
        assert mnpca.GeneralizedPCA(share).fit(X).n_components_ == PCA(share).fit(X).n_components_


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


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_parameter_and_nothing_else_is_documented(name):
    estimator = getattr(mnpca, name)
    text = inspect.getdoc(estimator).partition("Parameters\n----------\n")[2]
    entries = [line for line in text.partition("\nAttributes\n")[0].splitlines() if " : " in line]
    documented = [
        each for line in entries if line[0] != " " for each in line.split(" : ")[0].split(", ")
    ]
    assert sorted(documented) == sorted(inspect.signature(estimator).parameters)
    assert "{" not in "".join(line for line in text.splitlines() if not line.count('"'))


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (PCA_LIKE["MNPCA"], X),
        (PCA_LIKE["MNPCA"], np.where(X > 4, np.nan, X)),
        (PCA_LIKE["LikelihoodMNPCA"], X),
        (PCA_LIKE["WassersteinMNPCA"], X),
        (mnpca.TensorMNPCA(1), CUBE),
        (mnpca.DimensionFoldingPCA(1, 1), CUBE),
    ],
    ids=["MNPCA", "missing", "likelihood", "Wasserstein", "tensor", "folding"],
)
def test_callbacks_hear_an_objective_that_is_minimized(model, data):
    heard = []
    clone(model).fit(data, callback=lambda told: heard.append((told.stage, told.objective)))
    last = [value for stage, value in heard if stage == heard[-1][0]]
    assert last[-1] <= last[0] + 1e-9
