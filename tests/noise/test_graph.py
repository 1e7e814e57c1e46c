"""Choice of a graph and maximum likelihood on it."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision
from mnpca.engines.gram import FactorGram
from mnpca.noise.graph import FIRST_PARTNERS, Candidates, select_graph
from mnpca.noise.support import Support, SupportFit


def correlation_of(precision, n_observations, seed):
    """Gram of standardized draws: their sample correlation."""
    white = np.random.default_rng(seed).normal(size=(precision.shape[0], n_observations))
    dense = precision.toarray() if sp.issparse(precision) else precision
    draws = np.linalg.solve(np.linalg.cholesky(dense).T, white)
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    return FactorGram(draws, draws.copy())


def chain_edges(size):
    return {(i, i + 1) for i in range(size - 1)}


def test_a_chain_is_recovered_not_its_cliques():
    gram = correlation_of(chain_precision(80, 0.8), 400, 0)
    fit = select_graph(gram, 400, Candidates())
    found = set(zip(fit.support.i.tolist(), fit.support.j.tolist(), strict=True))
    assert chain_edges(80) <= found
    assert len(found - chain_edges(80)) <= 4


def test_a_hub_with_more_partners_than_the_first_round_proposes_is_recovered():
    partners = FIRST_PARTNERS + 20
    star = np.eye(partners + 1)
    star[0, 1:] = star[1:, 0] = -0.1
    fit = select_graph(correlation_of(star, 10_000, 0), 10_000, Candidates())
    assert np.sum(fit.support.i == 0) == partners


def test_white_noise_has_hardly_an_edge():
    """One set in twenty may have one."""
    found = [select_graph(correlation_of(np.eye(60), 200, s), 200, Candidates()) for s in range(40)]
    assert sum(fit is not None for fit in found) <= 6


def test_what_correlates_everywhere_is_no_graph():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((400, 50)) + 2 * rng.standard_normal((400, 1)) @ np.ones((1, 50))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    assert select_graph(FactorGram(draws, draws.copy()), 50, Candidates()) is None


def test_few_observations_of_many_items_show_no_graph_and_are_not_searched():
    class Unsearchable(FactorGram):
        def large_entries(self, level, n_rows=None):
            raise AssertionError("all pairs were looked at")

    draws = np.random.default_rng(0).standard_normal((5000, 10))
    assert select_graph(Unsearchable(draws, draws.copy()), 10, Candidates()) is None


def test_remembered_candidates_give_the_same_graph():
    gram = correlation_of(chain_precision(60, 0.7), 300, 1)
    memory = Candidates()
    first = select_graph(gram, 300, memory)
    assert memory.complete
    again = select_graph(gram, 300, memory)
    np.testing.assert_array_equal(first.support.keys, again.support.keys)
    np.testing.assert_allclose(first.edge_values, again.edge_values)


@pytest.mark.parametrize("warm", [False, True])
def test_support_fit_is_maximum_likelihood(warm):
    """At the maximum the fitted covariance equals C on the support; P is zero elsewhere."""
    gram = correlation_of(chain_precision(30, 0.6), 100, 2)
    correlation = gram.left @ gram.right.T
    i, j = np.arange(0, 28), np.arange(2, 30)
    i, j = np.concatenate([i, [0, 5]]), np.concatenate([j, [1, 20]])
    support = Support.of(30, i, j)
    start = None
    if warm:
        start = SupportFit(Support.of(30, i[:20], j[:20]), correlation[i[:20], j[:20]], gram)
    fit = SupportFit(support, correlation[i, j], gram, start, max_sweeps=500, tol=1e-12)
    precision = fit.precision().toarray()
    covariance = np.linalg.inv(precision)
    np.testing.assert_allclose(np.diag(covariance), 1.0, rtol=1e-8)
    np.testing.assert_allclose(covariance[i, j], correlation[i, j], atol=1e-8)
    assert np.count_nonzero(precision) == 30 + 2 * len(i)


def test_singular_block_is_repaired():
    """More items than observations on a full support: no maximum, but a definite answer."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((12, 3))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    gram = FactorGram(draws, draws.copy())
    i, j = np.triu_indices(12, 1)
    fit = SupportFit(Support.of(12, i, j), gram.entries(i, j), gram)
    assert np.linalg.eigvalsh(fit.precision().toarray())[0] > 0


