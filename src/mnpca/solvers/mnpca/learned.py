"""The signal under priors that are learned: message passing with A and B given.

Two approximations of the model of `variational` are undone here.

Between the factors, mean field takes ``E[W'BW]`` for what Y says about X. That counts the
uncertainty of W as information. Message passing takes ``W'BW`` of the means, and subtracts from the
linear term what X itself put there by way of W: ``Y B W - X D``, D the spread of W. For a Gaussian
prior the mean solves the same equation as before, but the variances are right near the detection
threshold, and other priors see observations with honest errors.

Among the rows of one factor, linked by A, expectation propagation stands in: the prior of each row
is replaced by a Gaussian site (one precision for all rows, a linear term each), chosen such that
rows have the same posterior means, and on average the same variances, under both. What the site of
the other rows and the data say about row i is an observation ``z_i ~ N(x_i, I / d_i)``, in
coordinates where ``W'BW`` is the identity. `priors` learns from these. docs/priors.md derives it.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.base import Engine
from mnpca.model.low_rank import LowRank
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.low_rank_step import leading_components, noise_edge, relative_change
from mnpca.solvers.mnpca.mixture import Belief
from mnpca.solvers.mnpca.priors import NEGLIGIBLE, SCALES, LearnedPrior, PriorChoice, learn_prior
from mnpca.solvers.mnpca.variational import FactorPosterior, FactorPrior, Posterior

#: Rounds over both factors at most, and after how many the families are chosen anew: groups come
#: to light little by little.
ROUNDS, CHOOSE_EVERY = 16, 3
#: The rounds end when the signal changes by less than this share.
TOLERANCE = 2e-3
#: Step of the sites towards new ones. Full steps let one fit in fifty with strong networks diverge.
SITE_STEP = 0.7
#: A signal is not believed that is so many times as far from the Gaussian one as that may be off.
TOO_FAR = 2.0
#: A component has faded away if a smaller share than this of its variance is known.
FADED = 0.05
#: Parts of a mixture are called groups if rows belong to one with this probability on average.
TOLD_APART = 0.9


def learn_signal(
    engine: Engine, noise: NoiseModel, posterior: Posterior, prior: PriorChoice = "auto"
) -> Posterior:
    """Return the posterior of the signal under learned priors.

    Parameters
    ----------
    engine : Engine
        Holds Y.
    noise : NoiseModel
        A and B.
    posterior : Posterior
        The variational posterior to begin with. Components below the edge of the noise are left
        out: nothing can be learned from them.
    prior : {"auto", "gaussian", "mixture"}
        What the rows of the factors are drawn from: what predicts best, a normal distribution,
        or groups.
    """
    alive = int(np.sum(posterior.svd.singular_values > noise_edge(engine.shape)))
    for rank in range(alive, 0, -1):
        if rank < posterior.rank:
            posterior = leading_components(engine, noise, posterior, rank)
        learned = _pass_messages(engine, noise, posterior, prior)
        if learned is None:
            continue
        if _distance(learned, posterior, noise) <= TOO_FAR * _standard_error(posterior, noise):
            return learned
        if prior != "gaussian":
            return learn_signal(engine, noise, posterior, "gaussian")
    return posterior


def _pass_messages(
    engine: Engine, noise: NoiseModel, posterior: Posterior, prior: PriorChoice
) -> Posterior | None:
    """Alternate the updates of both factors and of their priors until the signal settles.

    None is returned where a component fades away.
    """
    assert posterior.left_factor is not None
    assert posterior.right_factor is not None
    k, centered = posterior.rank, posterior.centered
    rows = _Factor(noise.row, posterior.scores, posterior.left_factor, prior)
    cols = _Factor(noise.col, posterior.right, posterior.right_factor, prior)
    signal = LowRank(posterior.left, posterior.right)
    for number in range(ROUNDS):
        choose = number % CHOOSE_EVERY == 0
        weighted = noise.col.apply(cols.mean)
        metric = thin.inner(cols.mean, weighted)
        target = engine.times(weighted[:, :k])
        if centered:
            thin.subtract_row(target, (metric + cols.spread)[k, :k])
        if not rows.update(target, metric[:k, :k], cols.spread[:k, :k], choose):
            return None
        left = np.column_stack([rows.mean, np.ones(len(target))]) if centered else rows.mean
        weighted = noise.row.apply(left)
        spread = np.zeros_like(cols.spread)
        spread[:k, :k] = rows.spread
        target = engine.transposed_times(weighted)
        if not cols.update(target, thin.inner(left, weighted), spread, choose):
            return None
        before, signal = signal, LowRank(left, cols.mean.copy())
        settled = relative_change(signal, before) < TOLERANCE
        changed = rows.family_changed or cols.family_changed
        if settled and choose and number and not changed:
            break
    return _as_posterior(posterior, left, rows, cols, spread)


class _Factor:
    """One factor: its posterior, its prior, and the Gaussian site that stands for the prior."""

    def __init__(
        self, noise: AxisPrecision, mean: FloatArray, start: FactorPosterior, prior: PriorChoice
    ):
        self.noise = noise
        self.mean = mean.copy()
        self.spread = start.spread
        self.only: Literal["gaussian", "groups"] | None = (
            None if prior == "auto" else "gaussian" if prior == "gaussian" else "groups"
        )
        self.prior: LearnedPrior | None = None
        self.belief: Belief
        self.belief_basis: FloatArray
        ridge = 1e-9 * np.trace(start.prior) * np.eye(mean.shape[1])
        self.site = np.linalg.inv(start.prior + ridge)
        self.linear = np.zeros_like(self.mean)

    def update(
        self, target: FloatArray, metric: FloatArray, other_spread: FloatArray, choose: bool
    ) -> bool:
        """Update the posterior given the other factor; return False where that has faded away."""
        known = _known_share(metric, other_spread)
        if known < FADED:
            return False
        target = target - thin.product(self.mean, other_spread)
        basis, site = _joint_basis(metric, self.site)
        z, d = self._observations(thin.product(target, basis), basis, site)
        before = self.prior
        if choose or before is None:
            self.prior = learn_prior(z, d, self.only)
        else:
            self.prior = before.fitted_again(z, d, np.linalg.solve(basis, self.belief_basis))
        belief = self.prior.prior.posterior(z, d)
        self._set_site(belief, z, d, basis, SITE_STEP if before else 1.0)
        # The reaction was taken from the last round. Where it is large, a full step overshoots.
        self.mean += known * (thin.product(belief.mean, basis.T) - self.mean)
        self.belief, self.belief_basis = belief, basis
        self.family_changed = before is None or before.family != self.prior.family
        return True

    def _observations(
        self, target: FloatArray, basis: FloatArray, site: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what data and neighbors say about every row, and how precisely."""
        eigenvalues = self.noise.eigenvalues[:, None]
        linear = thin.product(self.linear, basis)
        rotated = eigenvalues * self.noise.rotate(target) + self.noise.rotate(linear)
        means = self.noise.unrotate(rotated / (eigenvalues + site))
        variances = self.noise.marginal(1.0 / (eigenvalues + site))
        precisions = np.maximum(1.0 / variances - site, 1e-9 * eigenvalues)
        z = (means / variances - linear) / precisions
        return z, precisions.mean(axis=1)

    def _set_site(
        self, belief: Belief, z: FloatArray, d: FloatArray, basis: FloatArray, step: float
    ) -> None:
        """Go a step towards the site that gives means and average variances of the belief.

        Its precision H solves ``sum_i d_i (d_i + H)^-1 = sum_i d_i Cov(x_i)``.
        """
        totals, rotation = np.linalg.eigh(belief.total)
        values = np.array([_site_precision(d, total) for total in totals])
        back = np.linalg.inv(basis)
        precision = (rotation * values) @ rotation.T
        linear = thin.product(belief.mean, precision) + d[:, None] * (belief.mean - z)
        self.linear += step * (thin.product(linear, back) - self.linear)
        self.site += step * (back.T @ precision @ back - self.site)
        self.site_basis, self.site_values = basis @ rotation, values
        eigenvalues = self.noise.eigenvalues[:, None]
        shares = np.sum(eigenvalues / (eigenvalues + values), axis=0)
        self.spread = (self.site_basis * shares) @ self.site_basis.T

    def summary(self) -> FactorPrior:
        """Return what a person wants to know of the prior."""
        assert self.prior is not None
        family, shares = self.prior.family, self.belief.shares
        if family == "scales":
            return FactorPrior(family, zero=shares[:, SCALES <= NEGLIGIBLE].sum(axis=1))
        if family != "groups" or float(shares.max(axis=1).mean()) < TOLD_APART:
            return FactorPrior(family)
        return FactorPrior(family, groups=shares[:, np.argsort(-shares.sum(axis=0))])

    def posterior(self, other_metric: FloatArray) -> FactorPosterior:
        """Return the posterior as its Gaussian approximation, and each row's own variances.

        The variances are those of entries in the basis of the belief; the site, whose basis is
        nearly the same when the rounds end, stands for a Gaussian prior.
        """
        variances = 1.0 / (self.noise.eigenvalues[:, None] + self.site_values)
        basis = self.site_basis
        sizes = np.einsum("ab,ac,cb->b", basis, other_metric, basis)
        return FactorPosterior(
            mean=self.mean,
            prior=(basis / self.site_values) @ basis.T,
            basis=self.belief_basis,
            signal_variances=1.0 / self.site_values,
            spread=self.spread,
            uncertainty=variances @ sizes,
            divergence=0.0,
            variances=self.belief.variance,
        )


