"""The signal given the noise, by message passing: under Gaussian priors, then under learned ones.

Two approximations of the model of `variational` are undone here.

Between the factors, mean field takes ``E[W'BW]`` for what Y says about X. That counts the
uncertainty of W as information. Message passing takes ``G = W'BW`` of the means, and subtracts from
the linear term what X itself put there by way of W: ``Y B W - X D``, D the spread of W. For a
Gaussian prior the means solve the same equations as before, but the variances are right near the
detection threshold, and other priors see observations with honest errors.

Among the rows of one factor, linked by A, expectation propagation stands in for priors that are not
Gaussian: the prior of each row is replaced by a Gaussian site (one precision for all rows, a linear
term each), chosen such that rows have the same posterior means, and on average the same variances,
under both. What the site of the other rows and the data say about row i is an observation
``z_i ~ N(x_i, I / d_i)``, in coordinates where G is the identity. `priors` learns from these.
docs/priors.md derives it.
"""

from dataclasses import replace

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.model.low_rank import LowRank
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.low_rank_step import relative_change
from mnpca.solvers.mnpca.priors import (
    Belief,
    Family,
    LearnedPrior,
    PriorChoice,
    learn_prior,
)
from mnpca.solvers.mnpca.variational import EM_STEPS, FactorPosterior, FactorPrior, Posterior

#: Rounds over both factors at most, under Gaussian priors and under learned ones.
GAUSSIAN_ROUNDS, ROUNDS = 32, 16
#: Rounds in which the families are chosen: groups come to light little by little.
CHOICES = (0, 3)
#: The rounds end when the signal changes by less than this share.
TOLERANCE = 2e-3
#: The least strength, in detection thresholds, that a component begins with.
LEAST_START = 1.3
#: Step of the sites towards new ones. Full steps let one fit in fifty with strong networks diverge.
SITE_STEP = 0.7
#: Standard errors by which a learned signal has to be nearer to the truth than the Gaussian one.
#: Of 240 data sets 8 lose more than .1 dB without this, 3 with it, and the mean gain stays.
CLEARLY = 3.0
#: A component is detected if at least this share of its variance is known.
DETECTED = 0.2
#: Parts of a mixture are called groups if rows belong to one with this probability on average.
TOLD_APART = 0.9
GAUSSIAN: tuple[Family, ...] = ("gaussian",)


def learn_signal(
    engine: Engine, noise: NoiseModel, posterior: Posterior, prior: PriorChoice = "auto"
) -> Posterior:
    """Return the posterior of the signal under learned priors.

    This begins with the decomposition of Y in the variational posterior. The rows of the factors
    are drawn from what predicts best ("auto"), a normal distribution, or groups ("mixture").
    """
    if posterior.rank == 0:
        return posterior
    rows, cols = _start(noise, posterior)
    gaussian = start = _exchange(engine, posterior, rows, cols, GAUSSIAN_ROUNDS)
    known, detected = posterior.rank, _n_detected(rows, cols)
    while prior != "gaussian" and detected > 0:
        if detected < known:  # nothing can be learned from the others
            leading = replace(posterior, svd=posterior.svd.leading(detected))
            rows, cols = _start(noise, leading)
            start = _exchange(engine, leading, rows, cols, GAUSSIAN_ROUNDS)
        rows, cols = _LearnedFactor(rows, prior), _LearnedFactor(cols, prior)
        learned = _exchange(engine, start, rows, cols, ROUNDS)
        known, detected = detected, _n_detected(rows, cols)
        if detected < known:
            continue
        if rows.families == cols.families == GAUSSIAN:
            break
        gain, deviation = expected_gain(learned, start)
        if prior == "auto" and gain < CLEARLY * deviation:
            break
        return replace(learned, undetected=posterior.undetected + posterior.rank - known)
    return gaussian


