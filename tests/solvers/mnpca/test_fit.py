"""The whole fit: what it must keep, and how near the oracle it comes."""

import numpy as np
import pytest

from mnpca.datasets import chain_precision, make_low_rank_matrix_normal, make_paper_small
from mnpca.engines.engine import DenseEngine
from mnpca.metrics import edge_recovery, psnr
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca import fit_mnpca
from mnpca.solvers.mnpca.low_rank_step import low_rank_step


@pytest.fixture(scope="module")
def data():
    return make_paper_small(c=64, seed=2000)


@pytest.fixture(scope="module")
def fit(data):
    return fit_mnpca(data.Y, 2)


@pytest.fixture(scope="module")
def small():
    return make_paper_small(c=64, seed=2000, n_samples=120, n_features=80, density=0.04)


@pytest.fixture(scope="module")
def small_fit(small):
    return fit_mnpca(small.Y, 2)


def oracle_psnr(data):
    posterior = low_rank_step(
        DenseEngine(data.Y),
        AxisPrecision.from_precision(data.row_precision),
        AxisPrecision.from_precision(data.col_precision),
        2,
        max_sweeps=20,
    )
    return psnr(posterior.left @ posterior.right.T, data.signal)


@pytest.mark.parametrize("c", [1, 224])
def test_near_the_oracle(c):
    data = make_paper_small(c=c, seed=2001)
    fit = fit_mnpca(data.Y, 2)
    assert psnr(fit.denoised(), data.signal) > oracle_psnr(data) - 0.35


def test_chains_lose_no_component():
    unit_variance = (1 + 0.8**2) / (1 - 0.8**2)
    data = make_paper_small(
        seed=2002,
        row_precision=unit_variance * chain_precision(300, 0.8),
        col_precision=unit_variance * chain_precision(200, 0.8),
    )
    fit = fit_mnpca(data.Y, 2)
    assert psnr(fit.denoised(), data.signal) > oracle_psnr(data) - 1.5


def test_edges_of_the_noise(data, fit):
    rows = edge_recovery(fit.row_noise.precision, data.row_precision, n_edges=150)
    cols = edge_recovery(fit.col_noise.precision, data.col_precision, n_edges=150)
    assert rows.ppv > 0.85
    assert cols.ppv > 0.85
    assert min(rows.tpr, cols.tpr) > 0.3


def test_result_is_consistent(data, fit):
    Y = data.Y
    n, p = Y.shape
    assert abs(fit.row_noise.log_determinant) < 1e-6
    B = fit.col_noise.precision
    A = fit.row_noise.precision
    np.testing.assert_allclose(fit.loadings.T @ (B @ fit.loadings), np.eye(2), atol=1e-6)
    gram = fit.scores.T @ (A @ fit.scores)
    np.testing.assert_allclose(gram, np.diag(fit.singular_values**2), atol=1e-2)
    largest = np.abs(fit.loadings).argmax(axis=0)
    assert (fit.loadings[largest, [0, 1]] > 0).all()
    assert fit.chosen in [candidate.name for candidate in fit.candidates]
    assert fit.n_iter == len(fit.history)
    # The bound lies below the density that the posterior mean signal would have by itself.
    residual = Y - fit.denoised()
    misfit = np.sum((A @ residual) * (residual @ B))
    logdets = p * fit.row_noise.log_determinant + n * fit.col_noise.log_determinant
    at_mean = -0.5 * (n * p * np.log(2 * np.pi) + misfit - logdets)
    assert fit.elbo < at_mean


def test_standard_errors_are_calibrated(data):
    fit = fit_mnpca(data.Y, 2, prior="gaussian")
    standard_error = np.sqrt(fit.signal_variance.dense())
    z = (fit.denoised() - data.signal) / standard_error
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.25


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_scale_equivariance(small, small_fit, factor):
    data, fit = small, small_fit
    scaled = fit_mnpca(factor * data.Y, 2)
    np.testing.assert_allclose(
        scaled.denoised(), factor * fit.denoised(), rtol=1e-3, atol=1e-3 * factor
    )
    assert scaled.col_noise.n_edges == fit.col_noise.n_edges
    np.testing.assert_allclose(
        scaled.col_noise.precision.toarray() * factor**2,
        fit.col_noise.precision.toarray(),
        atol=1e-3,
    )
    np.testing.assert_allclose(scaled.elbo, fit.elbo - data.Y.size * np.log(factor), rtol=1e-6)


