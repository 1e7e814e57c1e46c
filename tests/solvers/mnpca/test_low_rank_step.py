"""The low-rank step against dense transcriptions of its formulas."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from mnpca.datasets import make_low_rank_matrix_normal
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca.low_rank_step import (
    generalized_least_squares_mean,
    generalized_svd,
    low_rank_step,
    relative_change,
)
from mnpca.solvers.mnpca.variational import update_factor, variational_step


def problem(n=40, p=30, rank=2, seed=0, scale=2.0):
    data = make_low_rank_matrix_normal(
        n, p, rank, density=0.1, condition=30, signal_scale=scale, random_state=seed
    )
    rows = AxisPrecision.from_precision(data.row_precision)
    cols = AxisPrecision.from_precision(data.col_precision)
    return data, DenseEngine(data.Y, np.float64), rows, cols


def test_generalized_svd_is_the_svd_of_the_whitened_matrix():
    data, engine, rows, cols = problem()
    mean = generalized_least_squares_mean(engine, rows)
    found = generalized_svd(engine, rows, cols, 2, mean=mean, tol=1e-14, max_iter=500)
    A, B = data.row_precision.toarray(), data.col_precision.toarray()
    weights = A.sum(axis=0)
    np.testing.assert_allclose(mean, weights @ data.Y / weights.sum())
    row_root, col_root = np.linalg.cholesky(A), np.linalg.cholesky(B)
    whitened = row_root.T @ (data.Y - mean) @ col_root
    U, s, Vt = np.linalg.svd(whitened)
    np.testing.assert_allclose(found.singular_values, s[:2], rtol=1e-10)
    expected = scipy.linalg.solve_triangular(row_root.T, (U[:, :2] * s[:2]) @ Vt[:2])
    expected = scipy.linalg.solve_triangular(col_root.T, expected.T).T
    product = (found.left * found.singular_values) @ found.right.T
    np.testing.assert_allclose(product, expected, atol=1e-6)
    np.testing.assert_allclose(found.left.T @ A @ found.left, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(found.right.T @ B @ found.right, np.eye(2), atol=1e-10)


def test_factor_update_is_the_exact_gaussian_posterior():
    """Given W (a point), rows of X have a Gaussian posterior of known mean and covariance."""
    data, _, rows, _ = problem(n=12, p=9)
    A, B = data.row_precision.toarray(), data.col_precision.toarray()
    loadings = np.random.default_rng(1).standard_normal((9, 2))
    metric = loadings.T @ B @ loadings
    factor = update_factor(data.Y @ B @ loadings, metric, rows, None)
    # vec of X row by row: prior I x G, likelihood precision A x W'BW.
    precision = np.kron(A, metric) + np.kron(np.eye(12), np.linalg.inv(factor.prior))
    covariance = np.linalg.inv(precision)
    mean = covariance @ (A @ data.Y @ B @ loadings).ravel()
    np.testing.assert_allclose(factor.mean.ravel(), mean, rtol=1e-6, atol=1e-8)
    blocks = covariance.reshape(12, 2, 12, 2)
    spread = np.einsum("ij,iajb->ab", A, blocks)
    np.testing.assert_allclose(factor.spread, spread, rtol=1e-6)
    variances = factor.row_variances(rows)
    for i in range(12):
        own = (factor.basis * variances[i]) @ factor.basis.T
        np.testing.assert_allclose(own, blocks[i, :, i], rtol=1e-6, atol=1e-9)
    uncertainty = np.einsum("iajb,ab->ij", blocks, metric)
    diagonal, off_diagonal = rows.function(factor.uncertainty)
    found = np.diag(diagonal) + off_diagonal.toarray()
    np.testing.assert_allclose(found, uncertainty, rtol=1e-6, atol=1e-8)


def test_prior_of_the_update_rises_in_likelihood():
    """EM for G: the marginal likelihood of the rows given W grows towards a stationary G."""
    data, _, rows, _ = problem(n=30, p=10)
    A, B = data.row_precision.toarray(), data.col_precision.toarray()
    loadings = np.random.default_rng(1).standard_normal((10, 2))
    metric = loadings.T @ B @ loadings
    target = data.Y @ B @ loadings

    def log_likelihood(prior):
        covariance = np.kron(np.eye(30), prior) + np.kron(np.linalg.inv(A), np.linalg.inv(metric))
        estimate = (target @ np.linalg.inv(metric)).ravel()
        return -np.linalg.slogdet(covariance)[1] - estimate @ np.linalg.solve(covariance, estimate)

    factor = update_factor(target, metric, rows, None)
    values = [log_likelihood(factor.prior)]
    for _ in range(4):
        factor = update_factor(target, metric, rows, factor)
        values.append(log_likelihood(factor.prior))
    assert np.all(np.diff(values) >= -1e-8)


@pytest.mark.parametrize("center", [False, True])
def test_elbo_never_falls(center):
    _, engine, rows, cols = problem(scale=0.7)
    mean = generalized_least_squares_mean(engine, rows) if center else None
    svd = generalized_svd(engine, rows, cols, 3, mean=mean)
    total = engine.weighted_norm(rows.weights, cols.weights)
    posterior = variational_step(engine, rows, cols, svd, total, max_sweeps=40, tol=0.0)
    assert len(posterior.elbo_path) == 40
    rise = np.diff(posterior.elbo_path)
    assert rise.min() > -1e-7 * abs(posterior.elbo)


def draw_factor(factor, noise, rng):
    """Draw from q(F): independent rows in the eigenbasis of the side's precision."""
    a = 1.0 / noise.eigenvalues[:, None]
    g = factor.signal_variances
    white = rng.standard_normal((noise.size, len(g))) * np.sqrt(g * a / (g + a))
    return factor.mean + noise.unrotate(white @ factor.basis.T)