def _start(noise: NoiseModel, posterior: Posterior) -> tuple["_Factor", "_Factor"]:
    """Return both factors as their singular values suggest, as if the noise were white.

    A component of strength s has a singular value y with ``y^2 = (s^2 + n)(s^2 + p) / s^2``. The
    shares ``(s^4 - np) / (s^4 + n s^2)`` of its scores' variance and, with p in place of n, of its
    loadings' are known. At the threshold, ``s^4 = np``, that is nothing, and would stay so.
    """
    svd, k = posterior.svd, posterior.rank
    n, p = noise.row.size, noise.col.size
    excess = np.maximum(svd.singular_values**2 - n - p, 2.0 * np.sqrt(n * p))
    strength = (excess + np.sqrt(np.maximum(excess**2 - 4.0 * n * p, 0.0))) / 2.0
    strength = np.maximum(strength, LEAST_START**2 * np.sqrt(n * p))
    of_rows, of_cols = ((strength - n * p / strength) / (strength + size) for size in (n, p))
    scores, loadings = svd.left * np.sqrt(strength * of_rows), svd.right * np.sqrt(of_cols)
    spread = np.diag(strength * (1.0 - of_rows))
    rows = _Factor(noise.row, scores, np.diag(noise.row.eigenvalues.sum() / strength), spread)
    precisions, unknown = np.full(k, noise.col.eigenvalues.sum()), 1.0 - of_cols
    if svd.mean is not None:
        loadings = np.column_stack([loadings, svd.mean])
        assert posterior.right_factor is not None
        precisions = np.append(precisions, 1.0 / posterior.right_factor.prior[-1, -1])
        unknown = np.append(unknown, 0.0)
    return rows, _Factor(noise.col, loadings, np.diag(precisions), np.diag(unknown))


def _exchange(
    engine: Engine, start: Posterior, rows: "_Factor", cols: "_Factor", rounds: int
) -> Posterior:
    """Alternate the updates of both factors until the signal settles."""
    k, centered = start.rank, start.centered
    ones = np.ones((len(rows.mean), int(centered)))
    left = np.column_stack([rows.mean, ones])
    signal = LowRank(left, cols.mean)
    spread = np.zeros_like(cols.spread)
    for _ in range(rounds):
        weighted = cols.noise.apply(cols.mean)
        metric = thin.inner(cols.mean, weighted)
        target = engine.times(weighted[:, :k])
        if centered:
            target -= (metric + cols.spread)[k, :k]
        rows.update(target, metric[:k, :k], cols.spread[:k, :k])
        left = np.column_stack([rows.mean, ones])
        weighted = rows.noise.apply(left)
        spread[:k, :k] = rows.spread
        cols.update(engine.transposed_times(weighted), thin.inner(left, weighted), spread)
        before, signal = signal, LowRank(left, cols.mean)
        if relative_change(signal, before) < TOLERANCE and rows.steady and cols.steady:
            break
    metric = thin.inner(cols.mean, cols.noise.apply(cols.mean)) + cols.spread
    left_metric = thin.inner(left, rows.noise.apply(left)) + spread
    return replace(
        start,
        priors=(rows.summary(), cols.summary()),
        left=left,
        right=cols.mean,
        left_factor=replace(rows.posterior(metric[:k, :k]), mean=left[:, :k]),
        right_factor=cols.posterior(left_metric),
    )


