"""Edge tests: calibration, agreement with a dense reference, equivariance, screening."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from mnpca.datasets import chain_precision
from mnpca.engines.gram import FactorGram
from mnpca.noise import edges as module
from mnpca.noise import favored
from mnpca.noise.edges import (
    EdgeTests,
    can_test,
    compare_tests,
    q_values,
    score_edges,
    score_spread,
    statistic,
)
from mnpca.noise.graph import largest_component


def draws(precision, m, seed):
    """Return q x m independent columns with the given precision."""
    dense = precision.toarray() if sp.issparse(precision) else precision
    lower = np.linalg.cholesky(np.linalg.inv(dense))
    return lower @ np.random.default_rng(seed).standard_normal((len(dense), m))


def scored(precision, m, seed, known=None):
    residual = draws(precision, m, seed)
    hidden = np.zeros((len(residual), 0))
    return score_edges(residual, hidden, sp.csr_array(precision if known is None else known), m)


def every_other_edge(size):
    """Return a precision with half of the edges of a chain."""
    half = np.zeros(size - 1)
    half[::2] = -0.3
    return sp.diags_array([half, np.ones(size), half], offsets=[-1, 0, 1], format="csr")


def keys(tests, chosen):
    return set(zip(tests.first[chosen].tolist(), tests.second[chosen].tolist(), strict=True))


def test_pairs_are_not_searched_where_none_can_pass():
    assert can_test(150, 10), "all pairs of some items are listed"
    assert can_test(20_000, 300)
    assert not can_test(20_000, 30)
    residual = np.random.default_rng(0).standard_normal((2000, 10))
    tests = score_edges(residual, np.zeros((2000, 0)), sp.csr_array(sp.eye_array(2000)), 10)
    assert len(tests.first) == 0


def test_p_values_without_an_edge_are_uniform():
    for seed in range(3):
        tests = scored(sp.eye_array(100), 60, seed)
        assert len(tests.p) == tests.n_pairs
        assert stats.kstest(tests.p, "uniform").pvalue > 0.01


def test_p_values_of_pairs_beside_a_network_are_uniform():
    """Neighbors of neighbors are correlated but have no edge, and their tests say so."""
    p = []
    for seed in range(20):
        tests = scored(chain_precision(40, 0.6), 150, seed)
        p.append(tests.p[tests.second - tests.first == 2])
    assert stats.kstest(np.concatenate(p), "uniform").pvalue > 0.01


def test_what_favors_a_pair_says_nothing_of_its_p_value_without_an_edge(monkeypatch):
    """Half of the chain is not known, so correlations mislead; p-values stay nearly uniform."""
    monkeypatch.setattr(favored, "FAVOR", 2.0)  # for more pairs
    truth = chain_precision(60, 0.6)
    known = every_other_edge(60)
    p, edges = [], []
    for seed in range(40):
        tests = scored(truth, 200, seed, known)
        assert np.sum(tests.favored) == tests.n_favored
        edge = tests.second - tests.first == 1
        p.append(tests.p[tests.favored & ~edge])
        edges.append(np.mean(tests.favored[edge]))
    p = np.concatenate(p)
    assert len(p) > 800
    # Kolmogorov's distance; it is .39 where the plain correlations choose.
    assert stats.kstest(p, "uniform").statistic < 0.07
    assert np.mean(edges) > 0.9


def listed_at_item_0(values, m, n_items, favored, n_favored):
    """Return tests of the first item with the next ones."""
    first, second = np.zeros(len(values), int), np.arange(1, len(values) + 1)
    values, share, many = np.array(values), np.ones(n_items), np.full(len(values), m)
    favored = np.array(favored, bool)
    return EdgeTests(n_items, m, first, second, values, share, many, 1.0, favored, n_favored)


def test_favored_pairs_have_a_third_of_the_expected_errors():
    z = stats.norm.isf(np.array([1e-6, 1e-3, 1e-3, 0.5]) / 2)
    tests = listed_at_item_0(z / 1e4, 1e8, 100, [0, 1, 0, 1], 10)
    # One error among the favored counts three, one among the 4940 others one and a half.
    lists = [1e-6 * 4940 * 1.5, 1e-3 * 10 * 3 / 2]
    np.testing.assert_allclose(tests.q, [*lists, 1.0, 1.0], rtol=1e-4)


def test_pairs_without_neighbors_are_not_favored():
    tests = scored(sp.eye_array(50), 100, 0)
    assert tests.n_favored == 0
    assert not tests.favored.any()


def test_favored_pairs_of_many_items_are_counted_at_some(monkeypatch):
    truth = chain_precision(120, 0.6)
    everything = scored(truth, 100, 0)
    monkeypatch.setattr(favored, "COUNTED", 40 * 120)
    some = scored(truth, 100, 0)
    assert some.n_favored == pytest.approx(everything.n_favored, rel=0.3)
    # What is listed in any case is favored as before.
    chosen = keys(some, some.favored)
    assert chosen <= keys(everything, everything.favored)
    assert len(chosen) > 100


def test_no_pair_is_listed_at_a_rate_below_its_p_value():
    tests = listed_at_item_0([0.9, 0.9, 0.9, 0.9, 0.1], 50.0, 10, [0, 0, 0, 0, 1], 1)
    assert (tests.q[:4] < 1e-6).all()
    # Expected are 3 p favored errors, among five edges.
    assert tests.q[4] == tests.p[4] > 0.4


def test_added_edges_do_not_link_too_many_items(monkeypatch):
    """The refit holds a dense array for every component."""
    sizes = []

    def noted(pairs, size):
        sizes.append(largest_component(pairs, size))
        return sizes[-1]

    monkeypatch.setattr(module, "largest_component", noted)
    scored(chain_precision(200, 0.6), 300, 0, sp.eye_array(200))
    assert max(sizes) > 50
    monkeypatch.setattr(module, "LARGEST_COMPONENT", 20)
    tests = scored(chain_precision(200, 0.6), 300, 0, sp.eye_array(200))
    assert 1 < sizes[-1] <= 20
    assert np.sum(tests.q <= 0.05) > 150


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_the_false_discovery_rate_is_kept(rate):
    """Half of the chain's edges are known at the start; all are to be found."""
    truth = chain_precision(60, 0.5)
    known = every_other_edge(60)
    proportions, recalls = [], []
    for seed in range(40):
        tests = scored(truth, 200, seed, known)
        found = tests.q <= rate
        right = tests.second - tests.first == 1
        proportions.append(np.mean(~right[found]))
        recalls.append(np.sum(right & found) / 59)
    # Hardly any of the favored pairs has no edge, so the list is better than its rate.
    assert np.mean(proportions) < rate
    assert np.mean(recalls) > 0.95