@pytest.mark.parametrize("small", [0, 32])
def test_every_fit_is_definite(small, monkeypatch):
    """Few observations and few sweeps: a tenth of these fits would not be by themselves."""
    monkeypatch.setattr("mnpca.noise.support.SMALL", small)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(4, 12))
        gram = correlation_of(np.eye(size), int(rng.integers(2, 8)), seed)
        i, j = np.triu_indices(size, 1)
        linked = rng.random(len(i)) < 0.6
        support = Support.of(size, i[linked], j[linked])
        fit = SupportFit(support, gram.entries(support.i, support.j), gram, max_sweeps=2)
        assert np.linalg.eigvalsh(fit.precision().toarray())[0] > 0


def log_likelihood(precision, covariance):
    return np.linalg.slogdet(precision)[1] - np.sum(precision * covariance)


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (0, 2), (2, 3)]])
def test_the_gain_of_an_edge_is_exact_in_a_decomposable_graph(edges):
    """A chain, and a triangle with a tail: compare with fits without each edge in turn."""
    gram = correlation_of(chain_precision(4, 0.6).toarray() + 0.1, 100, 3)
    i, j = np.array(edges).T
    covariance = np.eye(4)
    covariance[np.triu_indices(4, 1)] = gram.entries(*np.triu_indices(4, 1))
    covariance = np.triu(covariance) + np.triu(covariance, 1).T

    def fitted(i, j):
        return SupportFit(Support.of(4, i, j), gram.entries(i, j), gram, max_sweeps=500, tol=1e-12)

    full = fitted(i, j)
    value = log_likelihood(full.precision().toarray(), covariance)
    for edge in range(len(i)):
        rest = np.arange(len(i)) != edge
        without = fitted(i[rest], j[rest]).precision().toarray()
        loss = value - log_likelihood(without, covariance)
        assert full.edge_gains[edge] == pytest.approx(loss, rel=1e-5, abs=1e-9)


def test_a_block_is_kept_although_every_edge_of_it_is_weak():
    """Ten items with correlation .6: the partial correlations are .1, below every level."""
    block = np.kron(np.eye(3), np.full((10, 10), 0.6)) + 0.4 * np.eye(30)
    fit = select_graph(correlation_of(np.linalg.inv(block), 200, 0), 200, Candidates())
    assert all(i // 10 == j // 10 for i, j in zip(fit.support.i, fit.support.j, strict=True))
    lost = np.linalg.slogdet(fit.precision().toarray() @ block)[1]
    assert abs(lost) < 0.15 * abs(np.linalg.slogdet(block)[1])


def test_what_stands_out_of_a_common_correlation_is_an_edge():
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((60, 400)) + 0.4 * rng.standard_normal(400)
    draws[1] += 2 * draws[0]
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    fit = select_graph(FactorGram(draws, draws.copy()), 400, Candidates())
    assert (0, 1) in set(zip(fit.support.i, fit.support.j, strict=True))
    assert fit.support.n_edges <= 5


def test_the_chosen_graph_is_refitted_to_the_maximum():
    """Refits that begin where the last one ended leave nothing behind in what is returned."""
    size = 60
    links = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    gram = correlation_of(np.linalg.inv(0.7**links + 0.3 * np.exp(-links / 10)), 400, 0)
    fit = select_graph(gram, 400, Candidates())
    i, j = fit.support.i, fit.support.j
    covariance = np.linalg.inv(fit.precision().toarray())
    np.testing.assert_allclose(np.diag(covariance), 1.0, atol=0.02)
    np.testing.assert_allclose(covariance[i, j], gram.entries(i, j), atol=0.02)


def test_correlations_that_are_not_definite_still_have_a_fit():
    """A posterior covariance of which only some entries are kept can make C indefinite."""
    size = 60
    gram = correlation_of(np.eye(size), 20, 0)
    gram.extra = sp.csr_array(sp.diags_array(np.full(size - 1, 0.4), offsets=1, shape=(size, size)))
    gram.extra = sp.csr_array(gram.extra + gram.extra.T)
    dense = gram.left @ gram.right.T + gram.extra.toarray()
    np.fill_diagonal(dense, 1.0)
    assert np.linalg.eigvalsh(dense)[0] < -0.05
    i, j = np.triu_indices(size, 1)
    fit = SupportFit(Support.of(size, i, j), gram.entries(i, j), gram)
    precision = fit.precision().toarray()
    assert np.linalg.eigvalsh(precision)[0] > 0
    assert log_likelihood(precision, dense) > log_likelihood(np.eye(size), dense)