class _Factor:
    """One factor with its posterior under the prior N(0, inv(site)) of its rows."""

    families: tuple[Family, ...] = GAUSSIAN
    steady = True

    def __init__(
        self, noise: AxisPrecision, mean: FloatArray, site: FloatArray, spread: FloatArray
    ):
        self.noise = noise
        self.mean = mean
        self.site = site
        self.spread = spread
        """``E[(F - mean)' P (F - mean)]``."""
        self.basis: FloatArray
        self.variances: FloatArray
        """Row i has the covariance ``basis diag(variances_i) basis'`` in the eigenbasis of P."""

    def update(self, target: FloatArray, metric: FloatArray, other_spread: FloatArray) -> None:
        """Update posterior and prior, given means (metric) and spread of the other factor.

        With the prior precision H, in the eigenbasis of P (eigenvalues a), row i has the precision
        ``H + a_i G``, and its mean solves ``(H + a_i G) x = a_i (t_i - D x)``. EM steps set
        ``inv(H)`` to the mean of E[xx']. They leave it as it is for a component that is not seen:
        that may be as strong as the threshold allows, and the posterior says so.
        """
        a = self.noise.eigenvalues[:, None]
        linear = a * self.noise.rotate(target)
        for _ in range(EM_STEPS):
            basis, shares = _joint_basis(metric + other_spread, self.site)
            inside = thin.product(linear, basis)
            inside *= _shrinkage(a, shares)
            means = thin.product(inside, basis.T)
            self.basis, shares = _joint_basis(metric, self.site)
            self.variances = _shrinkage(a, shares)
            self.site = np.linalg.inv(self._moment(means))
        self.mean = self.noise.unrotate(means)
        self._set_spread()

    def _moment(self, means: FloatArray) -> FloatArray:
        """Return the mean of E[xx'] over the rows."""
        unknown = (self.basis * self.variances.sum(axis=0)) @ self.basis.T
        return np.asarray((thin.inner(means, means) + unknown) / len(means))

    def _set_spread(self) -> None:
        sizes = np.sum(self.noise.eigenvalues[:, None] * self.variances, axis=0)
        self.spread = (self.basis * sizes) @ self.basis.T

    def summary(self) -> FactorPrior:
        """Return what a person wants to know of the prior."""
        return FactorPrior("gaussian")

    def posterior(self, other_metric: FloatArray) -> FactorPosterior:
        """Return the posterior."""
        sizes = np.einsum("ab,ac,cb->b", self.basis, other_metric, self.basis)
        return FactorPosterior(
            mean=self.mean,
            prior=self._moment(self.mean),
            basis=self.basis,
            signal_variances=np.ones(len(sizes)),
            spread=self.spread,
            uncertainty=self.variances @ sizes,
            divergence=0.0,
            variances=self.noise.marginal(self.variances),
        )


class _LearnedFactor(_Factor):
    """One factor with a prior that is learned, and the Gaussian site that stands for it."""

    def __init__(self, start: _Factor, choice: PriorChoice):
        super().__init__(start.noise, start.mean, start.site, start.spread)
        self.choice = choice
        self.linear = np.zeros_like(start.mean)
        self.learned: LearnedPrior
        self.observed: tuple[FloatArray, FloatArray]
        self.belief: Belief
        self.belief_basis: FloatArray
        self.n_updates = 0

    def update(self, target: FloatArray, metric: FloatArray, other_spread: FloatArray) -> None:
        """Learn the prior from what data and neighbors say of every row; update the posterior."""
        basis, shares = _joint_basis(metric, self.site)
        shares = np.clip(shares, 1e-9, 1.0 - 1e-9)
        basis, site = basis / np.sqrt(shares), 1.0 / shares - 1.0  # T'GT = I
        reacted = thin.product(target - thin.product(self.mean, other_spread), basis)
        self.observed = z, d = self._observations(reacted, basis, site)
        before = self.families
        if self.n_updates in CHOICES:
            self.learned = learn_prior(z, d, self.choice)
            self.families = self.learned.families
        elif before != GAUSSIAN:
            mapping = np.linalg.solve(basis, self.belief_basis)
            self.learned = self.learned.fitted_again(z, d, mapping)
        self.steady = self.n_updates in CHOICES and self.families == before
        self.steady |= self.n_updates > CHOICES[-1]
        self.n_updates += 1
        self.belief_basis = basis
        if self.families == GAUSSIAN:
            super().update(target, metric, other_spread)
            self.linear = np.zeros_like(self.mean)
            return
        self.belief = self.learned.mixture.posterior(z, d)
        self._set_site(1.0 if before == GAUSSIAN else SITE_STEP)
        # The reaction was taken from the last round. Where it is large, a full step overshoots.
        step = np.linalg.solve(metric + other_spread, metric).T
        change = thin.product(self.belief.mean, basis.T) - self.mean
        self.mean = self.mean + thin.product(change, step)

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

    def _set_site(self, step: float) -> None:
        """Go a step towards the site that gives means and average variances of the belief.

        Its precision H solves ``sum_i d_i (d_i + H)^-1 = sum_i d_i Cov(x_i)``.
        """
        (z, d), belief, basis = self.observed, self.belief, self.belief_basis
        totals, rotation = np.linalg.eigh(belief.total)
        values = np.array([_site_precision(d, total) for total in totals])
        back = np.linalg.inv(basis)
        precision = (rotation * values) @ rotation.T
        linear = thin.product(belief.mean, precision) + d[:, None] * (belief.mean - z)
        self.linear = self.linear + step * (thin.product(linear, back) - self.linear)
        self.site = self.site + step * (back.T @ precision @ back - self.site)
        self.basis = basis @ rotation
        self.variances = 1.0 / (self.noise.eigenvalues[:, None] + values)
        self._set_spread()

    def summary(self) -> FactorPrior:
        """Return what a person wants to know of the prior."""
        family = self.learned.family
        if self.families == GAUSSIAN:
            return super().summary()
        mixture = self.learned.mixture
        small = mixture.negligible()
        zero = mixture.shares(*self.observed)[:, small].sum(axis=1) if small.any() else None
        if family != "groups":
            return FactorPrior(family, zero=zero)
        # A wide part takes the outliers of all others. That predicts well, but says nothing of
        # the group they belong to, so this is asked of parts that are equally wide.
        shares = self.learned.priors[family].with_common_spread().shares(*self.observed)
        if float(shares.max(axis=1).mean()) < TOLD_APART:
            return FactorPrior("groups", zero=zero)
        return FactorPrior("groups", groups=shares[:, np.argsort(-shares.sum(axis=0))], zero=zero)

    def posterior(self, other_metric: FloatArray) -> FactorPosterior:
        """Return the posterior; its variances are each row's own."""
        posterior = super().posterior(other_metric)
        if self.families == GAUSSIAN:
            return posterior
        return replace(posterior, basis=self.belief_basis, variances=self.belief.variance)


