"""Rows with holes against dense formulas for the observed cells alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal

from mnpca.datasets import chain_precision, random_sparse_precision
from mnpca.model.rows import (
    RowModel,
    gls_scores,
    observed_log_likelihood,
    observed_scores,
    predict_missing,
    row_log_likelihood,
)

PRECISIONS = {
    "chain": chain_precision(9, 0.7),
    "random": random_sparse_precision(9, 0.4, 10, 0),
    "diagonal": sp.csr_array(sp.diags_array(np.linspace(0.5, 2.0, 9))),
}


@pytest.fixture(params=PRECISIONS, name="precision")
def _precision(request):
    return PRECISIONS[request.param]


@pytest.fixture(name="loadings")
def _loadings():
    return np.random.default_rng(1).standard_normal((9, 2))


@pytest.fixture(name="rows")
def _rows():
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((12, 9))
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[3] = rows[4] = np.where(np.arange(9) < 4, 1.0, np.nan)  # a pattern that repeats
    rows[5] = 1.5  # a complete row
    return rows


def marginal(precision, observed):
    covariance = np.linalg.inv(precision.toarray())
    return covariance[np.ix_(observed, observed)]


def test_scores_are_generalized_least_squares_of_the_observed_cells(rows, precision, loadings):
    scores = observed_scores(rows, precision, loadings)
    for row, score in zip(rows, scores, strict=True):
        seen = ~np.isnan(row)
        weight = np.linalg.inv(marginal(precision, seen))
        design = loadings[seen]
        expected = np.linalg.solve(design.T @ weight @ design, design.T @ weight @ row[seen])
        assert score == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_scores_of_complete_rows_are_the_usual_ones(rows, precision, loadings):
    complete = np.nan_to_num(rows)
    expected = gls_scores(complete, precision, loadings)
    assert observed_scores(complete, precision, loadings) == pytest.approx(expected)


def test_log_likelihood_is_that_of_the_marginal_normal(rows, precision, loadings):
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    model = RowModel(precision, loadings, covariance, 0.7)
    values = observed_log_likelihood(rows, model)
    for row, value in zip(rows, values, strict=True):
        seen = ~np.isnan(row)
        total = 0.7 * marginal(precision, seen) + loadings[seen] @ covariance @ loadings[seen].T
        assert value == pytest.approx(multivariate_normal(cov=total).logpdf(row[seen]))


def test_log_likelihood_of_complete_rows_is_the_usual_one(rows, precision, loadings):
    complete = np.nan_to_num(rows)
    model = RowModel(precision, loadings, np.eye(2), 0.7)
    expected = row_log_likelihood(complete, model)
    assert observed_log_likelihood(complete, model) == pytest.approx(expected)


@pytest.mark.parametrize("covariance", [np.diag([2.0, 1.0]), np.diag([2.0, 0.0])])
def test_predictions_are_conditional_means_and_variances(rows, precision, loadings, covariance):
    rows = rows.copy()
    rows[6] = np.nan  # nothing known: the prior
    model = RowModel(precision, loadings, covariance, 0.7)
    filled, variances = predict_missing(rows, model)
    total = 0.7 * np.linalg.inv(precision.toarray()) + loadings @ covariance @ loadings.T
    for row, guess, variance in zip(rows, filled, variances, strict=True):
        holes, seen = np.isnan(row), ~np.isnan(row)
        slope = total[np.ix_(holes, seen)] @ np.linalg.inv(total[np.ix_(seen, seen)])
        left = total[np.ix_(holes, holes)] - slope @ total[np.ix_(seen, holes)]
        assert np.array_equal(guess[seen], row[seen])
        assert np.all(variance[seen] == 0.0)
        assert guess[holes] == pytest.approx(slope @ row[seen], rel=1e-8, abs=1e-10)
        assert variance[holes] == pytest.approx(np.diag(left), rel=1e-8)
