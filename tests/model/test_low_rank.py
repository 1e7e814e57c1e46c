"""Thin factors and their signs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca.model.low_rank import fix_signs


@pytest.mark.parametrize("seed", range(3))
def test_signs_make_the_largest_loading_positive_and_keep_the_product(seed):
    rng = np.random.default_rng(seed)
    scores, loadings = rng.normal(size=(5, 4)), rng.normal(size=(6, 4))
    fixed = fix_signs(scores, loadings)
    largest = np.abs(loadings).argmax(axis=0)
    assert (fixed.right[largest, range(4)] > 0).all()
    assert np.array_equal(np.abs(fixed.right), np.abs(loadings))
    assert_allclose(fixed.dense(), scores @ loadings.T, atol=1e-14)


def test_ties_go_to_the_first_feature_and_a_zero_loading_stays():
    scores, loadings = np.ones((1, 2)), np.array([[-2.0, 0.0], [2.0, 0.0]])
    fixed = fix_signs(scores, loadings)
    assert np.array_equal(fixed.right, [[2.0, 0.0], [-2.0, 0.0]])
    assert np.array_equal(fixed.left, [[-1.0, 1.0]])


def test_no_components():
    fixed = fix_signs(np.zeros((3, 0)), np.zeros((2, 0)))
    assert fixed.dense().shape == (3, 2)