def _n_detected(*factors: _Factor) -> int:
    """Return in how many directions both means have a share of E[F'PF] worth mentioning."""
    metrics = (thin.inner(factor.mean, factor.noise.apply(factor.mean)) for factor in factors)
    shares = (
        _joint_basis(metric, factor.spread)[1]
        for factor, metric in zip(factors, metrics, strict=True)
    )
    return min(int(np.sum(share >= DETECTED)) for share in shares)


def expected_gain(learned: Posterior, other: Posterior) -> tuple[float, float]:
    """Return how much nearer the learned signal M is to the true S than N: mean and deviation.

    By its own posterior: with U = N - M, ``|N - S|^2 - |M - S|^2 = |U|^2 - 2 <U, S - M>``, where
    ``S - M = dX W' + X dW'`` has mean zero and the covariances of the rows of X and of W.
    """
    left = np.column_stack([other.left, -learned.left])
    right = np.column_stack([other.right, learned.right])
    gain = float(np.sum(thin.inner(left, left) * thin.inner(right, right)))
    variance = 0.0
    for factor, own, across in (
        (learned.left_factor, left, right.T @ learned.loadings),
        (learned.right_factor, right, left.T @ learned.left),
    ):
        assert factor is not None
        assert factor.variances is not None
        projected = thin.product(own, across @ factor.basis)
        variance += float(np.sum(projected**2 * factor.variances))
    return gain, 2.0 * float(np.sqrt(variance))


def _joint_basis(metric: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return T with ``T' (metric + other) T = I`` and ``T' metric T`` diagonal, and that."""
    both = metric + other
    ridge = (1e-10 * np.trace(both) + 1e-12) * np.eye(len(both))
    shares, basis = eigh(metric, both + ridge)
    return basis, np.clip(shares, 0.0, 1.0)


def _shrinkage(a: FloatArray, shares: FloatArray) -> FloatArray:
    """Return ``1 / (1 - shares + a shares)``."""
    values = a * shares
    values += 1.0 - shares
    return np.reciprocal(values, out=values)


def _site_precision(d: FloatArray, total: float) -> float:
    """Return h with ``sum_i d_i / (d_i + h) = total``, the nearest that is possible."""

    def excess(log_h: float) -> float:
        return float(np.sum(d / (d + np.exp(log_h)))) - total

    low, high = np.log(float(d.mean())) + np.log(1e9) * np.array([-1.0, 1.0])
    if excess(low) <= 0.0:
        return float(np.exp(low))
    return float(np.exp(high if excess(high) >= 0.0 else brentq(excess, low, high, rtol=1e-6)))
