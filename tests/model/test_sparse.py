"""Linear algebra on sparse precisions against dense NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from mnpca.model.sparse import blocks, components, logdet, repeated, side_by_side


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


def test_logdet_is_that_of_the_dense_matrix(matrix):
    assert_allclose(logdet(sp.csr_array(matrix)), np.linalg.slogdet(matrix)[1], rtol=1e-13)
    assert_allclose(logdet(sp.csr_array(np.diag([2.0, 8.0]))), np.log(16.0), rtol=1e-15)


@pytest.mark.parametrize("diagonal", [[1.0, 0.0], [1.0, -2.0]])
def test_logdet_refuses_a_diagonal_that_is_not_positive(diagonal):
    with pytest.raises(np.linalg.LinAlgError, match="not positive"):
        logdet(sp.csr_array(np.diag(diagonal)))


def test_logdet_refuses_an_indefinite_block():
    with pytest.raises(np.linalg.LinAlgError):
        logdet(sp.csr_array(np.array([[1.0, 2.0], [2.0, 1.0]])))


def test_matrices_one_under_the_other(matrix):
    """`repeated` is block diagonal; `side_by_side` puts the rows of one item into one row."""
    A = sp.csr_array(matrix)
    assert repeated(A, 6) is A
    expected = np.kron(np.eye(3), matrix)
    assert np.array_equal(repeated(A, 18).toarray(), expected)
    stacked = np.arange(36.0).reshape(12, 3)
    assert side_by_side(stacked, 12) is stacked
    found = side_by_side(stacked, 4)
    assert found.shape == (4, 9)
    for item in range(4):
        assert np.array_equal(found[item], stacked[item::4].ravel())
