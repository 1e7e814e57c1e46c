"""Sparse precisions and thin factors against dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from mnpca._components import blocks, root
from mnpca.model.low_rank import fix_signs
from mnpca.model.sparse import (
    components,
    logdet,
    normalize_gauge,
    side_by_side,
    tile,
)


@pytest.fixture
def matrix():
    """Two blocks (0, 3, 4) and (1, 5), and an item alone, 2."""
    dense = np.diag([2.0, 3.0, 0.5, 4.0, 5.0, 6.0])
    for i, j, value in [(0, 3, 0.7), (3, 4, -1.1), (1, 5, 2.0)]:
        dense[i, j] = dense[j, i] = value
    return dense


def test_components_are_complete_and_sorted(matrix):
    found = sorted(tuple(items) for items in components(sp.csr_array(matrix)))
    assert found == [(0, 3, 4), (1, 5), (2,)]


def test_blocks_are_those_with_more_than_one_item(matrix):
    found = {tuple(items): block for items, block in blocks(sp.csr_array(matrix))}
    assert set(found) == {(0, 3, 4), (1, 5)}
    for items, block in found.items():
        assert np.array_equal(block, matrix[np.ix_(items, items)])


def test_a_root_whitens(matrix):
    factor, x = root(sp.csr_array(matrix)), np.random.default_rng(0).normal(size=(6, 2))
    assert_allclose(factor.times(factor.adjoint(x)), matrix @ x, atol=1e-14)
    assert_allclose(factor.adjoint(factor.solve_adjoint(x)), x, atol=1e-14)


def test_logdet_is_that_of_the_dense_matrix(matrix):
    assert_allclose(logdet(sp.csr_array(matrix)), np.linalg.slogdet(matrix)[1], rtol=1e-13)
    assert_allclose(logdet(sp.csr_array(np.diag([2.0, 8.0]))), np.log(16.0), rtol=1e-15)


@pytest.mark.parametrize(
    "wrong", [np.diag([1.0, 0.0]), np.diag([1.0, -2.0]), np.array([[1.0, 2.0], [2.0, 1.0]])]
)
def test_logdet_refuses_what_is_not_positive_definite(wrong):
    with pytest.raises(np.linalg.LinAlgError):
        logdet(sp.csr_array(wrong))


def test_matrices_one_under_the_other(matrix):
    """`tile` is block diagonal; `side_by_side` puts the rows of one item into one row."""
    A = sp.csr_array(matrix)
    assert tile(A, 6) is A
    expected = np.kron(np.eye(3), matrix)
    assert np.array_equal(tile(A, 18).toarray(), expected)
    stacked = np.arange(36.0).reshape(12, 3)
    assert side_by_side(stacked, 12) is stacked
    found = side_by_side(stacked, 4)
    assert found.shape == (4, 9)
    for item in range(4):
        assert np.array_equal(found[item], stacked[item::4].ravel())


def test_the_row_precision_gets_determinant_one_and_the_product_stays():
    rng = np.random.default_rng(0)
    pair = []
    for size in (4, 6):
        root = rng.normal(size=(size, size))
        pair.append(sp.csr_array(root @ root.T + np.eye(size)))
    row, col = normalize_gauge(*pair)
    assert abs(logdet(row)) < 1e-12
    assert abs(logdet(pair[0])) > 0.1
    assert_allclose(np.kron(row.toarray(), col.toarray()), sp.kron(*pair).toarray(), rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_signs_make_the_largest_loading_positive_and_keep_the_product(seed):
    rng = np.random.default_rng(seed)
    scores, loadings = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    fixed = fix_signs(scores, loadings)
    largest = np.abs(loadings).argmax(axis=0)
    assert (fixed.right[largest, range(4)] > 0).all()
    assert np.array_equal(np.abs(fixed.right), np.abs(loadings))
    assert_allclose(fixed.dense(), scores @ loadings.T, atol=1e-14)