def test_elbo_and_correction_by_monte_carlo():
    """D_A, D_B and the ELBO's expected misfit are expectations under q; sample them."""
    data, engine, rows, cols = problem(n=12, p=10, scale=1.5)
    posterior = low_rank_step(engine, rows, cols, 2, center=True, max_sweeps=5)
    A, B = data.row_precision.toarray(), data.col_precision.toarray()
    rng = np.random.default_rng(0)
    draws = 20000
    row_scatter, col_scatter = np.zeros((12, 12)), np.zeros((10, 10))
    for _ in range(draws):
        scores = draw_factor(posterior.left_factor, rows, rng)
        right = draw_factor(posterior.right_factor, cols, rng)
        residual = data.Y - scores @ right[:, :2].T - right[:, 2]
        row_scatter += residual @ B @ residual.T / draws
        col_scatter += residual.T @ A @ residual / draws
    residual = data.Y - posterior.left @ posterior.right.T
    for scatter, middle, side, thin, spread, uncertainty in (
        (row_scatter, residual @ B @ residual.T, rows, posterior.left,
         posterior.right_spread, posterior.row_uncertainty),
        (col_scatter, residual.T @ A @ residual, cols, posterior.right,
         posterior.left_spread, posterior.col_uncertainty),
    ):  # fmt: skip
        diagonal, off_diagonal = side.function(uncertainty)
        correction = np.diag(diagonal) + thin @ spread @ thin.T
        if off_diagonal is not None:
            correction += off_diagonal.toarray()
        size = np.sqrt(np.outer(np.diag(scatter), np.diag(scatter)))
        assert np.abs((middle + correction - scatter) / size).max() < 0.02
    divergence = posterior.left_factor.divergence + posterior.right_factor.divergence
    misfit = np.trace(A @ row_scatter)
    logdets = 10 * np.linalg.slogdet(A)[1] + 12 * np.linalg.slogdet(B)[1]
    np.testing.assert_allclose(posterior.elbo, -0.5 * (misfit - logdets + divergence), atol=1.0)


def test_strong_signal_is_not_shrunk():
    """With identity noise and a signal far above it the step is PCA."""
    rng = np.random.default_rng(0)
    signal = 1e3 * rng.standard_normal((50, 2)) @ rng.standard_normal((2, 30))
    Y = signal + rng.standard_normal((50, 30))
    white = AxisPrecision.diagonal(np.ones(50)), AxisPrecision.diagonal(np.ones(30))
    posterior = low_rank_step(DenseEngine(Y, np.float64), *white, 2, center=False)
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    pca = (U[:, :2] * s[:2]) @ Vt[:2]
    difference = np.abs(posterior.left @ posterior.right.T - pca).max()
    assert difference < 1e-2  # noise has standard deviation 1, signals about 1000


def test_rank_zero_has_a_mean_or_nothing():
    _, engine, rows, cols = problem()
    nothing = low_rank_step(engine, rows, cols, 0, center=False)
    assert nothing.left.shape == (40, 0)
    only_mean = low_rank_step(engine, rows, cols, 0, center=True)
    assert only_mean.left.shape == (40, 1)
    assert np.isfinite([nothing.elbo, only_mean.elbo]).all()
    assert relative_change(nothing, nothing) == 0.0


def test_auto_centering_takes_the_larger_evidence():
    data, engine, rows, cols = problem()
    with_mean = low_rank_step(engine, rows, cols, 2, center=True).elbo
    without = low_rank_step(engine, rows, cols, 2, center=False).elbo
    assert low_rank_step(engine, rows, cols, 2).elbo == max(with_mean, without)
    assert low_rank_step(DenseEngine(data.Y + 3.0), rows, cols, 2).centered


def test_components_of_the_sparse_path_equal_one_dense_block():
    """The same step with the graph's components hidden in a single block."""
    data, engine, rows, cols = problem()
    dense = data.row_precision.toarray()
    dense[dense == 0] = 1e-300  # every pair linked, in name
    one_block = AxisPrecision.from_precision(sp.csr_array(dense))
    assert one_block.largest_component == 40
    by_component = low_rank_step(engine, rows, cols, 2)
    at_once = low_rank_step(engine, one_block, cols, 2)
    np.testing.assert_allclose(at_once.elbo, by_component.elbo, rtol=1e-9)
    assert relative_change(at_once, by_component) < 1e-6
