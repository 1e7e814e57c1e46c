"""The evidence of a fit: the one number by which starts, ranks and noise structures compare."""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.priors import SCALES, best_weights, group_gain, log_sum
from mnpca.solvers.mnpca.variational import FactorPosterior, Posterior

#: Of more items than this an even sample is looked at.
MOST_ITEMS = 5000


def evidence(engine: Engine, noise: NoiseModel, posterior: Posterior) -> float:
    """Return the evidence of a fit, in nats.

    The sum of

    - the evidence lower bound of the signal under A and B, with Gaussian priors;
    - what scale mixtures as priors would add (`prior_gain`): signals that live on a few rows or
      columns are told from noise by this;
    - minus the price of the edges (`edge_price`);
    - minus the price of unequal variances (`variance_price`).
    """
    return penalized_evidence(noise, posterior) + prior_gain(engine, noise, posterior)


def penalized_evidence(noise: NoiseModel, posterior: Posterior) -> float:
    """Return the evidence with Gaussian priors: without `prior_gain`."""
    n, p = noise.row.size, noise.col.size
    row_observations = p * noise.row.n_repeats
    price = edge_price(noise.row, row_observations) + edge_price(noise.col, n)
    price += variance_price(noise.row, row_observations) + variance_price(noise.col, n)
    return float(posterior.elbo - price)


def edge_price(side: AxisPrecision, n_observations: int) -> float:
    """Return ``log C(Q, E) + E/2 log m + log(Q + 1)`` for E edges among the Q pairs of items.

    The Bayesian information criterion for E parameters from m observations, and what it takes to
    say which E of the Q pairs they are, every number of edges being as likely as any other.
    """
    n_pairs, n_edges = side.base.size * (side.base.size - 1) / 2, side.n_edges
    if n_edges == 0:
        return 0.0
    chosen = gammaln(n_pairs + 1) - gammaln(n_edges + 1) - gammaln(n_pairs - n_edges + 1)
    return float(chosen + 0.5 * n_edges * np.log(n_observations) + np.log(n_pairs + 1))


def variance_price(side: AxisPrecision, n_observations: int) -> float:
    """Return what unequal conditional variances cost.

    Log variances are taken for draws from N(mu, t) (see `pooled_variances`, which estimates and
    shrinks them). Integrating them out instead of plugging them in costs, with v = trigamma(m/2)
    the sampling variance of one and S their observed scatter after shrinkage,

        q/2 (S / t + log(1 + t / v)) + log(q) / 2,    t = (S + sqrt(S^2 + 4 S v)) / 2,

    and nothing where they are equal.
    """
    base = side.base
    diagonal = base.weights if base.is_diagonal else base.precision.diagonal()
    scatter = float(np.var(np.log(diagonal)))
    if scatter < 1e-12:
        return 0.0
    sampling = float(polygamma(1, n_observations / 2))
    prior = (scatter + np.sqrt(scatter**2 + 4.0 * scatter * sampling)) / 2.0
    per_item = scatter / prior + np.log1p(prior / sampling)
    return float(0.5 * base.size * per_item + 0.5 * np.log(base.size))


def prior_gain(engine: Engine, noise: NoiseModel, posterior: Posterior) -> float:
    """Return how much likelier scale mixtures make scores and loadings than Gaussian priors.

    Rows of X are taken for ``sum_c w_c N(0, s_c G)`` instead of N(0, G), with weights w by
    maximum likelihood over a grid of scales s; the same for W. Each row is judged by its own
    likelihood given the others and the other factor.
    """
    return sum(map(_scale_gain, observed_factors(engine, noise, posterior, MOST_ITEMS)))


def group_gains(engine: Engine, noise: NoiseModel, posterior: Posterior, rank: int) -> float:
    """Return how much likelier groups make scores and loadings than scale mixtures.

    Only the leading components are looked at, so many of them.
    """
    factors = observed_factors(engine, noise, posterior, rank=rank)
    return sum(group_gain(observed.rows, observed.precisions) for observed in factors)


