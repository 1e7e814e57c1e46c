"""Paths and the penalty chosen on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision, sparse_precision_path
from mnpca.precision import choose_penalty

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("alphas", [[0.3, 0.3, 0.2], [0.1, 0.5, 0.02, 0.45], [0.2]])
def test_a_path_holds_certified_solutions_in_the_order_asked(alphas, diagonal):
    S = factor_covariance(40, 60, seed=23)
    init = sparse_precision(S, 0.7)
    path = sparse_precision_path(S, alphas, penalize_diagonal=diagonal, init=init)
    for alpha, result in zip(alphas, path, strict=True):
        T = result.precision.toarray()
        assert np.linalg.eigvalsh(T).min() > 0
        assert_allclose(objective(S, penalty_matrix(alpha, 40, diagonal), T), result.objective)
        best = sparse_precision(S, alpha, penalize_diagonal=diagonal, tol=1e-9).objective
        assert result.objective - best <= result.duality_gap + 1e-7
        assert result.duality_gap <= 1e-4 * 40


@pytest.mark.parametrize("alphas", [0.1, [], [[0.1]]])
def test_penalties_must_be_a_list(alphas):
    with pytest.raises(ValueError, match="list of numbers"):
        sparse_precision_path(np.eye(3), alphas)


@pytest.mark.parametrize(
    ("criterion", "gamma", "diagonal"), [("bic", 0.0, False), ("ebic", 0.5, True)]
)
def test_criterion_of_every_penalty(criterion, gamma, diagonal):
    n, p = 200, 8
    S = 2 * chain_covariance(p, n, seed=70)
    options = {"penalize_diagonal": diagonal, "tol": 1e-11}
    chosen = choose_penalty(S, n, criterion, **options)
    grid = np.abs(S - np.diag(np.diagonal(S))).max() * 0.01 ** (np.arange(30) / 29)
    tried = len(chosen.alphas)
    assert_allclose(chosen.alphas, grid[:tried])
    for alpha, value in zip(chosen.alphas, chosen.criterion, strict=True):
        T = sparse_precision(S, alpha, **options).precision.toarray()
        likelihood = n * (np.sum(S * T) - np.linalg.slogdet(T)[1])
        penalty = np.count_nonzero(np.triu(T, 1)) * (np.log(n) + 4 * gamma * np.log(p))
        assert_allclose(value, likelihood + penalty, atol=1e-2)
    # The path ended after the fourth value above the best one, and not before.
    best = int(np.argmin(chosen.criterion))
    assert best > 0
    assert tried == min(best + 1 + 4, 30)
    assert chosen.alpha == chosen.alphas[best]
    again = sparse_precision(S, chosen.alpha, **options)
    assert_allclose(chosen.result.objective, again.objective, atol=1e-6)


def test_a_path_that_keeps_falling_goes_to_its_end():
    chosen = choose_penalty(0.5 * np.eye(4) + 0.5, 100_000, "bic")
    assert_allclose(chosen.alphas[[-1]], 0.01 * chosen.alphas[[0]])
    assert int(np.argmin(chosen.criterion)) > 25


def test_uncorrelated_variables_leave_no_choice():
    chosen = choose_penalty(np.diag([1.0, 2.0, 3.0]), 10)
    assert chosen.alphas.tolist() == [0.0]
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
