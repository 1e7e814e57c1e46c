"""The evidence: what is priced, what is rewarded, and that it prefers the truth."""

import numpy as np
import pytest

from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.evidence import (
    evidence,
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
