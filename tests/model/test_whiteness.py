"""Whiteness of residuals: verdicts, and every measure by its definition."""

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
    verdicts = [check(np.random.default_rng(s).normal(size=shape)).white for s in range(1000, 1010)]
    assert all(verdicts)


def test_noise_with_its_own_precisions_passes_and_without_them_fails():
    rows, cols = chain_precision(150, 0.6), chain_precision(100, 0.6)
    for seed in range(1000, 1004):
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


def test_a_verdict_needs_twenty_rows_and_columns():
    rng = np.random.default_rng(0)
    assert check(rng.normal(size=(20, 20))).white is not None
    assert check(rng.normal(size=(19, 40))).white is None


def complement(*columns):
    """Projection onto what is orthogonal to the columns."""
    factor = np.column_stack(columns)
    return np.eye(len(factor)) - factor @ np.linalg.pinv(factor)


def naive_correlation(items, free, population=None):
    """Mean square correlation beyond that of the population and chance, pair by pair."""
    q = len(items)
    population = np.eye(q) if population is None else population
    items = items / np.sqrt((items**2).mean(axis=0))
    norms, deviations = np.sqrt((items**2).sum(axis=1)), np.sqrt(np.diag(population))
    excess = []
    for i in range(q):
        for j in set(range(q)) - {i}:
            c = population[i, j] / (deviations[i] * deviations[j])
            r = items[i] @ items[j] / (norms[i] * norms[j])
            excess.append(r**2 - c**2 - (1 - c**2) ** 2 / free)
    return np.sqrt(max(np.mean(excess), 0))


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_measures_of_a_fit_by_their_definition(mean):
    """What the signal and the mean took is left out, and does not count."""
    n, p, k = 40, 30, 2
    rows, cols = chain_precision(n, 0.5), chain_precision(p, 0.5)
    rng = np.random.default_rng(1000)
    Y = sample_matrix_normal(chain_precision(n, 0.7), chain_precision(p, 0.7), 1000) + mean
    means = Y.mean(axis=0) if mean else np.zeros(p)
    signal = LowRank(0.3 * rng.normal(size=(n, k)), rng.normal(size=(p, k)))
    found = whiteness(Y, means, signal, sp.csr_array(rows), sp.csr_array(cols))
    row_root, col_root = (np.linalg.cholesky(M.toarray()).T for M in (rows, cols))
    taken = [signal.left, np.ones(n)] if mean else [signal.left]
    on_rows = complement(row_root @ np.column_stack(taken))
    on_cols = complement(col_root @ signal.right)
    Z = on_rows @ row_root @ (Y - means - signal.dense()) @ col_root.T @ on_cols
    n_free, p_free = n - k - bool(mean), p - k
    size = np.sqrt((Z**2).sum() / (n_free * p_free))
    top = np.linalg.norm(Z, 2) / size / (np.sqrt(n_free) + np.sqrt(p_free))
    assert found.largest_singular_value == pytest.approx(top)
    row = naive_correlation(Z, p_free, on_rows)
    col = naive_correlation(Z.T, n_free, on_cols)
    assert (found.row_correlation, found.col_correlation) == pytest.approx((row, col))
    assert min(row, col) > 0.05


def test_white_noise_less_a_localized_signal_passes():
    """Directions that live on a few rows and columns are taken out of these alone."""
    rng = np.random.default_rng(1000)
    left, right = np.zeros((40, 2)), np.zeros((30, 2))
    left[:8], right[:8] = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    for seed in range(1000, 1010):
        noise = np.random.default_rng(seed).normal(size=(40, 30))
        fitted = noise - complement(left) @ noise @ complement(right)
        eyes = [sp.csr_array(sp.eye_array(q)) for q in noise.shape]
        signal = LowRank(left, right)
        found = whiteness(noise - fitted + signal.dense(), np.zeros(30), signal, *eyes)
        assert found.white


@pytest.mark.parametrize("k", [0, 2])
def test_rows_of_several_matrices_are_compared_over_all_of_them(k):
    """Items correlated alike in every matrix; the matrices themselves are independent."""
    n_repeats, n, p = 5, 8, 12
    rng = np.random.default_rng(1000)
    mix = np.linalg.cholesky(0.5 * np.eye(n) + 0.5)
    Y = np.vstack([mix @ rng.normal(size=(n, p)) for _ in range(n_repeats)])
    signal = LowRank(rng.normal(size=(n_repeats * n, k)), rng.normal(size=(p, k)))
    eyes = (sp.csr_array(sp.eye_array(q)) for q in Y.shape)
    found = whiteness(Y + signal.dense(), np.zeros(p), signal, *eyes, n_repeats=n_repeats)
    on_rows, on_cols = complement(signal.left), complement(signal.right)
    Z = on_rows @ Y @ on_cols
    blocks = np.array(np.split(on_rows, n_repeats))
    alike = sum(block[:, n * at : n * at + n] for at, block in enumerate(blocks)) / n_repeats
    row = naive_correlation(np.hstack(np.split(Z, n_repeats)), (p - k) * n_repeats, alike)
    assert found.row_correlation == pytest.approx(row)
    col = naive_correlation(Z.T, n_repeats * n - k, on_cols)
    assert found.col_correlation == pytest.approx(col)


def test_whole_matrices_are_sampled(monkeypatch):
    monkeypatch.setattr("mnpca.model.whiteness.LARGEST_SAMPLE", 30)
    Y = np.random.default_rng(0).normal(size=(60, 20))
    signal = LowRank(np.zeros((60, 0)), np.zeros((20, 0)))
    eyes = [sp.csr_array(sp.eye_array(q)) for q in Y.shape]
    found = whiteness(Y, np.zeros(20), signal, *eyes, n_repeats=6)
    assert (found.n_rows, found.n_cols) == (30, 20)
    chosen = np.sort(np.random.default_rng(0).choice(6, 3, replace=False))
    part = np.concatenate([Y[10 * c : 10 * (c + 1)] for c in chosen])
    row = naive_correlation(np.hstack(np.split(part, 3)), 60)
    assert found.row_correlation == pytest.approx(row)
    monkeypatch.setattr("mnpca.model.whiteness.LARGEST_SAMPLE", 5)
    assert whiteness(Y, np.zeros(20), signal, *eyes, n_repeats=6).n_rows == 10  # one is the least
