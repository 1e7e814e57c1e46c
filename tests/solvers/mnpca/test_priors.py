"""Learned priors against integrals, exact posteriors, and data of known kind."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mnpca.datasets import make_low_rank_matrix_normal
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.fit import signal_variance
from mnpca.solvers.mnpca.learned import expected_gain, learn_signal
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.priors import (
    Mixture,
    best_weights,
    gaussian_prior,
    learn_prior,
    log_sum,
    scale_prior,
)


def mixture(k=1):
    rng = np.random.default_rng(0)
    vectors = np.stack([np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(3)])
    values = rng.uniform(0.1, 1.0, (3, k))
    return Mixture(np.array([0.5, 0.3, 0.2]), rng.standard_normal((3, k)), values, vectors)


def observed(draw, n=400, k=2, seed=0):
    rng = np.random.default_rng(seed)
    d = rng.uniform(4.0, 12.0, n)
    return draw(rng, n, k) + rng.standard_normal((n, k)) / np.sqrt(d)[:, None], d


def gaussian(rng, n, k):
    return rng.standard_normal((n, k))


def three_groups(rng, n, k):
    return (3.0 * rng.standard_normal((3, k)))[np.arange(n) % 3]


def mostly_zero(rng, n, k):
    return 3.0 * rng.standard_normal((n, k)) * (rng.random((n, 1)) < 0.15)


def test_posterior_of_a_mixture_is_the_integral():
    centered = replace(mixture(), centers=np.zeros((3, 1)))
    z, d = 0.4, 3.0
    for prior in (mixture(), centered):

        def density(x, prior=prior):
            parts = prior.weights * norm.pdf(x, prior.centers[:, 0], np.sqrt(prior.values[:, 0]))
            return parts.sum() * norm.pdf(z, x, d**-0.5)

        total, first, second = (
            quad(lambda x, m=m, f=density: x**m * f(x), -20, 20)[0] for m in range(3)
        )
        belief = prior.posterior(np.array([[z]]), np.array([d]))
        assert belief.mean[0, 0] == pytest.approx(first / total, rel=1e-6)
        logs = prior.log_densities(np.array([[z]]), np.array([d]))
        assert log_sum(logs)[0] - 0.5 * np.log(2 * np.pi) == pytest.approx(np.log(total), rel=1e-6)
    variance = second / total - (first / total) ** 2
    assert belief.variance[0, 0] == pytest.approx(variance, rel=1e-6)
    assert belief.total[0, 0] == pytest.approx(d * variance, rel=1e-6)


def test_a_center_that_was_fitted_has_an_error():
    """All rows are the center. It is known as precisely as the mean of so many rows."""
    d = np.random.default_rng(0).uniform(4.0, 12.0, 50)
    prior = Mixture(np.ones(1), np.full((1, 1), 2.0), np.full((1, 1), 1e-12), np.ones((1, 1, 1)))
    belief = prior.posterior(np.full((50, 1), 2.0), d)
    np.testing.assert_allclose(belief.variance, 1.0 / d.sum(), rtol=1e-6)


def test_weights_are_the_likeliest():
    prior, (z, d) = mixture(2), observed(three_groups)
    logs = prior.log_densities(z, d) - np.log(prior.weights)
    weights = best_weights(logs)
    assert weights.sum() == pytest.approx(1.0)
    # Optimality: no part's mean density ratio exceeds one, those in use have exactly one.
    ratios = np.exp(logs - log_sum(logs + np.log(np.maximum(weights, 1e-300)))[:, None]).mean(
        axis=0
    )
    assert np.all(ratios < 1.001)
    np.testing.assert_allclose(ratios[weights > 1e-3], 1.0, atol=1e-3)


def test_every_em_step_raises_the_likelihood():
    prior, (z, d) = mixture(2), observed(three_groups)
    likelihoods = []
    for _ in range(10):
        likelihoods.append(float(log_sum(prior.log_densities(z, d)).sum()))
        prior = prior.improved(z, d, 1)
    assert np.all(np.diff(likelihoods) > -1e-9)
    assert likelihoods[-1] > likelihoods[0] + 10


def test_points_stay_points():
    z, d = observed(three_groups)
    prior = mixture(2).points(d).improved(z, d, 20)
    assert prior.values.max() < 1e-3 / d.mean()
    assert (
        log_sum(prior.log_densities(z, d)).sum()
        > log_sum(mixture(2).points(d).log_densities(z, d)).sum()
    )


def test_with_a_common_spread_the_wide_part_takes_no_outliers():
    centers, values = np.array([[0.0, 0.0], [9.0, 0.0]]), np.array([[0.1, 0.1], [30.0, 30.0]])
    prior = Mixture(np.full(2, 0.5), centers, values, np.stack([np.eye(2)] * 2))
    outlier = np.array([[-4.0, 0.0]]), np.ones(1)
    assert prior.shares(*outlier)[0, 1] > 0.5
    common = prior.with_common_spread()
    assert common.shares(*outlier)[0, 0] > 0.9
    np.testing.assert_allclose(common.values, 15.05)


def test_a_gaussian_prior_has_the_covariance_of_the_rows():
    z, d = observed(lambda rng, n, k: rng.standard_normal((n, k)) * [2.0, 0.5], n=20000)
    prior = gaussian_prior(z, d)
    covariance = (prior.vectors[0] * prior.values[0]) @ prior.vectors[0].T
    np.testing.assert_allclose(covariance, np.diag([4.0, 0.25]), atol=0.1)


def test_a_scale_prior_knows_which_rows_are_zero():
    rng = np.random.default_rng(0)
    rows, d = mostly_zero(rng, 400, 2), np.full(400, 8.0)
    z = rows + rng.standard_normal(rows.shape) / np.sqrt(8.0)
    zero = ~rows.any(axis=1)
    prior = scale_prior(z, d)
    negligible = prior.shares(z, d)[:, prior.negligible()].sum(axis=1)
    assert negligible[zero].mean() > 0.8
    assert negligible[~zero].mean() < 0.2


@pytest.mark.parametrize(
    ("draw", "family"), [(gaussian, "gaussian"), (three_groups, "groups"), (mostly_zero, "scales")]
)
def test_the_family_is_that_of_the_draw(draw, family):
    found = learn_prior(*observed(draw))
    assert found.family == family
    if family == "groups":
        assert len(found.priors["groups"].weights) == 3


def test_a_gaussian_prior_wins_on_gaussian_rows_for_most_draws():
    families = [learn_prior(*observed(gaussian, n=100, seed=seed)).family for seed in range(20)]
    assert families.count("gaussian") >= 14


def known_noise(seed=0, scale=1.0, n=120, p=80):
    data = make_low_rank_matrix_normal(
        n, p, 2, density=0.02, condition=20, signal_scale=scale, random_state=seed
    )
    noise = NoiseModel(
        AxisPrecision.from_precision(data.row_precision),
        AxisPrecision.from_precision(data.col_precision),
    )
    engine = DenseEngine(data.Y, np.float64)
    start = low_rank_step(engine, noise.row, noise.col, 2, center=True, max_sweeps=50)
    return data, engine, noise, start


def test_message_passing_solves_the_equation_of_mean_field_for_a_gaussian_prior():
    """Where the signal is strong, so do the variances."""
    _, engine, noise, start = known_noise(scale=2.0)
    learned = learn_signal(engine, noise, start, "gaussian")
    mine, theirs = (part.left @ part.right.T for part in (learned, start))
    assert np.linalg.norm(mine - theirs) < 0.01 * np.linalg.norm(theirs)
    variances = [signal_variance(part, noise).dense().mean() for part in (learned, start)]
    assert variances[0] == pytest.approx(variances[1], rel=0.05)


def test_intervals_of_gaussian_signals_cover_what_they_say():
    shares = []
    for seed in range(4):
        data, engine, noise, start = known_noise(seed, scale=0.5)
        learned = learn_signal(engine, noise, start)
        estimate = learned.left @ learned.right.T
        std = np.sqrt(signal_variance(learned, noise).dense())
        shares.append(np.mean(np.abs(estimate - data.signal) < 1.645 * std))
    assert 0.86 < np.mean(shares) < 0.94


def test_permuted_rows_give_permuted_results():
    data, _, noise, start = known_noise()
    order = np.random.default_rng(3).permutation(len(data.Y))
    engine = DenseEngine(data.Y[order], np.float64)
    row = AxisPrecision.from_precision(noise.row.precision[order][:, order])
    permuted = NoiseModel(row, noise.col)
    start_there = low_rank_step(engine, row, noise.col, 2, center=True, max_sweeps=50)
    there = learn_signal(engine, permuted, start_there, "gaussian")
    here = learn_signal(DenseEngine(data.Y, np.float64), noise, start, "gaussian")
    np.testing.assert_allclose(
        there.left @ there.right.T, (here.left @ here.right.T)[order], atol=1e-4
    )


def test_components_below_the_noise_cost_next_to_nothing():
    data, engine, noise, _ = known_noise()
    start = low_rank_step(engine, noise.row, noise.col, 6, center=True, max_sweeps=50)
    learned = learn_signal(engine, noise, start)
    error = np.linalg.norm(learned.left @ learned.right.T - data.signal)
    plain = np.linalg.norm(start.left @ start.right.T - data.signal)
    assert error < 1.01 * plain


def test_the_learned_posterior_knows_the_error_of_the_gaussian_signal():
    """Pythagoras: the error of another signal is its distance from the mean plus the variance."""
    rng = np.random.default_rng(0)
    scores, loadings = 1.5 * rng.choice([-1.0, 1.0], (200, 1)), rng.standard_normal((120, 1))
    engine = DenseEngine(0.4 * scores @ loadings.T + rng.standard_normal((200, 120)), np.float64)
    noise = NoiseModel(*(AxisPrecision.diagonal(np.ones(size)) for size in (200, 120)))
    start = low_rank_step(engine, noise.row, noise.col, 1, center=False, max_sweeps=50)
    gaussian, learned = (
        learn_signal(engine, noise, start, prior) for prior in ("gaussian", "auto")
    )
    assert learned.priors[0].family == "groups"
    mine, other = (part.left @ part.right.T for part in (learned, gaussian))
    variances = [signal_variance(part, noise).dense().sum() for part in (learned, gaussian)]
    assert np.sum((mine - other) ** 2) + variances[0] == pytest.approx(variances[1], rel=0.15)
    # How much nearer the learned signal is, in draws from its posterior.
    gains = []
    for _ in range(400):
        drawn = []
        for factor in (learned.left_factor, learned.right_factor):
            white = rng.standard_normal(factor.variances.shape) * np.sqrt(factor.variances)
            drawn.append(white @ factor.basis.T)
        off = drawn[0] @ learned.loadings.T + learned.scores @ drawn[1].T
        gains.append(np.sum((other - mine - off) ** 2) - np.sum(off**2))
    mean, deviation = expected_gain(learned, gaussian)
    assert np.mean(gains) == pytest.approx(mean, rel=0.05)
    assert np.std(gains) == pytest.approx(deviation, rel=0.15)
