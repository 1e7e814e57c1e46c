import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision, sample_matrix_normal
from mnpca.model.low_rank import LowRank
from mnpca.model.whiteness import marchenko_pastur_distance, whiteness


def check(Y, row_precision=None, col_precision=None):
    n, p = Y.shape
    return whiteness(
        Y,
        np.zeros(p),
        LowRank(np.zeros((n, 0)), np.zeros((p, 0))),
        sp.csr_array(sp.eye_array(n)) if row_precision is None else sp.csr_array(row_precision),
        sp.csr_array(sp.eye_array(p)) if col_precision is None else sp.csr_array(col_precision),
    )


@pytest.mark.parametrize("shape", [(300, 200), (60, 40), (30, 400), (25, 22)])
def test_white_noise_passes(shape):
    verdicts = [check(np.random.default_rng(s).normal(size=shape)).white for s in range(1000, 1040)]
    assert all(verdicts)


def test_noise_with_its_own_precisions_passes_and_without_them_fails():
    rows, cols = chain_precision(150, 0.6), chain_precision(100, 0.6)
    for seed in range(1000, 1010):
        Y = sample_matrix_normal(rows, cols, seed)
        assert check(Y, rows, cols).white
        plain = check(Y)
        assert plain.white is False
        assert not plain.uncorrelated


def test_a_component_in_the_residual_shows_in_the_largest_singular_value():
    rng = np.random.default_rng(1000)
    Y = rng.normal(size=(200, 100)) + 0.4 * np.outer(rng.normal(size=200), rng.normal(size=100))
    found = check(Y)
    assert found.white is False
    values = np.linalg.svd(Y, compute_uv=False)
    expected = values[0] / np.sqrt(np.mean(Y**2)) / (np.sqrt(200) + np.sqrt(100))
    assert found.largest_singular_value == pytest.approx(expected)


def test_correlation_beyond_chance_is_that_of_the_population():
    # Rows in pairs with correlation 0.8: mean square over all pairs is 0.64 / (n - 1).
    rng = np.random.default_rng(1000)
    n, p = 40, 20000
    common = np.repeat(rng.normal(size=(n // 2, p)), 2, axis=0)
    Y = np.sqrt(0.8) * common + np.sqrt(0.2) * rng.normal(size=(n, p))
    assert check(Y[:, :1000]).row_correlation == pytest.approx(np.sqrt(0.64 / (n - 1)), rel=0.1)
    assert check(Y[:, :1000]).row_linked == pytest.approx(1 / (n - 1))


def test_distance_to_the_law_vanishes_for_large_white_matrices():
    rng = np.random.default_rng(1000)
    for shape in ((400, 400), (800, 200), (200, 800)):
        values = np.linalg.svd(rng.normal(size=shape), compute_uv=False)
        assert marchenko_pastur_distance(values, *shape) < 0.02
        assert marchenko_pastur_distance(1.3 * values, *shape) > 0.1


def test_large_matrices_are_sampled(monkeypatch):
    monkeypatch.setattr("mnpca.model.whiteness.LARGEST_SAMPLE", 50)
    rows, cols = chain_precision(150, 0.6), chain_precision(100, 0.6)
    found = check(sample_matrix_normal(rows, cols, 1000), rows, cols)
    assert (found.n_rows, found.n_cols) == (50, 50)
    assert found.white


def test_no_verdict_on_tiny_matrices():
    assert check(np.random.default_rng(0).normal(size=(100, 10))).white is None