def test_standard_errors_cover_the_truth():
    truth = chain_precision(40, 0.5).toarray()
    scale = np.sqrt(np.diag(truth))
    inside = []
    for seed in range(30):
        tests = scored(sp.csr_array(truth), 150, seed)
        value = (-truth / np.outer(scale, scale))[tests.first, tests.second]
        off = np.abs(tests.partial_correlation - value) / tests.standard_error
        inside.append((off <= 1.96)[value != 0])
    assert 0.92 < np.mean(inside) < 0.98


def test_agreement_with_dense_estimates(monkeypatch):
    """Of an edge: the partial correlation given other neighbors; of another pair: one step."""
    monkeypatch.setattr(module, "REFIT_RATE", 0.0)
    truth = chain_precision(25, 0.5)
    residual = draws(truth, 90, 4)
    tests = score_edges(residual, np.zeros((25, 0)), truth, 90)
    S = residual @ residual.T
    S /= np.sqrt(np.outer(np.diag(S), np.diag(S)))
    linked = truth.toarray() != 0
    P = _maximum_likelihood(S, linked)
    # P in the units in which 2 P - P S P has the diagonal of P.
    N = P / np.diag(P)[:, None]
    T = N @ S @ N.T
    variances = np.diag(T)
    expected = T / np.sqrt(np.outer(variances, variances))
    for i, j in zip(*np.nonzero(np.triu(linked, 1)), strict=True):
        items = [i, j, *np.setdiff1d(np.flatnonzero(linked[i] | linked[j]), [i, j])]
        inverse = np.linalg.inv(S[np.ix_(items, items)])
        expected[i, j] = -inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1])
    expected = expected[tests.first, tests.second]
    np.testing.assert_allclose(tests.partial_correlation, expected, atol=1e-4)


