"""Theorem 1 of the paper: how far correlated noise moves the eigenvalues that PCA sees."""

import numpy as np
import pytest

from mnpca.datasets import random_sparse_precision


def covariances(n, p, condition, scale, seed):
    """Row and column covariance with traces n s and p s."""
    for size, rng in ((n, seed), (p, seed + 1)):
        covariance = np.linalg.inv(random_sparse_precision(size, 0.2, condition, rng).toarray())
        yield covariance * size * scale / np.trace(covariance)


def shift(signal, row_covariance, col_covariance):
    """|eigenvalues of E(Y'Y)/n less those of M'M/n|, with E(E'E) = tr(row) col."""
    n = len(signal)
    noisy = signal.T @ signal / n + np.trace(row_covariance) / n * col_covariance
    return np.abs(np.linalg.eigvalsh(noisy) - np.linalg.eigvalsh(signal.T @ signal / n))


@pytest.mark.parametrize("condition", [1.0, 8.0, 224.0])
@pytest.mark.parametrize("shape", [(30, 20), (20, 20), (15, 40)])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_bound_holds(condition, shape, scale):
    rng = np.random.default_rng(0)
    for seed in range(5):
        signal = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
        row, col = covariances(*shape, condition, scale, seed)
        bound = scale * np.linalg.eigvalsh(col)[-1]
        assert shift(signal, row, col).max() <= bound * (1 + 1e-10)


def test_it_is_tightest_for_white_noise():
    bounds = []
    for condition in (1.0, 8.0, 64.0):
        _, col = covariances(30, 20, condition, 1.5, 0)
        bounds.append(1.5 * np.linalg.eigvalsh(col)[-1])
    assert bounds[0] == pytest.approx(1.5**2)
    assert bounds == sorted(bounds)


def test_white_noise_attains_it():
    signal = np.random.default_rng(0).normal(size=(30, 20))
    row, col = covariances(30, 20, 1.0, 1.5, 0)
    np.testing.assert_allclose(shift(signal, row, col), 1.5**2)