def _as_posterior(
    start: Posterior, left: FloatArray, rows: _Factor, cols: _Factor, left_spread: FloatArray
) -> Posterior:
    """Return the state of both factors as a posterior of the signal."""
    k = start.rank
    metric = thin.inner(cols.mean, cols.noise.apply(cols.mean)) + cols.spread
    left_metric = thin.inner(left, rows.noise.apply(left)) + left_spread
    left_factor, right_factor = rows.posterior(metric[:k, :k]), cols.posterior(left_metric)
    return replace(
        start,
        priors=(rows.summary(), cols.summary()),
        left=left,
        right=cols.mean.copy(),
        left_factor=left_factor,
        right_factor=right_factor,
        left_spread=left_spread,
        right_spread=cols.spread,
        row_uncertainty=left_factor.uncertainty,
        col_uncertainty=right_factor.uncertainty,
    )


def _distance(first: Posterior, second: Posterior, noise: NoiseModel) -> float:
    """Return ``|A^(1/2) (M - N) B^(1/2)|`` of two signals."""
    left = np.column_stack([first.left, -second.left])
    right = np.column_stack([first.right, second.right])
    rows = thin.inner(left, noise.row.apply(left))
    return float(np.sqrt(max(np.sum(rows * thin.inner(right, noise.col.apply(right))), 0.0)))


