"""The evidence: what is priced, what is rewarded, and that it prefers the truth."""

import numpy as np
import pytest
from scipy.integrate import quad

from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.evidence import (
    evidence,
    mean_field_gap,
    penalized_evidence,
    prior_gain,
    variance_price,
)
from mnpca.solvers.mnpca.low_rank_step import SURPLUS, low_rank_step


def white(n, p):
    return NoiseModel(AxisPrecision.diagonal(np.ones(n)), AxisPrecision.diagonal(np.ones(p)))


def signal_of(rng, left, right, strength):
    left, right = np.linalg.qr(left)[0], np.linalg.qr(right)[0]
    n, p = len(left), len(right)
    return strength * (np.sqrt(n) + np.sqrt(p)) * left @ right.T


def test_equal_variances_are_free_and_the_price_of_others_grows_with_their_scatter():
    logs = np.random.default_rng(0).standard_normal(100)
    prices = [
        variance_price(AxisPrecision.diagonal(np.exp(size * logs)), 50) for size in (0.0, 0.2, 1.0)
    ]
    assert prices[0] == 0.0
    assert 0.0 < prices[1] < prices[2]


def test_a_gaussian_signal_gains_nothing_and_one_on_few_rows_does():
    rng = np.random.default_rng(1)
    n, p = 200, 100
    noise, E = white(n, p), rng.standard_normal((n, p))
    left, right = rng.standard_normal((n, 2)), rng.standard_normal((p, 2))
    few = left * (np.arange(n) < n // 10)[:, None]
    gains = []
    for factor in (left, few):
        engine = DenseEngine(signal_of(rng, factor, right, 2.0) + E)
        posterior = low_rank_step(engine, noise.row, noise.col, 2, center=False)
        gains.append(prior_gain(engine, noise, posterior))
        total = penalized_evidence(noise, posterior) + gains[-1]
        assert evidence(engine, noise, posterior) == pytest.approx(total)
    assert gains[0] < 5.0
    assert gains[1] > 50.0


def test_the_true_rank_has_the_highest_evidence():
    rng = np.random.default_rng(2)
    n, p = 200, 100
    noise = white(n, p)
    left, right = rng.standard_normal((n, 3)), rng.standard_normal((p, 3))
    engine = DenseEngine(signal_of(rng, left, right, 2.0) + rng.standard_normal((n, p)))
    values = [
        evidence(engine, noise, low_rank_step(engine, noise.row, noise.col, k, center=False))
        for k in range(6)
    ]
    assert int(np.argmax(values)) == 3
    chosen = low_rank_step(engine, noise.row, noise.col, None, center=False)
    assert chosen.rank == 3 + SURPLUS


@pytest.mark.parametrize(("n", "p"), [(300, 200), (60, 900), (40, 40)])
def test_bound_and_gap_are_the_rate_function_of_the_largest_singular_value(n, p):
    """Large deviations of white noise: ``I'(d) = sqrt((d^2 - e^2)(d^2 - f^2)) / d``."""
    outer, inner = np.sqrt(n) + np.sqrt(p), np.sqrt(n) - np.sqrt(p)

    def rate(d):
        def slope(t):
            return np.sqrt((t**2 - outer**2) * (t**2 - inner**2)) / t

        return quad(slope, outer, d)[0]

    for d in outer * np.array([1.02, 1.2, 1.7, 4.0]):
        rest = d**2 - n - p
        tau = (rest + np.sqrt(rest**2 - 4 * n * p)) / 2
        bound = 0.5 * (tau - n * np.log1p(tau / n) - p * np.log1p(tau / p))
        gap = mean_field_gap(np.array([d]), (n, p))
        assert gap + max(bound, 0.0) == pytest.approx(rate(d), rel=1e-6)
    assert mean_field_gap(outer * np.array([0.99, 0.5]), (n, p)) == 0.0
    assert mean_field_gap(np.array([30.0 * outer]), (n, p)) < 1.0


def test_the_bound_of_the_low_rank_step_is_the_one_whose_gap_is_known():
    """The evidence of a component is the rate function, up to the price of its scales."""
    rng = np.random.default_rng(3)
    n, p = 400, 300
    noise, E = white(n, p), rng.standard_normal((n, p))
    left, right = rng.standard_normal((n, 1)), rng.standard_normal((p, 1))
    for strength in (1.3, 2.0):
        engine = DenseEngine(signal_of(rng, left, right, strength) + E)
        none, one = (
            low_rank_step(engine, noise.row, noise.col, k, center=False, max_sweeps=200)
            for k in (0, 1)
        )
        rest = one.svd.singular_values[0] ** 2 - n - p
        tau = (rest + np.sqrt(rest**2 - 4 * n * p)) / 2
        expected = 0.5 * (tau - n * np.log1p(tau / n) - p * np.log1p(tau / p))
        assert one.elbo - none.elbo == pytest.approx(expected, rel=0.05)