def test_permutation_equivariance(data, fit):
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(300), rng.permutation(200)
    shuffled = fit_mnpca(data.Y[rows][:, cols], 2)
    np.testing.assert_allclose(
        shuffled.denoised(), fit.denoised()[rows][:, cols], atol=0.01 * np.abs(fit.denoised()).max()
    )
    assert shuffled.row_noise.n_edges == fit.row_noise.n_edges


def test_translation_equivariance_when_centering(small):
    data, shift = small, np.linspace(-1e4, 1e4, 80)
    plain = fit_mnpca(data.Y, 2, center=True, prior="gaussian")
    shifted = fit_mnpca(data.Y + shift, 2, center=True, prior="gaussian")
    np.testing.assert_allclose(shifted.denoised() - shift, plain.denoised(), atol=1e-3)
    assert fit_mnpca(data.Y + 1e4, 2, prior="gaussian").centered


def test_transposition(small):
    data = small
    upright = fit_mnpca(data.Y, 2, center=False, prior="gaussian")
    lying = fit_mnpca(data.Y.T, 2, center=False, prior="gaussian")
    difference = np.abs(lying.denoised().T - upright.denoised()).mean()
    assert difference < 0.1 * np.abs(upright.denoised()).mean()


def test_identity_noise_is_shrunken_pca():
    rng = np.random.default_rng(0)
    signal = 30 * rng.standard_normal((80, 2)) @ rng.standard_normal((2, 50))
    Y = signal + rng.standard_normal((80, 50))
    fit = fit_mnpca(Y, 2, noise="identity", center=False)
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    pca = (U[:, :2] * s[:2]) @ Vt[:2]
    np.testing.assert_allclose(fit.denoised(), pca, atol=0.05)
    np.testing.assert_allclose(fit.col_noise.weights, fit.col_noise.weights[0])
    noise_variance = 1 / fit.col_noise.weights[0]
    np.testing.assert_allclose(noise_variance, 1.0, atol=0.05)


def test_rank_zero(small):
    fit = fit_mnpca(small.Y, 0)
    assert fit.low_rank.left.shape == (120, 0)
    assert fit.denoised().shape == (120, 80)


def test_noise_structures(small):
    data = small
    diagonal = fit_mnpca(data.Y, 2, noise="diagonal", prior="gaussian")
    assert diagonal.row_noise.is_diagonal
    assert diagonal.col_noise.is_diagonal
    mixed = fit_mnpca(data.Y, 2, noise=("diagonal", "graph"), prior="gaussian")
    assert mixed.row_noise.is_diagonal
    assert mixed.col_noise.n_edges > 0


@pytest.mark.parametrize("shape", [(5, 4), (3, 30), (30, 3), (12, 1)])
def test_tiny_matrices(shape):
    data = make_low_rank_matrix_normal(*shape, 1, density=0.0, random_state=0)
    fit = fit_mnpca(data.Y, 1)
    assert np.isfinite(fit.denoised()).all()


def test_constant_columns_and_rows():
    data = make_paper_small(c=8, seed=2004, n_samples=40, n_features=30)
    Y = data.Y.copy()
    Y[:, 3] = 0.0
    Y[5] = 0.0
    fit = fit_mnpca(Y, 2)
    assert np.isfinite(fit.denoised()).all()


def test_very_many_rows_bring_no_false_edges_among_columns():
    """Remainders of the signal, tiny but far above chance here, must not pass for edges."""
    n, p = 12_000, 60
    rng = np.random.default_rng(0)
    first = 2 * np.arange(p // 4)
    B = np.eye(p)
    B[first, first + 1] = B[first + 1, first] = -0.5
    noise = rng.standard_normal((n, p)) @ np.linalg.cholesky(np.linalg.inv(B)).T
    signal = 0.3 * rng.standard_normal((n, 2)) @ rng.standard_normal((2, p))
    fit = fit_mnpca(signal + noise, 2, noise=("diagonal", "graph"), center=False)
    found = fit.col_noise.precision.toarray() != 0
    assert found[first, first + 1].all()
    assert fit.col_noise.n_edges <= len(first) + 2
