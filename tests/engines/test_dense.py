"""The dense engine against plain dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import random_sparse_precision
from mnpca.engines import gram as gram_module
from mnpca.engines.dense import DenseEngine
from mnpca.engines.gram import FactorGram


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((30, 20))
    left, right = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    A = random_sparse_precision(30, 0.1, 8, 0)
    B = random_sparse_precision(20, 0.1, 8, 1)
    return DenseEngine(Y, np.float64), Y, left, right, A, B


def test_products_and_norm(problem):
    engine, Y, left, right, A, B = problem
    np.testing.assert_allclose(engine.times(right), Y @ right)
    np.testing.assert_allclose(engine.transposed_times(left), Y.T @ left)
    for rows, cols in ((A, B), (A.diagonal(), B), (A, B.diagonal())):
        dense = [m.toarray() if sp.issparse(m) else np.diag(m) for m in (rows, cols)]
        expected = np.trace(dense[0] @ Y @ dense[1] @ Y.T)
        np.testing.assert_allclose(engine.weighted_norm(rows, cols), expected)


def test_residual_squares(problem):
    engine, Y, left, right, *_ = problem
    squares = engine.residual_squares(left, right)
    expected = (Y - left @ right.T) ** 2
    weights = np.arange(1.0, 21.0)
    np.testing.assert_allclose(squares.row_sums(weights), expected @ weights)
    np.testing.assert_allclose(squares.col_sums(np.ones(30)), expected.sum(axis=0))


def dense_gram(gram):
    everything = gram.left @ gram.right.T
    return everything + (0 if gram.extra is None else gram.extra.toarray())


def test_grams_of_the_residual(problem):
    engine, Y, left, right, A, B = problem
    residual = Y - left @ right.T
    spread = np.diag([1.0, 2.0, 3.0])
    rows = engine.row_gram(left, right, B, left, spread)
    expected = residual @ B @ residual.T + left @ spread @ left.T
    np.testing.assert_allclose(dense_gram(rows), expected)
    np.testing.assert_allclose(rows.diagonal(), np.diag(expected))
    cols = engine.col_gram(left, right, A.diagonal(), right, spread)
    expected = residual.T @ np.diag(A.diagonal()) @ residual + right @ spread @ right.T
    np.testing.assert_allclose(dense_gram(cols), expected)


@pytest.mark.parametrize("tile", [7, 1024])
@pytest.mark.parametrize("small", [0, 64])
def test_entries_on_demand(problem, tile, small, monkeypatch):
    monkeypatch.setattr(gram_module, "TILE", tile)
    monkeypatch.setattr(gram_module, "SMALL", small)
    engine, _, left, right, A, B = problem
    gram = engine.row_gram(left, right, B, left, np.eye(3))
    gram.extra = sp.csr_array(A)
    gram.rescale(np.linspace(0.1, 0.2, 30))
    full = dense_gram(gram)
    found = gram.large_entries(0.3)
    above = np.triu(np.abs(full) > 0.3, k=1)
    assert sorted(zip(found.i, found.j, strict=True)) == sorted(
        zip(*np.nonzero(above), strict=True)
    )
    np.testing.assert_allclose(found.value, full[found.i, found.j])
    np.testing.assert_allclose(gram.entries(found.i, found.j), full[found.i, found.j])
    only_first = gram.large_entries(0.3, n_rows=4)
    assert len(only_first.i) == above[:4].sum()
    order, bounds = np.array([5, 2, 9, 11, 0]), np.array([0, 3, 5])
    flat = gram.component_blocks(order, bounds, np.array([0, 9, 13]))
    np.testing.assert_allclose(flat[:9].reshape(3, 3), full[np.ix_(order[:3], order[:3])])
    np.testing.assert_allclose(flat[9:].reshape(2, 2), full[np.ix_(order[3:], order[3:])])


def test_no_large_entry():
    found = FactorGram(np.eye(4), np.eye(4)).large_entries(0.5)
    assert len(found.i) == len(found.value) == 0
