"""Paths and the penalty chosen on them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision, sparse_precision_path
from mnpca.precision import choose_penalty

from .reference import chain_covariance, factor_covariance, objective, penalty_matrix


def test_a_path_holds_the_single_solutions_in_the_order_asked():
    S = chain_covariance(50, 80, seed=20)
    alphas = [0.1, 0.5, 0.2, 0.05]
    path = sparse_precision_path(S, alphas, tol=1e-8)
    for alpha, result in zip(alphas, path, strict=True):
        assert result.duality_gap <= 1e-8 * 50
        single = sparse_precision(S, alpha, tol=1e-8)
        assert_allclose(result.objective, single.objective, atol=2e-6)
    assert path[3].precision.nnz > path[0].precision.nnz > path[1].precision.nnz


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("alphas", [[0.3, 0.3, 0.2], [0.5, 0.45, 0.1, 0.02], [0.2]])
def test_every_step_is_honest(alphas, diagonal):
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


def test_ebic_finds_the_chain_and_independence():
    n = 1000
    chosen = choose_penalty(chain_covariance(30, n, seed=21), n, "ebic")
    found = chosen.result.precision.toarray() != 0
    assert np.all(np.diagonal(found, 1))
    assert chosen.alpha in chosen.alphas
    sample = np.corrcoef(np.random.default_rng(22).standard_normal((30, n)))
    assert choose_penalty(sample, n, "ebic").result.precision.nnz == 30
    assert choose_penalty(np.eye(4), n).result.precision.nnz == 4
