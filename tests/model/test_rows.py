"""Rows, complete or not, against dense formulas for the observed cells, and against SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t

from mnpca.datasets import chain_precision, random_sparse_precision
from mnpca.model.rows import (
    RowModel,
    gls_scores,
    gls_weights,
    observed_scores,
    predict_missing,
    row_log_likelihood,
    with_row_scales,
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


@pytest.mark.parametrize("freedom", [np.inf, 4.0])
def test_log_likelihood_is_that_of_the_marginal_distribution(rows, precision, loadings, freedom):
    """Of complete rows, too; and covariance and precision are those of SciPy's distribution."""
    covariance = np.array([[2.0, 0.3], [0.3, 1.0]])
    model = RowModel(precision, loadings, covariance, 0.7, freedom)
    for row, value in zip(rows, row_log_likelihood(rows, model), strict=True):
        seen = ~np.isnan(row)
        total = 0.7 * marginal(precision, seen) + loadings[seen] @ covariance @ loadings[seen].T
        whole = multivariate_normal(cov=total) if np.isinf(freedom) else None
        expected = whole or multivariate_t(np.zeros(seen.sum()), total, freedom)
        assert value == pytest.approx(expected.logpdf(row[seen]))
        assert row_log_likelihood(row[None], model) == pytest.approx([value])
        if seen.all():
            assert_allclose(model.covariance(), total * (1.0 if whole else 2.0))
            assert_allclose(model.precision() @ model.covariance(), np.eye(9), atol=1e-9)


@pytest.mark.parametrize("covariance", [np.diag([2.0, 1.0]), np.diag([2.0, 0.0])])
def test_predictions_are_conditional_means_and_variances(rows, precision, loadings, covariance):
    rows = rows.copy()
    rows[6] = np.nan  # nothing known: the prior
    model = RowModel(precision, loadings, covariance, 0.7)
    filled, variances = predict_missing(rows, model)
    total = 0.7 * np.linalg.inv(precision.toarray()) + loadings @ covariance @ loadings.T
    for row, guess, variance in zip(rows, filled, variances, strict=True):
        hidden, seen = np.isnan(row), ~np.isnan(row)
        slope = total[np.ix_(hidden, seen)] @ np.linalg.inv(total[np.ix_(seen, seen)])
        left = total[np.ix_(hidden, hidden)] - slope @ total[np.ix_(seen, hidden)]
        assert np.array_equal(guess[seen], row[seen])
        assert np.all(variance[seen] == 0.0)
        assert guess[hidden] == pytest.approx(slope @ row[seen], rel=1e-8, abs=1e-10)
        assert variance[hidden] == pytest.approx(np.diag(left), rel=1e-8)


@pytest.fixture(name="problem")
def _problem():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    return rng.normal(size=(9, 6)), root @ root.T + np.eye(6), rng.normal(size=(6, 2))


def test_scores_solve_the_whitened_least_squares_problem(problem):
    rows, precision, loadings = problem
    root = np.linalg.cholesky(precision).T
    expected = np.linalg.lstsq(root @ loadings, root @ rows.T, rcond=None)[0].T
    for kind in (np.asarray, sp.csr_array):
        assert_allclose(gls_scores(rows, kind(precision), loadings), expected, rtol=1e-9)
    assert_allclose(observed_scores(rows, sp.csr_array(precision), loadings), expected, rtol=1e-9)
    twice = np.column_stack([loadings, loadings[:, 0]])  # the same direction twice
    fitted = rows @ gls_weights(precision, twice) @ twice.T
    assert_allclose(fitted, expected @ loadings.T, atol=1e-10)


def test_a_mean_is_taken_off_dense_and_sparse_rows_alike_and_does_not_cancel_them(problem):
    rows, precision, loadings = problem
    mean = np.arange(6.0)
    expected = gls_scores(rows - mean, precision, loadings)
    assert_allclose(gls_scores(rows, precision, loadings, mean), expected, rtol=1e-12)
    assert_allclose(gls_scores(sp.csr_array(rows), precision, loadings, mean), expected, rtol=1e-9)
    mean = np.full(6, 2.0**40)
    expected = gls_scores((rows + mean) - mean, precision, loadings)
    assert_allclose(gls_scores(rows + mean, precision, loadings, mean), expected, rtol=1e-12)


def test_a_component_without_loadings_has_score_zero(problem):
    rows, precision, loadings = problem
    loadings = np.column_stack([loadings[:, 0], np.zeros(6)])
    scores = gls_scores(rows, precision, loadings)
    assert np.array_equal(scores[:, 1], np.zeros(9))
    assert_allclose(scores[:, :1], gls_scores(rows, precision, loadings[:, :1]), rtol=1e-12)


def test_components_far_above_the_noise():
    """Signal to noise of 1e20; the density along the signal is that of the signal alone."""
    loadings = np.array([[1.0], [0.0]])
    model = RowModel(sp.eye_array(2, format="csr"), loadings, np.array([[1e10]]), 1e-10)
    peak = row_log_likelihood(np.zeros((1, 2)), model)
    assert_allclose(peak, -np.log(2 * np.pi), atol=1e-9)


def test_scales_of_rows_are_found_where_there_are_any():
    rng = np.random.default_rng(7)
    precision = sp.csr_array(np.diag(np.linspace(0.5, 2.0, 8)))
    loadings = rng.normal(size=(8, 1))
    truth = RowModel(precision, loadings, np.array([[3.0]]), 0.5, 4.0)
    scatter = truth.covariance() / truth.inflation
    heavy = multivariate_t(np.zeros(8), scatter, 4.0, seed=rng).rvs(3000)
    start = RowModel(precision, loadings, np.array([[10.0]]), 2.0)
    found = with_row_scales(start, heavy)
    assert found.degrees_of_freedom == pytest.approx(4.0, rel=0.15)
    assert found.noise_variance == pytest.approx(0.5, rel=0.1)
    assert_allclose(found.score_covariance, [[3.0]], rtol=0.15)
    assert row_log_likelihood(heavy, found).sum() > row_log_likelihood(heavy, truth).sum() - 5
    normal = multivariate_normal(np.zeros(8), scatter, seed=rng).rvs(3000)
    right = start._replace(score_covariance=np.array([[3.0]]), noise_variance=0.5)
    assert with_row_scales(right, normal) is right
