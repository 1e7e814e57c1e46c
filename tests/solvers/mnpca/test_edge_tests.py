"""What the residual is worth that edge tests see."""

import numpy as np
import pytest

from mnpca.solvers.mnpca.edge_tests import effective_observations


def spread_of_correlations(draw, n_sets=100):
    """Return the effective number that the scatter of independent correlations has, and mean m."""
    squares, told = [], []
    for seed in range(n_sets):
        white, left_over = draw(np.random.default_rng(seed))
        items = white / np.linalg.norm(white, axis=1)[:, None]
        squares.append((items @ items.T)[np.triu_indices(len(items), 1)] ** 2)
        told.append(effective_observations(white, left_over))
    return 1.0 / np.mean(squares), np.mean(told)


def equal(rng):
    return rng.standard_normal((30, 60)), np.ones(60)


def of_equal_length(rng):
    white = rng.standard_normal((30, 60))
    return white / np.linalg.norm(white, axis=0), np.ones(60)


def of_unequal_variance(rng):
    return rng.standard_normal((30, 60)) * np.geomspace(1, 3, 60), np.ones(60)


def without_a_signal(rng):
    basis = np.linalg.qr(np.vstack([rng.standard_normal((10, 4)), np.zeros((50, 4))]))[0]
    white = rng.standard_normal((30, 60))
    return white - (white @ basis) @ basis.T, 1.0 - np.sum(basis**2, axis=1)


@pytest.mark.parametrize(
    ("draw", "worth"),
    [(equal, 60), (of_equal_length, 64), (of_unequal_variance, 43.3), (without_a_signal, 56)],
)
def test_observations_count_for_what_correlations_vary_by(draw, worth):
    scatter, told = spread_of_correlations(draw)
    assert told == pytest.approx(scatter, rel=0.03)
    assert told == pytest.approx(worth, rel=0.03)
