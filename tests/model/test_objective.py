"""The objective against the density it comes from, and its best scale."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import matrix_normal

from mnpca.datasets import random_sparse_precision
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, best_gauge, objective

N, P = 6, 4


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    signal = LowRank(rng.normal(size=(N, 2)), rng.normal(size=(P, 2)))
    A, B = random_sparse_precision(N, 0.5, 6.0, 1), random_sparse_precision(P, 0.6, 6.0, 2)
    return rng.normal(size=(N, P)), signal, 2 * A, B


def test_it_is_the_negative_log_likelihood(parts):
    Y, signal, A, B = parts
    density = matrix_normal(
        signal.dense(), np.linalg.inv(A.toarray()), np.linalg.inv(B.toarray())
    ).logpdf(Y)
    expected = -2 / (N * P) * density - np.log(2 * np.pi)
    np.testing.assert_allclose(objective(*parts, Penalty()), expected)


@pytest.mark.parametrize("diagonal", [True, False])
def test_penalties(parts, diagonal):
    _, signal, A, B = parts
    rng = np.random.default_rng(1)
    weights = rng.uniform(size=(N, N))
    penalty = Penalty(weights + weights.T, 0.3, diagonal, ridge=0.7)
    counted = (np.ones((N, N)), np.ones((P, P)))
    if not diagonal:
        counted = (1 - np.eye(N), 1 - np.eye(P))
    expected = np.sum((weights + weights.T) * np.abs(A.toarray()) * counted[0]) / N
    expected += 0.3 * np.sum(np.abs(B.toarray()) * counted[1]) / P
    X, W = signal
    expected += 0.7 * (np.trace(X.T @ A @ X) + np.trace(W.T @ B @ W)) / (N * P)
    np.testing.assert_allclose(objective(*parts, penalty) - objective(*parts, Penalty()), expected)


def test_scale_free_penalties(parts):
    Y, signal, A, B = parts
    penalty = Penalty(0.2, 0.4, scale_free=True)
    value = objective(*parts, penalty)
    mean_A, mean_B = (np.linalg.det(M.toarray()) ** (1 / M.shape[0]) for M in (A, B))
    weighted = Penalty(0.2 * mean_B, 0.4 * mean_A)
    np.testing.assert_allclose(value, objective(*parts, weighted))
    np.testing.assert_allclose(value, objective(Y, signal, 5 * A, B / 5, penalty))
    assert not penalty.determines_scale


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_best_gauge(parts, ridge):
    Y, signal, A, B = parts
    penalty = Penalty(0.2, 0.4, True, ridge)
    t = best_gauge(Y.shape, signal, A, B, penalty)

    def value(log_t):
        return objective(Y, signal, A * np.exp(log_t), B / np.exp(log_t), penalty)

    assert np.log(t) == pytest.approx(minimize_scalar(value).x, abs=1e-5)
    assert value(np.log(t)) < value(0.0)


def test_no_penalty_no_gauge(parts):
    Y, signal, A, B = parts
    assert best_gauge(Y.shape, signal, A, B, Penalty(0.2, 0.0)) == 1.0
    assert best_gauge(Y.shape, signal, A, B, Penalty(0.0, 0.2)) == 1.0