def _standard_error(posterior: Posterior, noise: NoiseModel) -> float:
    """Return the root of the expected square of that distance from the true signal."""
    rows = thin.inner(posterior.left, noise.row.apply(posterior.left))
    cols = thin.inner(posterior.right, noise.col.apply(posterior.right))
    both = (rows + posterior.left_spread) * (cols + posterior.right_spread)
    return float(np.sqrt(np.sum(both - rows * cols)))


def _joint_basis(metric: FloatArray, site: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return T with ``T' metric T = I`` and ``T' site T`` diagonal, and that diagonal."""
    values, basis = eigh(site, metric + _ridge(metric))
    return basis, np.maximum(values, 1e-9)


def _known_share(metric: FloatArray, spread: FloatArray) -> float:
    """Return the share of ``metric + spread`` that is known, in the direction least known.

    That is one over one plus the largest eigenvalue of ``metric^-1 spread``.
    """
    both = metric + spread
    if not np.isfinite(both).all():
        return 0.0
    values: FloatArray = eigh(metric, both + _ridge(both), eigvals_only=True)
    return float(values[0])


def _ridge(metric: FloatArray) -> FloatArray:
    """Return what makes a metric positive definite in floating point."""
    return np.asarray((1e-10 * np.trace(metric) + 1e-12) * np.eye(len(metric)))


def _site_precision(d: FloatArray, total: float) -> float:
    """Return h with ``sum_i d_i / (d_i + h) = total``, nearly zero where total is too large."""
    least, most = 1e-9 * float(d.mean()), 1e9 * float(d.mean())

    def excess(log_h: float) -> float:
        return float(np.sum(d / (d + np.exp(log_h)))) - total

    low, high = np.log(least), np.log(most)
    if excess(low) <= 0.0:
        return least
    if excess(high) >= 0.0:
        return most
    return float(np.exp(brentq(excess, low, high, rtol=1e-6)))
