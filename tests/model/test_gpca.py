"""Generalized PCA: what its solvers find, against definitions and against each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from mnpca.datasets import random_sparse_precision
from mnpca.model.gpca import gpca, identify
from mnpca.model.metric import Metric, MetricError, as_metric
from mnpca.model.sparse_data import centered

SOLVERS = ["factor", "krylov", "power"]


def path_laplacian(q):
    """Laplacian of a path: semi-definite, zero on constants."""
    degree = np.r_[1.0, np.full(q - 2, 2.0), 1.0]
    return np.diag(degree) - np.eye(q, k=1) - np.eye(q, k=-1)


def metrics(kind, q, seed):
    sparse = random_sparse_precision(q, 0.1, 20.0, seed)
    return {
        "identity": None,
        "dense": sparse.toarray(),
        "sparse": sparse,
        "diagonal": np.random.default_rng(seed).uniform(0.5, 2.0, q),
        "laplacian": path_laplacian(q),
        "sparse laplacian": sp.csr_array(path_laplacian(q)),
        "partly zero": np.r_[np.zeros(4), np.ones(q - 4)],
    }[kind]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((40, 30)) * np.linspace(1, 4, 30)


def solve(data, row, col, k=3, **options):
    n, p = data.shape
    row, col = as_metric(row, n, "row_metric"), as_metric(col, p, "col_metric")
    return gpca(data, k, row, col, max_iter=20000, **options), row, col


KINDS = ["identity", "dense", "sparse", "diagonal", "laplacian", "sparse laplacian", "partly zero"]


@pytest.mark.parametrize("row_kind", KINDS)
@pytest.mark.parametrize("col_kind", ["identity", "sparse", "laplacian", "partly zero"])
def test_orthonormal_stationary_and_the_same_by_every_solver(data, row_kind, col_kind):
    pair = metrics(row_kind, 40, 1), metrics(col_kind, 30, 2)
    factor, row, col = solve(data, *pair, solver="factor")
    for parts in (factor, *(solve(data, *pair, solver=name)[0] for name in SOLVERS[1:])):
        assert parts.converged
        assert np.all(np.diff(parts.singular_values) <= 0)
        for basis, metric in ((parts.left, row), (parts.right, col)):
            np.testing.assert_allclose(basis.T @ metric.apply(basis), np.eye(3), atol=1e-8)
        # U = Y B V / d and V = Y' A U / d, in null directions of the metrics too.
        scores, weights = (side * parts.singular_values for side in (parts.left, parts.right))
        np.testing.assert_allclose(data @ col.apply(parts.right), scores, atol=1e-6)
        np.testing.assert_allclose(data.T @ row.apply(parts.left), weights, atol=1e-6)
        np.testing.assert_allclose(parts.singular_values, factor.singular_values, rtol=1e-9)
        np.testing.assert_allclose(parts.left, factor.left, atol=1e-6)
        np.testing.assert_allclose(parts.right, factor.right, atol=1e-6)


def test_operators_and_sparse_data_with_a_mean():
    rng = np.random.default_rng(1)
    Y = sp.csr_array(rng.random((300, 200)) * (rng.random((300, 200)) < 0.05))
    mean = np.asarray(Y.mean(axis=0)).ravel()
    A = random_sparse_precision(300, 0.01, 8.0, 0)
    operator = as_metric(aslinearoperator(A), 300)
    plain = as_metric(None, 200)
    parts = gpca(centered(Y)[0], 4, operator, plain, solver="krylov")
    dense = gpca(Y.toarray() - mean, 4, as_metric(A, 300), plain)
    np.testing.assert_allclose(parts.singular_values, dense.singular_values, rtol=1e-8)
    np.testing.assert_allclose(parts.right, dense.right, atol=1e-6)
    np.testing.assert_allclose(centered(Y)[0].toarray(), Y.toarray() - mean)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [1e-25, 1e-9, 1e9, 1e25])
def test_the_unit_of_the_data_does_not_matter(data, solver, scale):
    """Same vectors, same number of iterations; what counts as zero is relative."""
    for kinds in (("partly zero", "laplacian"), ("identity", "identity")):
        pair = metrics(kinds[0], 40, 1), metrics(kinds[1], 30, 2)
        one = solve(data, *pair, solver=solver)[0]
        other = solve(scale * data, *pair, solver=solver)[0]
        np.testing.assert_allclose(other.singular_values / scale, one.singular_values, rtol=1e-9)
        np.testing.assert_allclose(other.right, one.right, atol=1e-7)
        assert other.n_iter == one.n_iter


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["identity", "partly zero", "sparse laplacian"])
def test_fewer_dimensions_than_components(solver, kind):
    pair = metrics(kind, 40, 1), metrics(kind, 30, 2)
    for thin in (np.zeros((40, 30)), np.outer(np.arange(40.0), np.arange(30.0))):
        parts, *_ = solve(thin, *pair, solver=solver)
        assert parts.converged
        assert np.all(parts.singular_values[1:] <= 1e-8 * parts.singular_values[0])
        assert np.isfinite(parts.left).all()
        assert np.isfinite(parts.right).all()
        if kind == "identity":
            np.testing.assert_allclose(parts.low_rank().dense(), thin, atol=1e-8)


def test_the_values_settle_with_tol_zero_and_where_they_repeat(data):
    for scale in (1e-9, 1.0, 1e9):
        parts, *_ = solve(scale * data, None, None, solver="krylov", tol=0.0)
        assert parts.converged
        assert parts.n_iter < 100
    parts, *_ = solve(np.eye(20, 15), None, None, k=4, solver="krylov")
    np.testing.assert_allclose(parts.singular_values, np.ones(4))


def test_operators_have_no_factor(data):
    with pytest.raises(MetricError, match='use solver="krylov" or "power"'):
        solve(data, aslinearoperator(np.eye(40)), None, solver="factor")


def test_identify_keeps_the_product_and_pads_what_is_missing():
    rng = np.random.default_rng(3)
    X, W = rng.standard_normal((25, 3)), rng.standard_normal((12, 3))
    row = as_metric(random_sparse_precision(25, 0.1, 9.0, 0), 25)
    col = as_metric(random_sparse_precision(12, 0.2, 9.0, 1), 12)
    parts = identify(X, W, row, col)
    np.testing.assert_allclose(parts.low_rank().dense(), X @ W.T, atol=1e-12)
    np.testing.assert_allclose(parts.right.T @ col.apply(parts.right), np.eye(3), atol=1e-12)
    # It is generalized PCA of the product.
    direct = gpca(X @ W.T, 3, row, col)
    np.testing.assert_allclose(parts.right, direct.right, atol=1e-8)
    padded = identify(np.ones((6, 2)), np.ones((4, 2)), Metric(6), Metric(4))
    np.testing.assert_allclose(padded.low_rank().dense(), 2 * np.ones((6, 4)))
    assert padded.singular_values[1] == 0
