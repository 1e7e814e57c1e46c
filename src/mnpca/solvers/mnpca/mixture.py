"""Distributions of a factor's rows, and what they make of noisy observations.

Row i is observed as ``z_i = x_i + e_i`` with ``e_i ~ N(0, I / d_i)``, d_i known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.thin import ROWS
from mnpca.engines.threads import slices
from mnpca.solvers.mnpca import _kernels as kernels

#: EM steps for the weights of a mixture's parts, at most.
WEIGHT_STEPS = 200


class Belief(NamedTuple):
    """The posterior of every row of a factor under a prior."""

    mean: FloatArray
    variance: FloatArray
    """Posterior variance of every entry."""
    total: FloatArray
    """``sum_i d_i Cov(x_i)``, k x k."""
    shares: FloatArray
    """Probability of every part of the prior, n x parts."""


@dataclass(frozen=True)
class Mixture:
    """``sum_g weight_g N(center_g, V_g diag(values_g) V_g')``."""

    weights: FloatArray
    centers: FloatArray
    values: FloatArray
    vectors: FloatArray

    def log_densities(self, z: FloatArray, d: FloatArray) -> FloatArray:
        """Return ``log(weight_g N(z_i; center_g, S_g + I / d_i))`` without the 2 pi constant."""
        logs = np.empty((len(z), len(self.weights)))
        parts = (np.log(self.weights), self.centers, self.values, self.vectors)
        kernels.part_densities(z, d, *parts, logs)
        return logs

    def posterior(self, z: FloatArray, d: FloatArray) -> Belief:
        """Return the posterior of every row, in slices of many of them."""

        def means_and_variances(
            z: FloatArray, d: FloatArray, shares: FloatArray
        ) -> tuple[FloatArray, FloatArray, FloatArray]:
            offsets, variances = self._offsets(z, d)
            gains = self.values[:, None] / variances
            means = np.matmul(gains * offsets, self.vectors.transpose(0, 2, 1))
            means += self.centers[:, None]
            within = gains / d[:, None]
            weighted = shares.T[:, :, None]
            mean = np.sum(weighted * means, axis=0)
            variance = np.matmul(within, (self.vectors**2).transpose(0, 2, 1))
            variance = np.sum(weighted * (variance + (means - mean) ** 2), axis=0)
            scaled = weighted * d[:, None]
            inside = self.vectors * np.sum(scaled * within, axis=1)[:, None]
            total = np.einsum("gab,gcb->ac", inside, self.vectors)
            away = means - mean
            total += np.einsum("gna,gnb->ab", scaled * away, away, optimize=True)
            return mean, variance, total

        return _in_slices(self, z, d, means_and_variances)

    def improved(self, z: FloatArray, d: FloatArray, steps: int, floor: float) -> "Mixture":
        """Return the mixture after EM steps; parts that hold less than one row go."""
        mixture, before = self, -np.inf
        for _ in range(steps):
            logs = mixture.log_densities(z, d)
            marginal = log_sum(logs)
            likelihood = float(marginal.sum())
            if likelihood - before < 1e-4 * len(z):
                break
            before = likelihood
            mixture = mixture._em_step(z, d, np.exp(logs - marginal[:, None]), floor)
        return mixture

    def _em_step(self, z: FloatArray, d: FloatArray, shares: FloatArray, floor: float) -> "Mixture":
        parts, k = self.centers.shape
        counts, first, second = np.zeros(parts), np.zeros((parts, k)), np.zeros((parts, k, k))
        own = (self.centers, self.values, self.vectors)
        kernels.part_moments(z, d, shares, *own, counts, first, second)
        kept = counts >= min(1.0, counts.max())
        shift = first[kept] / counts[kept, None]
        second = second[kept] / counts[kept, None, None] - shift[:, :, None] * shift[:, None]
        values, rotation = np.linalg.eigh(second)
        vectors = self.vectors[kept]
        return Mixture(
            counts[kept] / counts[kept].sum(),
            self.centers[kept] + np.einsum("gab,gb->ga", vectors, shift),
            np.maximum(values, floor),
            np.matmul(vectors, rotation),
        )

    def mapped(self, matrix: FloatArray) -> "Mixture":
        """Return the distribution of ``M x``."""
        stretched = matrix @ (self.vectors * np.sqrt(self.values)[:, None])
        values, vectors = np.linalg.eigh(np.matmul(stretched, stretched.transpose(0, 2, 1)))
        return Mixture(self.weights, self.centers @ matrix.T, np.maximum(values, 0.0), vectors)

    def split(self, part: int) -> "Mixture":
        """Return the mixture with one part cut in two, along its longest axis."""
        step = self.vectors[part, :, -1] * np.sqrt(self.values[part, -1])
        values = self.values.copy()
        values[part, -1] *= 0.3
        centers = np.vstack([self.centers, self.centers[part] + step])
        centers[part] -= step
        weights = np.append(self.weights, self.weights[part] / 2)
        weights[part] /= 2
        return Mixture(
            weights,
            centers,
            np.vstack([values, values[part]]),
            np.concatenate([self.vectors, self.vectors[[part]]]),
        )

    def without(self, part: int) -> "Mixture":
        """Return the mixture without one of its parts."""
        kept = np.arange(len(self.weights)) != part
        weights = self.weights[kept]
        return Mixture(
            weights / weights.sum(), self.centers[kept], self.values[kept], self.vectors[kept]
        )

    def _offsets(self, z: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``V_g'(z_i - center_g)`` and the variances of its entries, parts x n x k."""
        offsets = np.matmul(z - self.centers[:, None], self.vectors)
        return offsets, self.values[:, None] + 1.0 / d[:, None]


@dataclass(frozen=True)
class Points:
    """A discrete distribution: ``sum_g weight_g delta(atom_g)``."""

    weights: FloatArray
    atoms: FloatArray

    def log_densities(self, z: FloatArray, d: FloatArray) -> FloatArray:
        """Return ``log(weight_g N(z_i; atom_g, I / d_i))`` without the 2 pi constant."""
        squares = (z**2).sum(axis=1)[:, None] + (self.atoms**2).sum(axis=1)
        distances = squares - 2.0 * z @ self.atoms.T
        level = 0.5 * z.shape[1] * np.log(d)
        return np.asarray(np.log(self.weights) + level[:, None] - 0.5 * d[:, None] * distances)

    def posterior(self, z: FloatArray, d: FloatArray) -> Belief:
        """Return the posterior of every row, in slices of many of them."""

        def means_and_variances(
            z: FloatArray, d: FloatArray, shares: FloatArray
        ) -> tuple[FloatArray, FloatArray, FloatArray]:
            mean = shares @ self.atoms
            variance = np.maximum(shares @ self.atoms**2 - mean**2, 0.0)
            total = (self.atoms.T * (d @ shares)) @ self.atoms - (mean.T * d) @ mean
            return mean, variance, total

        return _in_slices(self, z, d, means_and_variances)


Prior: TypeAlias = Mixture | Points


def best_weights(log_densities: FloatArray) -> FloatArray:
    """Return the weights of a mixture's parts that make the rows likeliest.

    EM from equal weights, until a step gains less than a hundredth of a nat.

    Parameters
    ----------
    log_densities : array of shape (n, parts)
        Of every row under every part.
    """
    likelihoods = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    n, parts = likelihoods.shape
    weights: FloatArray = np.full(parts, 1.0 / parts)
    before = -np.inf
    for _ in range(WEIGHT_STEPS):
        marginal = likelihoods @ weights
        likelihood = float(np.log(marginal).sum())
        if likelihood - before < 1e-2:
            break
        before = likelihood
        weights = weights * (likelihoods.T @ (1.0 / marginal)) / n
    return weights


def log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials of every row."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


def _in_slices(
    prior: Prior,
    z: FloatArray,
    d: FloatArray,
    moments: Callable[
        [FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]
    ],
) -> Belief:
    """Put the posterior together from slices: parts x rows x k numbers are held for one only."""
    n, k = z.shape
    mean, variance, total = np.empty((n, k)), np.empty((n, k)), np.zeros((k, k))
    shares = []
    for part in slices(n, ROWS):
        logs = prior.log_densities(z[part], d[part])
        shares.append(np.exp(logs - log_sum(logs)[:, None]))
        mean[part], variance[part], added = moments(z[part], d[part], shares[-1])
        total += added
    return Belief(mean, variance, total, np.concatenate(shares))