def test_false_edges_of_the_first_round_are_not_inflated_in_the_second():
    """One step from a refit with an edge chosen for its size would overshoot far in the tails."""
    truth = sp.kron(sp.eye_array(300), np.linalg.inv([[1.0, 0.8], [0.8, 1.0]]), format="csr")
    beyond = 0
    for seed in range(5):
        tests = scored(truth, 70, seed)
        beyond += np.sum((np.abs(tests.z) > 4.0) & (tests.first // 2 != tests.second // 2))
    # Expected are 57.
    assert 35 < beyond < 80


def test_an_edge_has_an_observation_less_for_every_neighbor_it_was_fitted_beside():
    """In a full graph these are the tests of the sample's partial correlations, which are exact."""
    p = []
    for seed in range(60):
        residual = draws(np.eye(7), 24, seed)
        tests = score_edges(residual, np.zeros((7, 0)), sp.csr_array(np.ones((7, 7))), 24)
        precision = np.linalg.inv(residual @ residual.T)
        scale = np.sqrt(np.diag(precision))
        expected = (-precision / np.outer(scale, scale))[tests.first, tests.second]
        np.testing.assert_allclose(tests.partial_correlation, expected, atol=2e-3)
        np.testing.assert_array_equal(tests.observations, tests.n_observations - 5)
        p.append(tests.p)
    assert stats.kstest(np.concatenate(p), "uniform").pvalue > 0.01


def _maximum_likelihood(S, allowed, sweeps=500):
    """Iterative proportional fitting on pairs (Speed and Kiiveri 1986)."""
    P = np.diag(1.0 / np.diag(S))
    pairs = list(zip(*np.nonzero(np.triu(allowed, 1)), strict=True))
    for _ in range(sweeps):
        for pair in pairs:
            at = np.ix_(pair, pair)
            P[at] += np.linalg.inv(S[at]) - np.linalg.inv(np.linalg.inv(P)[at])
    return P


def test_order_of_the_items_does_not_matter():
    truth = chain_precision(30, 0.5)
    residual, hidden = draws(truth, 80, 0), np.random.default_rng(1).normal(size=(30, 2)) / 20
    order = np.random.default_rng(2).permutation(30)
    plain = score_edges(residual, hidden, truth, 80)
    shuffled = score_edges(residual[order], hidden[order], truth[order][:, order], 80)
    dense = np.zeros((2, 30, 30))
    for at, tests in enumerate((plain, shuffled)):
        dense[at, tests.first, tests.second] = dense[at, tests.second, tests.first] = tests.z
    np.testing.assert_allclose(dense[1], dense[0][order][:, order], atol=1e-3)
    assert shuffled.n_observations == pytest.approx(plain.n_observations, rel=1e-4)


def test_units_of_the_items_do_not_matter():
    truth = chain_precision(30, 0.5)
    residual = draws(truth, 80, 0)
    units = np.logspace(-3, 3, 30)
    plain = score_edges(residual, np.zeros((30, 0)), truth, 80)
    scaled = score_edges(residual * units[:, None], np.zeros((30, 0)), truth, 80)
    np.testing.assert_allclose(scaled.z, plain.z, rtol=1e-8)


def test_a_large_network_lists_every_pair_that_can_pass(monkeypatch):
    truth = chain_precision(80, 0.5)
    everything = scored(truth, 100, 0)
    monkeypatch.setattr(module, "LISTED", 200)
    monkeypatch.setattr(module, "LISTED_PER_ITEM", 1)
    listed = scored(truth, 100, 0)
    assert len(listed.p) < len(everything.p) / 5
    assert listed.level == pytest.approx(200 / 3160)
    below = everything.p < listed.level
    assert keys(everything, below) <= keys(listed, slice(None))
    for rate in (0.05, 0.2):
        assert keys(everything, everything.q <= rate) == keys(listed, listed.q <= rate)


def test_hidden_directions_leave_the_statistic_standard_normal(monkeypatch):
    """Where a signal took three directions, a pair has less than m observations' worth."""
    monkeypatch.setattr(module, "REFIT_RATE", 0.0)
    squares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(np.vstack([rng.normal(size=(10, 3)), np.zeros((40, 3))]))[0]
        residual = rng.standard_normal((50, 120))
        residual -= basis @ (basis.T @ residual)
        tests = score_edges(residual, basis, sp.csr_array(sp.eye_array(50)), 120)
        assert tests.noise_share[:10].mean() == pytest.approx(0.7, abs=0.05)
        assert tests.noise_share[10:].min() == pytest.approx(1.0)
        both = (tests.first < 10) & (tests.second < 10)
        squares.append(tests.z[both] ** 2)
    # Few pairs in few dimensions: h_i h_j leaves out a term of the order of 1 / 10.
    assert np.mean(squares) == pytest.approx(1.0, abs=0.15)


def test_correlated_observations_count_for_less():
    """Columns in ten copies: a tenth of the observations."""
    residual = np.tile(np.random.default_rng(0).standard_normal((60, 50)), 10)
    tests = score_edges(residual, np.zeros((60, 0)), sp.csr_array(sp.eye_array(60)), 500)
    assert tests.n_observations == pytest.approx(50, rel=0.1)
    assert not (tests.q < 0.01).any()


def test_the_spread_of_the_statistics_is_that_of_pairs_without_an_edge():
    """The limit on squares keeps out edges, and costs little against their mean."""
    truth = np.eye(100)
    truth[np.arange(0, 80, 2), np.arange(1, 80, 2)] = -0.6
    truth = truth + truth.T - np.eye(100)
    spreads, means = [], []
    for seed in range(100):
        white = np.tile(np.random.default_rng(seed).standard_normal((100, 50)), 2)
        correlated = FactorGram(*2 * [_unit_rows(white)])
        spreads.append(score_spread(correlated, 100.0, np.zeros(0, int)))
        i, j = np.triu_indices(100, 1)
        means.append(np.sqrt(np.mean(statistic(correlated.entries(i, j), 100.0) ** 2)))
    assert np.mean(spreads) == pytest.approx(np.sqrt(2), rel=0.01)
    assert np.std(spreads) < 1.2 * np.std(means)
    linked = FactorGram(*2 * [_unit_rows(draws(truth, 100, 0))])
    known = np.arange(0, 80, 2) * 101 + 1
    assert score_spread(linked, 100.0, known) < score_spread(linked, 100.0, known[:0]) < 1.05


def _unit_rows(matrix):
    return matrix / np.linalg.norm(matrix, axis=1)[:, None]


def test_the_statistic_is_exact_far_in_the_tails():
    for m in (10, 50, 300):
        r = np.linspace(0.05, 0.9, 20)
        student = r * np.sqrt((m - 1) / (1 - r**2))
        exact = stats.norm.isf(stats.t.sf(student, m - 1))
        within = exact < 8
        np.testing.assert_allclose(statistic(r, m)[within], exact[within], rtol=4e-3)
    np.testing.assert_array_equal(statistic(-r, 50), -statistic(r, 50))


def test_q_values_are_benjamini_and_hochberg_s():
    p = np.random.default_rng(0).uniform(size=200) ** 3
    expected = stats.false_discovery_control(p)
    np.testing.assert_allclose(q_values(p, 200), expected)
    # Large p-values that are left out change nothing for the small ones.
    small = p < 0.3
    few = expected[small] < 0.2
    np.testing.assert_allclose(q_values(p[small], 200)[few], expected[small][few])
    assert len(q_values(np.zeros(0), 10)) == 0


@pytest.mark.parametrize(
    "residual", [np.ones((5, 3)), np.tile(np.arange(6.0)[:, None] - 2.2, 20)], ids=["few", "alike"]
)
def test_observations_that_are_too_few_or_all_alike_test_nothing(residual):
    size, m = residual.shape
    tests = score_edges(residual, np.zeros((size, 0)), sp.csr_array(sp.eye_array(size)), m)
    assert len(tests.p) == len(tests.q) == 0


def test_an_item_without_noise_has_no_edge():
    residual = draws(np.eye(10), 40, 0)
    residual[3] = 0.0
    tests = score_edges(residual, np.zeros((10, 0)), sp.csr_array(sp.eye_array(10)), 40)
    silent = (tests.first == 3) | (tests.second == 3)
    np.testing.assert_array_equal(tests.z[silent], 0.0)
    assert np.isfinite(tests.z).all()


def test_equal_networks_do_not_differ():
    truth = chain_precision(40, 0.5)
    p = []
    for seed in range(10):
        differences = compare_tests(scored(truth, 150, seed), scored(truth, 100, 100 + seed))
        assert len(differences.p) == 780
        p.append(differences.p)
    assert stats.kstest(np.concatenate(p), "uniform").pvalue > 0.01


def test_a_lost_edge_is_found():
    truth = np.eye(30)
    truth[4, 9] = truth[9, 4] = -0.5
    differences = compare_tests(scored(truth, 300, 0), scored(np.eye(30), 300, 1))
    found = differences.q <= 0.05
    assert keys(differences, found) == {(4, 9)}
    assert np.subtract(*differences.partial_correlations[::-1])[found][0] == pytest.approx(
        -0.5, abs=0.15
    )


def test_a_pair_that_one_network_does_not_list_is_taken_at_its_nearest():
    def listed(value, level):
        one = np.array([0]), np.array([1]), np.array([value])
        pair = one if level == 1.0 else tuple(each[:0] for each in one)
        many = np.full(len(pair[0]), 100.0)
        return EdgeTests(3, 100.0, *pair, np.ones(3), many, level, pair[0] > 0, 0)

    known, unknown = listed(0.5, 1.0), listed(0.0, 0.05)
    differences = compare_tests(known, unknown)
    taken = differences.partial_correlations[1][0]
    assert statistic(np.array([taken]), 100.0)[0] == pytest.approx(stats.norm.isf(0.025))
    exact = compare_tests(known, listed(0.0, 1.0))
    assert differences.p[0] > exact.p[0]
