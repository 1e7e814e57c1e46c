"""Generalized least squares scores."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from mnpca.model.rows import gls_scores


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    return rng.normal(size=(9, 6)), root @ root.T + np.eye(6), rng.normal(size=(6, 2))


def test_scores_solve_the_whitened_least_squares_problem(problem):
    rows, precision, loadings = problem
    root = np.linalg.cholesky(precision).T
    expected = np.linalg.lstsq(root @ loadings, root @ rows.T, rcond=None)[0].T
    for kind in (np.asarray, sp.csr_array):
        assert_allclose(gls_scores(rows, kind(precision), loadings), expected, rtol=1e-9)


def test_a_mean_is_taken_off_dense_and_sparse_rows_alike(problem):
    rows, precision, loadings = problem
    mean = np.arange(6.0)
    expected = gls_scores(rows - mean, precision, loadings)
    assert_allclose(gls_scores(rows, precision, loadings, mean), expected, rtol=1e-12)
    assert_allclose(gls_scores(sp.csr_array(rows), precision, loadings, mean), expected, rtol=1e-9)


def test_a_large_mean_does_not_cancel_the_rows(problem):
    rows, precision, loadings = problem
    mean = np.full(6, 2.0**40)
    expected = gls_scores((rows + mean) - mean, precision, loadings)
    assert_allclose(gls_scores(rows + mean, precision, loadings, mean), expected, rtol=1e-12)


def test_a_component_without_loadings_has_score_zero(problem):
    rows, precision, loadings = problem
    loadings = np.column_stack([loadings[:, 0], np.zeros(6)])
    scores = gls_scores(rows, precision, loadings)
    assert np.array_equal(scores[:, 1], np.zeros(9))
    assert_allclose(scores[:, :1], gls_scores(rows, precision, loadings[:, :1]), rtol=1e-12)
