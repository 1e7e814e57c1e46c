"""MN-PCA of AnnData objects, and scanpy on the result."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mnpca as package
from mnpca.datasets import make_paper_small
from mnpca.interop.anndata import fit_anndata, normalize_counts

anndata = pytest.importorskip("anndata")
# How well these small data are fitted is tested elsewhere.
pytestmark = pytest.mark.filterwarnings(
    "ignore::mnpca.model.whiteness.ModelCheckWarning",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


@pytest.fixture(scope="module")
def data():
    return make_paper_small(c=32, seed=1000, n_samples=90, n_features=64, density=0.03)


QUICK = {"noise": "diagonal", "prior": "gaussian"}


@pytest.fixture(scope="module")
def result(data):
    """An object with a result; no test changes it."""
    adata = make(data)
    assert fit_anndata(adata, n_comps=2, noise="graph", prior="gaussian") is None
    return adata


def make(data, X=None):
    n, p = data.Y.shape
    return anndata.AnnData(
        data.Y if X is None else X,
        obs=pd.DataFrame({"group": data.labels.astype(str)}, index=[f"cell{i}" for i in range(n)]),
        var=pd.DataFrame({"use": np.arange(p) % 6 != 0}, index=[f"gene{j}" for j in range(p)]),
    )


def test_results_are_the_estimator_s(data, result):
    adata = result
    model = package.MNPCA(2, noise="graph", prior="gaussian", random_state=0).fit(data.Y)
    np.testing.assert_allclose(adata.obsm["X_mnpca"], model.transform(data.Y))
    np.testing.assert_allclose(adata.varm["mnpca"], model.components_.T)
    for stored, expected in (
        (adata.obsp["mnpca_precision"], model.row_precision_),
        (adata.varp["mnpca_precision"], model.col_precision_),
    ):
        assert sp.issparse(stored)
        np.testing.assert_allclose(stored.toarray(), expected.toarray())
    assert adata.uns["mnpca"]["n_components"] == 2


def test_layer_mask_key_copy_and_sparse(data):
    adata = make(data, np.zeros_like(data.Y))
    adata.layers["log"] = sp.csr_matrix(data.Y)
    options = {"layer": "log", "mask_var": "use", "key_added": "mine", "copy": True}
    result = fit_anndata(adata, 2, **options, **QUICK)
    assert "mine" not in adata.obsm
    used = adata.var["use"].to_numpy()
    model = package.MNPCA(2, random_state=0, **QUICK).fit(sp.csr_matrix(data.Y[:, used]))
    np.testing.assert_allclose(result.obsm["mine"], model.transform(data.Y[:, used]))
    np.testing.assert_allclose(result.varm["mine"][used], model.components_.T)
    assert (result.varm["mine"][~used] == 0).all()
    precision = result.varp["mine_precision"].toarray()
    np.testing.assert_allclose(precision[np.ix_(used, used)], model.col_precision_.toarray())
    assert (precision[~used] == 0).all()
    assert "mine_neighbors" in result.uns


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mask_var": "none"}, "not a column"),
        ({"mask_var": [True]}, "64 booleans"),
        ({"mask_var": np.zeros(64, dtype=bool)}, "no variable"),
        ({"layer": "count"}, r"'count' is not in adata.layers; there: 'counts'"),
        ({}, "no X"),
    ],
)
def test_what_is_not_there_is_named(data, options, words):
    adata = make(data)
    adata.layers["counts"] = adata.X
    if not options:
        del adata.X
    with pytest.raises(ValueError, match=words):
        fit_anndata(adata, 2, **options)


def test_no_component_leaves_no_neighbors_of_an_earlier_run(data):
    adata = make(data)
    fit_anndata(adata, n_comps=1, **QUICK)
    assert "mnpca_neighbors" in adata.uns
    fit_anndata(adata, n_comps=0, **QUICK)
    assert "mnpca_neighbors" not in adata.uns
    assert not any("neighbors" in key for key in adata.obsp)


def test_round_trip_through_h5ad(result, tmp_path):
    result.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    np.testing.assert_array_equal(again.obsm["X_mnpca"], result.obsm["X_mnpca"])
    np.testing.assert_array_equal(again.varm["mnpca"], result.varm["mnpca"])
    for kind in ("obsp", "varp"):
        for key, matrix in getattr(result, kind).items():
            assert (getattr(again, kind)[key] != matrix).nnz == 0
    one, other = (dict(each.uns["mnpca"]) for each in (again, result))
    for key in ("singular_values", "mean"):
        np.testing.assert_array_equal(one.pop(key), other.pop(key))
    assert one == other


@pytest.mark.parametrize("key", ["mnpca_neighbors", "mnpca_noise"])
def test_scanpy_runs_on_the_result(data, result, key):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scanpy and umap warn about their own dependencies
        sc = pytest.importorskip("scanpy", reason="scanpy is not installed")
        pytest.importorskip("igraph", reason="igraph is not installed")
        adata = result.copy()
        sc.tl.leiden(adata, neighbors_key=key, flavor="igraph", n_iterations=2, directed=False)
        sc.tl.umap(adata, neighbors_key=key, maxiter=20)
    assert adata.obsm["X_umap"].shape == (90, 2)
    assert np.isfinite(adata.obsm["X_umap"]).all()
    assert adata.obs["leiden"].nunique() > 1
    if key == "mnpca_neighbors":
        together = pd.crosstab(adata.obs["leiden"], adata.obs["group"])
        assert together.max(axis=1).sum() >= 0.9 * len(data.Y)  # clusters are groups


def counts(sparse):
    rng = np.random.default_rng(3)
    rates = np.exp(rng.normal(size=(80, 2)) @ rng.normal(size=(2, 30)) * 0.5)
    values = rng.poisson(rates * rng.uniform(1, 9, (80, 1))).astype(float)
    return sp.csr_matrix(values) if sparse else values


@pytest.mark.parametrize("sparse", [False, True])
def test_raw_counts_are_noticed_and_normalized(sparse):
    adata = anndata.AnnData(counts(sparse))
    with pytest.warns(UserWarning, match="normalize_counts"):
        fit_anndata(adata, n_comps=1, **QUICK)
    normalized = normalize_counts(adata, n_top_genes=10, copy=True)
    assert sp.issparse(normalized.X) == sparse
    raw = counts(False)
    library = raw.sum(axis=1)
    expected = np.log1p(raw / library[:, None] * np.median(library))
    values = normalized.X.toarray() if sparse else normalized.X
    np.testing.assert_allclose(values, expected)
    marked = normalized.var["highly_variable"].to_numpy()
    variances = expected.var(axis=0)
    assert marked.sum() == 10
    assert variances[marked].min() > variances[~marked].max()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", package.model.whiteness.ModelCheckWarning)
        fit_anndata(normalized, n_comps=1, mask_var="highly_variable", **QUICK)
    assert normalized.obsm["X_mnpca"].shape == (80, 1)


def test_normalizing_takes_the_library_size_that_is_known():
    adata = anndata.AnnData(counts(False))
    adata.obs["library"] = np.full(80, 7.0)
    normalize_counts(adata)
    np.testing.assert_allclose(adata.X, np.log1p(counts(False)))


def test_what_is_no_count_is_not_normalized(data):
    with pytest.raises(ValueError, match="no raw counts"):
        normalize_counts(make(data))
    empty = counts(False)
    empty[4] = 0
    with pytest.raises(ValueError, match="Observation 4 has no counts"):
        normalize_counts(anndata.AnnData(empty))
