"""The criterion along a path, recomputed from single solutions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import choose_penalty

from .reference import chain_covariance


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("criterion", "gamma"), [("bic", 0.0), ("ebic", 0.5)])
def test_criterion_of_every_penalty(criterion, gamma, diagonal):
    n, p = 200, 8
    S = 2 * chain_covariance(p, n, seed=70)
    chosen = choose_penalty(S, n, criterion, penalize_diagonal=diagonal, tol=1e-11)
    off = np.abs(S - np.diag(np.diagonal(S))).max()
    grid = off * 0.01 ** (np.arange(30) / 29)
    tried = len(chosen.alphas)
    assert_allclose(chosen.alphas, grid[:tried])
    for alpha, value in zip(chosen.alphas, chosen.criterion, strict=True):
        T = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-11).precision.toarray()
        n_edges = np.count_nonzero(np.triu(T, 1))
        likelihood = n * (np.sum(S * T) - np.linalg.slogdet(T)[1])
        penalty = n_edges * (np.log(n) + 4 * gamma * np.log(p))
        assert_allclose(value, likelihood + penalty, atol=1e-2)
    # The path ended after the fourth value above the best one, and not before.
    best = int(np.argmin(chosen.criterion))
    assert best > 0
    assert tried == min(best + 1 + 4, 30)
    assert chosen.alpha == chosen.alphas[best]
    again = sparse_precision(S, chosen.alpha, penalize_diagonal=diagonal, tol=1e-11)
    assert_allclose(chosen.result.precision.toarray(), again.precision.toarray(), atol=1e-3)
    assert_allclose(chosen.result.objective, again.objective, atol=1e-6)


def test_a_path_that_keeps_falling_goes_to_its_end():
    n = 100_000
    chosen = choose_penalty(0.5 * np.eye(4) + 0.5, n, "bic")
    assert len(chosen.criterion) == 30
    assert_allclose(chosen.alphas[-1], 0.01 * chosen.alphas[0])
    assert int(np.argmin(chosen.criterion)) > 25


def test_uncorrelated_variables_leave_no_choice():
    chosen = choose_penalty(np.diag([1.0, 2.0, 3.0]), 10)
    assert chosen.alphas.tolist() == [0.0]
    plain, penalized = (
        choose_penalty(chain_covariance(5, 60, seed=73), 60, **options)
        for options in ({}, {"penalize_diagonal": True})
    )
    assert plain.criterion[0] != penalized.criterion[0]
    assert plain.result.duality_gap <= 5e-4
    assert chosen.alpha == 0.0
    assert_allclose(chosen.criterion, 10 * (np.log(6) + 3))
    assert_allclose(chosen.result.precision.toarray(), np.diag([1, 1 / 2, 1 / 3]))


@pytest.mark.parametrize(
    ("n", "criterion", "message"),
    [
        (10, "aic", "criterion must be one of"),
        (0, "bic", "n_samples"),
        (np.inf, "bic", "n_samples"),
    ],
)
def test_bad_input_is_named(n, criterion, message):
    with pytest.raises(ValueError, match=message):
        choose_penalty(np.eye(2), n, criterion)
    assert choose_penalty(np.eye(2), 1).alpha == 0.0
