"""Noise in missing cells against the dense Gaussian it is a part of."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision, random_sparse_precision
from mnpca.model.conditional import MissingNoise, noise_variances, sample_noise

N, P = 8, 6


def precisions(kind):
    if kind == "diagonal":
        rng = np.random.default_rng(0)
        return [sp.csr_array(sp.diags_array(rng.uniform(0.5, 2, size))) for size in (N, P)]
    return [random_sparse_precision(N, 0.3, 8.0, 0), 2 * random_sparse_precision(P, 0.4, 8.0, 1)]


def dense(missing, A, B):
    """Mean map and covariance of the missing cells given the others, row by row."""
    whole = np.kron(A.toarray(), B.toarray())
    m = missing.ravel()
    covariance = np.linalg.inv(whole[np.ix_(m, m)])
    return -covariance @ whole[np.ix_(m, ~m)], covariance


@pytest.fixture(params=[0.1, 0.5])
def missing(request):
    return np.random.default_rng(2).random((N, P)) < request.param


@pytest.mark.parametrize("started", [True, False])
def test_the_conditional_mean(missing, started):
    A, B = precisions("graph")
    noise = MissingNoise(missing, A, B)
    assert not noise.independent
    residual = np.random.default_rng(3).normal(size=(N, P))
    expected = dense(missing, A, B)[0] @ residual[~missing]
    residual[missing] = 1e6  # not read
    start = np.random.default_rng(4).normal(size=missing.sum()) if started else None
    kept = None if start is None else start.copy()
    found = noise.mean(residual, start, tol=1e-10)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    if started:
        assert np.array_equal(start, kept)
    errors = [np.linalg.norm(noise.mean(residual, tol=tol) - expected) for tol in (0.3, 1e-3)]
    assert errors[1] <= min(errors[0], 1e-2 * np.linalg.norm(expected))
    assert np.array_equal(noise.mean(np.zeros((N, P))), np.zeros(missing.sum()))


def test_without_networks_observed_cells_tell_nothing(missing):
    A, B = precisions("diagonal")
    noise = MissingNoise(missing, A, B)
    assert noise.independent
    assert np.array_equal(noise.mean(np.ones((N, P)), np.ones(missing.sum())), 0 * missing[missing])
    np.testing.assert_allclose(noise.variances(), np.diag(dense(missing, A, B)[1]))
    one_sided = MissingNoise(missing, A, precisions("graph")[1])
    assert not one_sided.independent


def test_variances_of_pairs_are_exact():
    """Two linked missing cells in one row, and one alone in another."""
    A, B = sp.csr_array(2.0 * np.eye(4)), chain_precision(6, 0.5)
    missing = np.zeros((4, 6), dtype=bool)
    missing[0, 2:4] = missing[2, 5] = True
    expected = np.diag(dense(missing, A, B)[1])
    np.testing.assert_allclose(MissingNoise(missing, A, B).variances(), expected)


def test_variances_have_a_limit_where_everything_is_missing():
    A, B = chain_precision(N, 0.8), chain_precision(P, 0.8)
    everything = np.ones((N, P), dtype=bool)
    alone = 1 / np.outer(A.diagonal(), B.diagonal())[everything]
    found = MissingNoise(everything, A, B).variances()
    assert (found >= alone).all()
    assert found.max() == pytest.approx(20 * alone[found.argmax()])


def test_draws_have_the_conditional_distribution(missing):
    A, B = chain_precision(N, 0.8), chain_precision(P, 0.8)  # what is observed tells a lot
    noise = MissingNoise(missing, A, B)
    mean_map, covariance = dense(missing, A, B)
    rng = np.random.default_rng(5)
    residual = rng.normal(size=(N, P))
    draws = [noise.draw(residual, sample_noise(A, B, rng), tol=1e-8) for _ in range(400)]
    deviation = np.sqrt(np.diag(covariance))
    errors = (np.mean(draws, axis=0) - mean_map @ residual[~missing]) / deviation
    assert np.abs(errors).max() < 5 / np.sqrt(400)
    scale = np.outer(deviation, deviation)
    np.testing.assert_allclose(np.cov(np.transpose(draws)) / scale, covariance / scale, atol=0.27)


def test_noise_and_its_variances():
    for A, B in (precisions("graph"), precisions("diagonal")):
        np.testing.assert_allclose(noise_variances(A), np.diag(np.linalg.inv(A.toarray())))
        rng = np.random.default_rng(6)
        draws = np.array([sample_noise(A, B, rng).ravel() for _ in range(400)])
        expected = np.linalg.inv(np.kron(A.toarray(), B.toarray()))
        scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
        np.testing.assert_allclose(draws.T @ draws / 400 / scale, expected / scale, atol=0.26)
