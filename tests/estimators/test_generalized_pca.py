"""GeneralizedPCA: PCA where it should be, and every form of metric."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from mnpca import GeneralizedPCA
from mnpca.datasets import make_paper_small
from mnpca.model.metric import laplacian_metric


@pytest.fixture(scope="module")
def data():
    return make_paper_small(8, 0, n_samples=60, n_features=40, density=0.03)


def same_up_to_sign(ours, theirs, tol):
    sign = np.sign(np.sum(ours * theirs, axis=1, keepdims=True))
    np.testing.assert_allclose(ours, sign * theirs, atol=tol)


@pytest.mark.parametrize("shape", [(60, 20), (20, 20), (15, 40), (60, 5)])
@pytest.mark.parametrize("solver", ["factor", "krylov"])
def test_identity_metrics_give_pca(shape, solver):
    Y = np.random.default_rng(0).normal(size=shape) * np.linspace(1, 3, shape[1]) + 7
    k = None if shape[1] == 5 else 5
    ours, theirs = GeneralizedPCA(k, solver=solver).fit(Y), PCA(k, svd_solver="full").fit(Y)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-10)
    same_up_to_sign(ours.components_, theirs.components_, 1e-10)
    same_up_to_sign(ours.transform(Y).T, theirs.transform(Y).T, 1e-9)
    np.testing.assert_allclose(ours.mean_, theirs.mean_)
    back = theirs.inverse_transform(theirs.transform(Y))
    np.testing.assert_allclose(ours.denoise(), back, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(Y)), back, atol=1e-9)
    largest = np.argmax(np.abs(ours.components_), axis=1)
    assert np.all(ours.components_[np.arange(5), largest] > 0)


def test_score_is_that_of_probabilistic_pca():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 12)) + rng.normal(size=(80, 12))
    new = rng.normal(size=(9, 12))
    ours, theirs = GeneralizedPCA(3).fit(Y), PCA(3, svd_solver="full").fit(Y)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_)
    np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new))
    assert ours.score(new) == pytest.approx(theirs.score(new))


@pytest.mark.parametrize("form", ["dense", "sparse", "operator"])
def test_forms_of_a_metric(data, form):
    make = {"dense": lambda M: M.toarray(), "sparse": sp.csc_matrix, "operator": aslinearoperator}
    metrics = {
        "row_metric": make[form](data.row_precision),
        "col_metric": make[form](data.col_precision),
    }
    reference = GeneralizedPCA(2, row_metric=data.row_precision, col_metric=data.col_precision)
    reference.fit(data.Y)
    model = GeneralizedPCA(2, **metrics).fit(data.Y)
    np.testing.assert_allclose(model.components_, reference.components_, atol=1e-7)
    np.testing.assert_allclose(model.transform(data.Y), reference.transform(data.Y), atol=1e-6)
    np.testing.assert_allclose(model.noise_variance_, reference.noise_variance_)
    gram = model.components_ @ (data.col_precision @ model.components_.T)
    np.testing.assert_allclose(gram, np.eye(2), atol=1e-8)
    if form != "operator":
        np.testing.assert_allclose(model.row_precision_.toarray(), data.row_precision.toarray())
        assert model.score(data.Y) == pytest.approx(reference.score(data.Y))


def test_named_metrics(data):
    by_name = GeneralizedPCA(2, row_metric="laplacian").fit(data.Y)
    by_hand = GeneralizedPCA(2, row_metric=laplacian_metric(data.Y)).fit(data.Y)
    np.testing.assert_array_equal(by_name.components_, by_hand.components_)
    columns = GeneralizedPCA(2, col_metric="laplacian").fit(data.Y)
    np.testing.assert_allclose(
        columns.col_precision_.toarray(), laplacian_metric(data.Y.T).toarray()
    )
    with pytest.raises(ValueError, match="no network"):
        GeneralizedPCA(2, col_metric=np.r_[0.0, np.ones(39)]).fit(data.Y).noise_graph("columns")


def test_smooth_metric_has_a_result_or_an_error():
    # Along a line the metric is a Gaussian kernel, which is positive definite.
    line = np.outer(np.random.default_rng(0).normal(size=30), [1.0, 0.5, -0.3])
    model = GeneralizedPCA(1, row_metric="smooth").fit(line)
    np.testing.assert_allclose(model.denoise(), line, atol=1e-8)
    uneven = np.random.default_rng(1).normal(size=(30, 40)) * 0.3
    with pytest.raises(ValueError, match="row_metric is not positive semi-definite"):
        GeneralizedPCA(2, row_metric="smooth").fit(uneven)


@pytest.mark.parametrize("solver", ["factor", "krylov", "power"])
def test_metrics_that_are_none(data, solver):
    bad = np.eye(60)
    bad[0, 0] = -1
    with pytest.raises(ValueError, match="row_metric is not positive semi-definite"):
        GeneralizedPCA(2, row_metric=bad, solver=solver).fit(data.Y)
    with pytest.raises(ValueError, match=r"col_metric must have shape \(40, 40\)"):
        GeneralizedPCA(2, col_metric=np.eye(3), solver=solver).fit(data.Y)


def test_semi_definite_metrics_project_the_same_way(data):
    """Scores of the training rows are their projections, in null directions too."""
    model = GeneralizedPCA(2, row_metric="laplacian", col_metric=np.r_[0, np.ones(39)]).fit(data.Y)
    np.testing.assert_allclose(model.transform(data.Y), model.low_rank_.left, atol=1e-8)
    with pytest.raises(ValueError, match="no inverse covariance"):
        model.score(data.Y)


@pytest.mark.parametrize("center", [True, False])
def test_sparse_data_stay_sparse(center, monkeypatch):
    rng = np.random.default_rng(0)
    Y = sp.csr_array(rng.random((400, 150)) * (rng.random((400, 150)) < 0.05))
    dense = GeneralizedPCA(4, center=center, solver="factor").fit(Y.toarray())
    # Batches of rows may be dense, the matrix may not.
    monkeypatch.setattr("mnpca.model.rows.ROWS_AT_ONCE", 50)
    full = sp.csr_array.toarray

    def small_only(self, *args, **kwargs):
        assert self.shape[0] <= 50 or self.shape == (150, 150)
        return full(self, *args, **kwargs)

    monkeypatch.setattr(sp.csr_array, "toarray", small_only)
    model = GeneralizedPCA(4, center=center).fit(Y)
    np.testing.assert_allclose(model.components_, dense.components_, atol=1e-6)
    np.testing.assert_allclose(model.transform(Y[:30]), dense.low_rank_.left[:30], atol=1e-7)
    np.testing.assert_allclose(model.noise_variance_, dense.noise_variance_)
    assert model.score(Y[:30]) == pytest.approx(dense.score(full(Y[:30])))
    with pytest.raises(ValueError, match="would make the sparse X dense"):
        GeneralizedPCA(4, solver="factor").fit(Y)


def test_convergence_warning_and_verbosity(data, capsys):
    with pytest.warns(ConvergenceWarning, match="Increase max_iter or tol"):
        model = GeneralizedPCA(2, solver="power", max_iter=2, verbose=1).fit(data.Y)
    assert not model.converged_
    assert "power: 2 iterations" in capsys.readouterr().out


def test_likelihood_of_data_whose_mean_is_zero_is_that_of_pca():
    half = np.random.default_rng(0).integers(-5, 6, size=(10, 6)).astype(float)
    X = np.vstack([half, -half])  # column means are exactly zero
    assert GeneralizedPCA(2).fit(X).score(X) == pytest.approx(PCA(2).fit(X).score(X), rel=1e-10)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", [(40, 40), (60, 30), (40, 200)])
def test_krylov_in_metrics_of_large_condition(shape, container):
    """The basis is as large as the space, and the metrics nearly lack some of its directions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    for condition in (1e6, 1e10):
        row_metric, col_metric = (_metric_of_condition(size, condition, rng) for size in shape)
        metrics = {"row_metric": row_metric, "col_metric": col_metric}
        exact = GeneralizedPCA(5, solver="factor", **metrics).fit(X)
        for max_iter in (5, 20):
            krylov = GeneralizedPCA(5, solver="krylov", max_iter=max_iter, **metrics)
            values = krylov.fit(container(X)).singular_values_
            np.testing.assert_allclose(values, exact.singular_values_, rtol=1e-8)
        values = GeneralizedPCA(5, **metrics).fit(container(X)).singular_values_
        np.testing.assert_allclose(values, exact.singular_values_, rtol=1e-8)


def _metric_of_condition(size, condition, rng):
    vectors = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return (vectors * np.logspace(0, -np.log10(condition), size)) @ vectors.T