class ObservedFactor(NamedTuple):
    """What the data and all other rows say about every row of a factor: ``z_i ~ N(x_i, I/d_i)``.

    In coordinates in which the other factor's metric is the identity.
    """

    rows: FloatArray
    precisions: FloatArray
    prior: FloatArray
    """The Gaussian prior's covariance in these coordinates."""
    weight: float
    """How many rows each of these stands for."""


def observed_factors(
    engine: Engine,
    noise: NoiseModel,
    posterior: Posterior,
    most: int | None = None,
    rank: int | None = None,
) -> list[ObservedFactor]:
    """Return the rows of X and of W as the data and the other rows show them.

    With `most`, an even sample of about so many rows where there are more; with `rank`, so many
    leading components only.
    """
    k = posterior.rank if rank is None else rank
    if k == 0 or posterior.left_factor is None or posterior.right_factor is None:
        return []
    left, right = posterior.left, posterior.right
    left_spread, right_spread = posterior.left_spread, posterior.right_spread
    if k < posterior.rank:
        kept = np.r_[:k, posterior.rank : right.shape[1]]
        left, right = left[:, kept], right[:, kept]
        left_spread, right_spread = (
            spread[np.ix_(kept, kept)] for spread in (left_spread, right_spread)
        )
    weighted = noise.col.apply(right)
    metric = thin.inner(right, weighted) + right_spread
    target = engine.times(weighted[:, :k])
    if posterior.centered:
        target -= metric[k, :k]
    rows = _observed(noise.row, target, metric[:k, :k], left[:, :k], posterior.left_factor, most)
    weighted = noise.row.apply(left)
    metric = thin.inner(left, weighted) + left_spread
    target = engine.transposed_times(weighted)[:, :k]
    if posterior.centered:
        target -= np.outer(right[:, k], metric[k, :k])
    cols = _observed(noise.col, target, metric[:k, :k], right[:, :k], posterior.right_factor, most)
    return [rows, cols]


def _observed(
    side: AxisPrecision,
    target: FloatArray,
    metric: FloatArray,
    factor: FloatArray,
    posterior: FactorPosterior,
    most: int | None,
) -> ObservedFactor:
    """Return one factor F with precision P and the other factor's metric H.

    Given the other rows, row i has the linear term ``h_i = (P T - P F H)_i + P_ii H f_i`` and the
    precision ``P_ii H``.
    """
    k, step = len(metric), max(1, len(factor) // (most or len(factor)))
    diagonal = side.weights if side.is_diagonal else side.weights.diagonal()
    diagonal, at_metric = diagonal[::step], factor[::step] @ metric
    target -= thin.product(factor, metric)
    weighted = diagonal[:, None] * target[::step]
    if not side.is_diagonal:
        weighted = side.weights[::step] @ target
    linear = weighted + diagonal[:, None] * at_metric
    root = np.linalg.cholesky(metric + (1e-10 * np.trace(metric) + 1e-12) * np.eye(k))
    rows = np.linalg.solve(root, linear.T).T / diagonal[:, None]
    prior = root.T @ posterior.prior[:k, :k] @ root
    return ObservedFactor(rows, diagonal, prior, float(step))


def _scale_gain(observed: ObservedFactor) -> float:
    """Return what scale mixtures gain: in the eigenbasis of the prior everything is diagonal."""
    prior, rotation = np.linalg.eigh(observed.prior)
    precisions = observed.precisions[:, None]
    squares = precisions * (observed.rows @ rotation) ** 2
    variances = precisions * np.maximum(prior, 0.0)
    densities = np.empty((len(squares), len(SCALES)))
    for number, scale in enumerate(SCALES):
        spread = 1.0 + scale * variances
        densities[:, number] = -0.5 * np.sum(np.log(spread) + squares / spread, axis=1)
    return max(observed.weight * _mixture_gain(densities), 0.0)


def _mixture_gain(log_densities: FloatArray) -> float:
    """Return the log likelihood of the best mixture of the columns less that of the best one."""
    weights = np.maximum(best_weights(log_densities), np.finfo(float).tiny)
    mixed = float(log_sum(log_densities + np.log(weights)).sum())
    return mixed - float(log_densities.sum(axis=0).max())
