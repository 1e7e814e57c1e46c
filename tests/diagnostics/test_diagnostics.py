"""Networks, whiteness and scree against what is known of them."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from tests.known import known_fit

from mnpca import GeneralizedPCA, SparsePrecision
from mnpca.datasets import make_paper_small, sample_matrix_normal
from mnpca.diagnostics import (
    communities,
    correlations,
    item_names,
    marchenko_pastur,
    network_edges,
    network_order,
    scree,
    training_view,
    whiten,
)


def test_edges_are_those_of_the_precision():
    _, _, model = known_fit()
    edges = network_edges(model, "columns")
    precision = model.col_precision_.toarray()
    upper = np.triu(precision, 1)
    assert len(edges) == np.count_nonzero(upper)
    np.testing.assert_allclose(edges.precision, precision[edges.first, edges.second])
    scale = np.sqrt(np.diag(precision))
    expected = -edges.precision / (scale[edges.first] * scale[edges.second])
    np.testing.assert_allclose(edges.partial_correlation, expected)
    assert (np.diff(np.abs(edges.partial_correlation)) <= 1e-15).all()
    assert edges.degree().sum() == 2 * len(edges)
    assert len(edges.strongest(3)) == 3


@pytest.mark.parametrize("metric", [np.r_[0.0, np.ones(7)], aslinearoperator(np.eye(8))])
def test_metrics_that_are_no_precisions_have_no_edges(metric):
    X = np.random.default_rng(0).normal(size=(30, 8))
    model = GeneralizedPCA(2, col_metric=metric).fit(X)
    assert len(network_edges(model, "rows")) == 0
    with pytest.raises(ValueError, match="not a positive definite matrix: no network"):
        network_edges(model, "columns")


def test_a_model_of_one_network_has_no_other():
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = SparsePrecision().fit(X)
    assert len(network_edges(model, "columns")) == (model.precision_.nnz - 3) // 2
    with pytest.raises(ValueError, match='side must be "columns"'):
        network_edges(model, "rows")
    with pytest.raises(TypeError, match="two noise networks"):
        training_view(model, X)


def test_side_is_checked():
    _, _, model = known_fit()
    with pytest.raises(ValueError, match="side must be"):
        network_edges(model, "genes")


def test_communities_find_blocks_and_isolated_items():
    _, _, model = known_fit(n=30, p=10)
    block = np.full((3, 3), -0.3) + 1.3 * np.eye(3)
    model.col_precision_ = sp.csr_array(sp.block_diag([block, block, sp.eye_array(4)]))
    community = communities(network_edges(model, "columns"))
    assert community.tolist() == [0, 0, 0, 1, 1, 1, -1, -1, -1, -1]
    assert network_order(community).tolist() == list(range(10))
    labels = list("bababababa")
    order = network_order(community, labels)
    assert [labels[i] for i in order] == sorted(labels)


def test_no_edges_no_communities():
    _, _, model = known_fit(n=30, p=10)
    model.col_precision_ = sp.eye_array(10, format="csr")
    edges = network_edges(model, "columns")
    assert len(edges) == 0
    assert communities(edges).tolist() == [-1] * 10


def test_names_fall_back_on_numbers():
    data, _, model = known_fit()
    assert item_names(model, "rows")[1] == "sample 1"
    model.fit(data.Y)
    assert item_names(model, "columns")[:2] == ["0", "1"]


def test_whitening_gives_the_quadratic_form():
    data, _, model = known_fit()
    M = data.Y[: model.row_precision_.shape[0]]
    Z = whiten(M, model.row_precision_, model.col_precision_)
    expected = np.sum((model.row_precision_ @ M @ model.col_precision_) * M)
    assert np.sum(Z**2) == pytest.approx(expected, rel=1e-10)


def test_true_networks_whiten_true_noise():
    data = make_paper_small(c=224, seed=1000)
    noise = sample_matrix_normal(data.row_precision, data.col_precision, 1001)
    before = correlations(noise)
    after = correlations(whiten(noise, data.row_precision, data.col_precision))
    for side in ("rows", "columns"):
        assert before.share_above(side) > 0.1
        assert after.share_above(side) < 0.005  # white noise has 0.0027
    edge = np.sqrt(300) + np.sqrt(200)
    assert before.singular_values[0] > 1.5 * edge
    assert after.singular_values[0] < 1.05 * edge


def test_marchenko_pastur_is_the_density_of_white_singular_values():
    for shape in ((300, 200), (200, 300), (100, 100)):
        edges = abs(np.sqrt(shape[0]) - np.sqrt(shape[1])), sum(np.sqrt(shape))
        total, _ = scipy.integrate.quad(marchenko_pastur, *edges, args=(shape,))
        assert total == pytest.approx(1, abs=1e-6)
        values = np.linalg.svd(np.random.default_rng(0).normal(size=shape), compute_uv=False)
        middle = np.mean(edges)
        below, _ = scipy.integrate.quad(marchenko_pastur, edges[0], middle, args=(shape,))
        assert np.mean(values < middle) == pytest.approx(below, abs=0.03)


def test_large_matrices_are_thinned(monkeypatch):
    monkeypatch.setattr("mnpca.diagnostics.LARGEST", 20)
    assert correlations(np.random.default_rng(0).normal(size=(50, 30))).shape == (20, 20)


def test_scree_separates_signal_from_noise():
    data, frame, model = known_fit(n=300, p=200, c=224, density=0.01)
    values = scree(model, frame)
    assert (values.generalized[:2] > 1.5).all()
    assert (values.generalized[2:] < 1.1).all()
    assert np.sum(values.plain > 1.1) > 5
    singular = np.linalg.svd(
        whiten(data.Y - model.mean_, model.row_precision_, model.col_precision_),
        compute_uv=False,
    )
    np.testing.assert_allclose(
        values.generalized[:2], singular[:2] / (np.sqrt(300) + np.sqrt(200)), rtol=1e-6
    )
