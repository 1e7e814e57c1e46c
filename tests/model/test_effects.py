"""Covariate effects against ordinary least squares on whitened data."""

import numpy as np
import pytest

from mnpca.datasets import random_sparse_precision
from mnpca.model.effects import Covariates

N, P = 12, 9


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    A, B = random_sparse_precision(N, 0.3, 8.0, 0), random_sparse_precision(P, 0.3, 8.0, 1)
    return rng.normal(size=(N, P)) + 3, rng.normal(size=(N, 2)), rng.normal(size=(P, 3)), A, B


def whitened_least_squares(design, precision, matrix):
    root = np.linalg.cholesky(precision.toarray()).T
    return np.linalg.lstsq(root @ design, root @ matrix, rcond=None)[0]


@pytest.mark.parametrize("intercept", [True, False])
def test_generalized_least_squares(problem, intercept):
    Y, Z, C, A, B = problem
    covariates = Covariates(Z, C, intercept)
    assert covariates.any
    effects = covariates.estimate(Y, A, B)
    design = np.column_stack([Z, np.ones(N)]) if intercept else Z
    rows = whitened_least_squares(design, A, Y)[:2]
    np.testing.assert_allclose(effects.row_coef, rows, atol=1e-10)
    cols = whitened_least_squares(C, B, (Y - Z @ rows).T).T
    np.testing.assert_allclose(effects.col_coef, cols, atol=1e-10)
    np.testing.assert_allclose(covariates.dense(effects), Z @ rows + cols @ C.T, atol=1e-10)
    np.testing.assert_allclose(covariates.without(Y, A, B), Y - Z @ rows - cols @ C.T, atol=1e-10)


def test_units_of_the_covariates_do_not_matter(problem):
    Y, Z, C, A, B = problem
    units = np.array([1e-12, 1e12])
    plain, scaled = Covariates(Z, C, True), Covariates(Z * units, C, True)
    effects = scaled.estimate(Y, A, B)
    np.testing.assert_allclose(
        effects.row_coef * units[:, None], plain.estimate(Y, A, B).row_coef, rtol=1e-6
    )


def test_collinear_and_empty_covariates(problem):
    """A column twice shares its coefficient; a column of zeros has none."""
    Y, Z, C, A, B = problem
    twice = np.column_stack([Z[:, 0], Z[:, 0], np.zeros(N)])
    found = Covariates(twice, C[:, :0], False).estimate(Y, A, B).row_coef
    once = Covariates(Z[:, :1], C[:, :0], False).estimate(Y, A, B).row_coef
    np.testing.assert_allclose(found[:2], np.vstack([once, once]) / 2, atol=1e-8)
    np.testing.assert_array_equal(found[2], np.zeros(P))
