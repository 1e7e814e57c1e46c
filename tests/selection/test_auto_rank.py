import numpy as np
import pytest

from mnpca.datasets import make_low_rank_matrix_normal, make_paper_small
from mnpca.selection.auto_rank import RankTrial, fit_auto_rank, largest_rank
from mnpca.solvers.mnpca.search import Settings
from mnpca.solvers.progress import silent


def settings(structure="graph"):
    return Settings(
        rank=0,
        row_structure=structure,
        col_structure=structure,
        center="auto",
        max_iter=9,
        tol=1e-2,
        seed=0,
    )


@pytest.mark.parametrize("c", [8, 224])
def test_rank_of_the_papers_data(c):
    fit, trials = fit_auto_rank(make_paper_small(c=c, seed=1000).Y, settings(), silent)
    assert len(fit.singular_values) == 2
    assert {t.rank: t.accepted for t in trials}[2]
    assert not {t.rank: t.accepted for t in trials}[3]


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_rank_of_gaussian_signals(rank):
    data = make_low_rank_matrix_normal(200, 120, rank, condition=32, random_state=1000)
    fit, _ = fit_auto_rank(data.Y, settings(), silent)
    assert len(fit.singular_values) == rank


def test_diagonal_noise_needs_no_networks():
    data = make_paper_small(c=1, seed=1000)
    fit, _ = fit_auto_rank(data.Y, settings("diagonal"), silent)
    assert len(fit.singular_values) == 2
    assert fit.row_noise.n_edges == 0


def test_a_local_component_is_rejected_even_below_stronger_ones():
    trial = RankTrial(3, np.array([3.0, 2.0, 1.5]), np.array([1.0, 0.1, 0.9]))
    assert trial.n_good == 1
    assert not trial.accepted
    assert RankTrial(0, np.zeros(0), np.zeros(0)).accepted


def test_small_matrices_ask_for_less():
    large, small = (RankTrial(1, np.array([1.1]), np.array([0.25]), q) for q in (300, 40))
    assert (large.least_strength, large.least_spread) == pytest.approx((1.17, 0.3))
    assert not large.accepted
    assert small.accepted


def test_a_verdict_is_clear_far_from_the_threshold_only():
    spreads = np.ones(2)
    strong, middling, weak = (
        RankTrial(2, np.array([3.0, weakest]), spreads) for weakest in (1.5, 1.3, 1.05)
    )
    assert strong.clearly_accepted
    assert not middling.clearly_accepted
    assert weak.clearly_rejected(before=middling)
    assert not weak.clearly_rejected(before=RankTrial(2, np.array([3.0, 1.0]), spreads))
    assert not middling.clearly_rejected(before=strong)


def test_largest_rank_is_ledermanns_bound():
    assert [largest_rank((500, p)) for p in (2, 3, 5, 6, 13, 200)] == [1, 1, 2, 3, 8, 10]


def test_an_interrupted_walk_goes_on_exactly():
    Y = make_paper_small(c=64, seed=1000, n_samples=120, n_features=80).Y
    states = []
    whole, trials = fit_auto_rank(Y, settings(), lambda progress: states.append(progress.state()))
    for state in states[:: max(len(states) // 8, 1)]:
        again, path = fit_auto_rank(Y, settings(), silent, state)
        assert [t.rank for t in path] == [t.rank for t in trials]
        np.testing.assert_array_equal(again.denoised(), whole.denoised())
