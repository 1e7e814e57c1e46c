"""Metrics: forms, checks, factors."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import mnpca.model.metric as module
from mnpca.datasets import random_sparse_precision
from mnpca.model.metric import (
    MetricError,
    as_metric,
    laplacian_metric,
    orthonormalize,
    smooth_metric,
)


def semi_definite(q=8):
    basis = np.random.default_rng(0).standard_normal((q, q - 3))
    return basis @ basis.T


MATRICES = [
    None,
    np.arange(8.0),
    np.arange(1.0, 9.0),
    2 * np.arange(8.0),
    np.eye(8) + 0.3,
    semi_definite(),
    random_sparse_precision(8, 0.3, 5.0, 0),
    sp.csr_array(sp.block_diag([sp.coo_array(semi_definite(4)), [[0.0]], [[2.0]], np.eye(2)])),
    sp.csr_array(sp.block_diag([sp.coo_array(np.eye(4) + 0.3), [[1.0]], [[2.0]], np.eye(2)])),
    np.zeros((8, 8)),
    np.diag(2 * np.arange(8.0)),
    0.1 * semi_definite() / np.linalg.norm(semi_definite(), 2),
]


def dense(matrix):
    if matrix is None:
        return np.eye(8)
    matrix = matrix.toarray() if sp.issparse(matrix) else matrix
    return np.diag(matrix) if matrix.ndim == 1 else matrix


@pytest.mark.parametrize("matrix", MATRICES)
def test_products_and_roots(matrix):
    metric = as_metric(matrix, 8)
    expected = dense(matrix)
    x = np.random.default_rng(1).standard_normal((8, 2))
    metric.check()
    np.testing.assert_allclose(metric.apply(x), expected @ x)
    np.testing.assert_allclose(metric.stored().toarray(), expected)
    root = metric.root()
    np.testing.assert_allclose(root.times(root.adjoint(x)), expected @ x, atol=1e-10)
    assert root.singular == (np.linalg.matrix_rank(expected) < 8)
    # On the range of M, F' undoes what solve_adjoint did.
    inside = root.adjoint(x)
    np.testing.assert_allclose(root.adjoint(root.solve_adjoint(inside)), inside, atol=1e-7)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(5), r"must have shape \(8, 8\), or \(8,\) for a diagonal; got \(5, 5\)"),
        (np.ones((8, 8, 8)), "must have shape"),
        (np.eye(8) + np.eye(8, k=1), "must be symmetric"),
        (np.full(8, np.nan), "must be finite"),
        (-np.ones(8), "not positive semi-definite"),
    ],
)
def test_what_is_no_metric(matrix, message):
    with pytest.raises(MetricError, match=message):
        as_metric(matrix, 8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "matrix", [-np.eye(4), 0.5 * np.eye(4) - np.ones((4, 4)), -np.ones((4, 4))]
)
def test_negative_directions_are_found(form, matrix):
    metric = as_metric(form(matrix), 4, "col_metric")
    for look in (metric.check, metric.root):
        with pytest.raises(MetricError, match="col_metric is not positive semi-definite"):
            look()


SCALES = [1e-20, 1e-6, 1e6, 1e20]


@pytest.mark.parametrize("scale", SCALES)
def test_verdicts_do_not_depend_on_the_scale(scale):
    """What is too small to count is small compared with the matrix, not with one."""
    for form in (np.asarray, sp.csr_array):
        good = as_metric(form(scale * semi_definite()), 8)
        good.check()
        x = np.random.default_rng(1).standard_normal((8, 2))
        root = good.root()
        assert root.singular
        np.testing.assert_allclose(
            root.times(root.adjoint(x)), scale * semi_definite() @ x, atol=1e-10 * scale
        )
        assert not as_metric(form(scale * (np.eye(8) + 0.3)), 8).root().singular
        bad = as_metric(form(scale * (semi_definite() - 0.01 * np.eye(8))), 8)
        for look in (bad.check, bad.root, lambda m=bad: orthonormalize(np.eye(8), m)):
            with pytest.raises(MetricError, match="not positive semi-definite"):
                look()
    lopsided = semi_definite() + np.diag(np.full(7, 1e-4), 1)
    with pytest.raises(MetricError, match="must be symmetric"):
        as_metric(scale * lopsided, 8)
    as_metric(scale * (semi_definite() + np.diag(np.full(7, 1e-12), 1)), 8)


def test_ill_conditioned_is_not_singular():
    """Eigenvalues 1e10 apart: a Cholesky factor is still good, and nothing is cut off."""
    near = np.array([[1.0, 1 - 1e-10], [1 - 1e-10, 1.0]])
    root = as_metric(near, 2).root()
    assert not root.singular
    x = np.array([[1.0], [-1.0]])
    np.testing.assert_allclose(root.adjoint(root.solve_adjoint(x)), x, rtol=1e-5)
    singular = as_metric(np.ones((2, 2)) + 1e-15 * np.eye(2), 2).root()
    assert singular.singular


def test_large_components_are_checked_without_a_factor(monkeypatch):
    monkeypatch.setattr(module, "DENSE_LIMIT", 20)
    laplacian = laplacian_metric(np.random.default_rng(0).standard_normal((200, 2)), 0.1)
    as_metric(laplacian, 200).check()
    as_metric(random_sparse_precision(200, 0.05, 50.0, 0), 200).check()
    operator = as_metric(aslinearoperator(np.eye(4)), 4)
    operator.check()  # is taken at its word
    assert operator.stored() is operator.matrix
    for shift in (0.01, 2.0):
        with pytest.raises(MetricError, match="not positive semi-definite"):
            as_metric(laplacian - shift * sp.eye_array(200), 200).check()


def test_orthonormalize_against_a_basis():
    rng = np.random.default_rng(0)
    metric = as_metric(semi_definite(30), 30)
    basis = orthonormalize(rng.standard_normal((30, 4)), metric)
    more = orthonormalize(rng.standard_normal((30, 5)), metric, against=basis)
    both = np.column_stack([basis, more])
    np.testing.assert_allclose(both.T @ metric.apply(both), np.eye(9), atol=1e-10)
    # All 27 dimensions are taken: nothing is left, however often one asks.
    everything = orthonormalize(rng.standard_normal((30, 30)), metric)
    assert everything.shape[1] == 27
    assert orthonormalize(rng.standard_normal((30, 5)), metric, against=everything).shape[1] == 0


def test_metrics_from_distances():
    items = np.random.default_rng(0).standard_normal((40, 5))
    items[7] = items[3]  # coinciding items must not give an infinite weight
    distances = np.abs(items[:, None] - items[None]).max(axis=2)
    np.testing.assert_allclose(smooth_metric(items), np.exp(-(distances**2) / 2))
    laplacian = laplacian_metric(items, 0.05).toarray()
    pairs = distances[np.triu_indices(40, 1)]
    near = (distances < np.quantile(pairs, 0.05)) & ~np.eye(40, dtype=bool)
    weights = np.where(near, 1 / np.maximum(distances, pairs[pairs > 0].min()), 0)
    expected = np.diag(weights.sum(axis=1)) - weights
    np.testing.assert_allclose(laplacian, expected / np.linalg.eigvalsh(expected)[-1], atol=1e-12)
    np.testing.assert_allclose(laplacian.sum(axis=0), 0, atol=1e-12)
    many = laplacian_metric(np.random.default_rng(0).standard_normal((600, 2)))
    np.testing.assert_allclose(np.linalg.eigvalsh(many.toarray())[-1], 1, rtol=1e-8)


@pytest.mark.parametrize("n_items", [1, 5])
def test_laplacian_without_a_pair(n_items):
    with pytest.raises(MetricError, match="take a larger density"):
        laplacian_metric(np.zeros((n_items, 2)))
