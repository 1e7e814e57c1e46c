"""Distributions of a factor's rows, and what they make of noisy observations.

Row i is observed as ``z_i = x_i + e_i`` with ``e_i ~ N(0, I / d_i)``, d_i known.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from mnpca._typing import FloatArray
from mnpca.engines.thin import ROWS
from mnpca.engines.threads import slices
from mnpca.solvers.mnpca import _kernels as kernels

#: Steps for the weights of a mixture's parts, at most; ten are usual.
WEIGHT_STEPS = 50


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
        """Return the posterior of every row.

        Given its part g, row i is off from its mean by ``(I - K) e + (I - K) (c - center_g)``: K is
        the gain ``S_g (S_g + I / d_i)^-1``, and the center that was fitted has the covariance
        ``C_g = (sum_i share_ig (S_g + I / d_i)^-1)^-1``. Centers at zero were not fitted.
        """
        (n, k), fitted = z.shape, np.any(self.centers, axis=1)
        logs = self.log_densities(z, d)
        shares = np.exp(logs - log_sum(logs)[:, None])
        mean, variance, total = np.empty((n, k)), np.empty((n, k)), np.zeros((k, k))
        errors = np.array(
            [
                free / np.maximum(share @ (1.0 / (values + 1.0 / d[:, None])), 1e-300)
                for share, values, free in zip(shares.T, self.values, fitted, strict=True)
            ]
        )
        for part in slices(n, ROWS):  # parts x rows x k numbers are held for one slice only
            d_part, weighted = d[part, None], shares[part].T[:, :, None]
            offsets = np.matmul(z[part] - self.centers[:, None], self.vectors)
            gains = self.values[:, None] / (self.values[:, None] + 1.0 / d_part)
            within = gains / d_part + (1.0 - gains) ** 2 * errors[:, None]
            means = np.matmul(gains * offsets, self.vectors.transpose(0, 2, 1))
            means += self.centers[:, None]
            mean[part] = np.sum(weighted * means, axis=0)
            away = means - mean[part]
            own = np.matmul(within, (self.vectors**2).transpose(0, 2, 1))
            variance[part] = np.sum(weighted * (own + away**2), axis=0)
            scaled = weighted * d_part
            inside = self.vectors * np.sum(scaled * within, axis=1)[:, None]
            total += np.einsum("gab,gcb->ac", inside, self.vectors)
            total += np.einsum("gna,gnb->ab", scaled * away, away, optimize=True)
        return Belief(mean, variance, total, shares)

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
        """Return the next mixture: weights and centers given the shares, then the spreads."""
        parts, k = self.centers.shape
        counts, shifts, second = np.zeros(parts), np.zeros((parts, k)), np.zeros((parts, k, k))
        own = (self.centers, self.values, self.vectors)
        kernels.part_moments(z, d, shares, *own, counts, shifts, second)
        kept = counts >= min(1.0, counts.max())
        values, rotation = np.linalg.eigh(second[kept] / counts[kept, None, None])
        vectors = self.vectors[kept]
        return Mixture(
            counts[kept] / counts[kept].sum(),
            self.centers[kept] + np.einsum("gab,gb->ga", vectors, shifts[kept]),
            np.maximum(values, floor),
            np.matmul(vectors, rotation),
        )

    def without_spread(self, floor: float) -> "Mixture":
        """Return the mixture of points, which EM steps leave points."""
        return replace(self, values=np.full_like(self.values, floor))

    def with_common_spread(self) -> "Mixture":
        """Return the mixture whose parts all have the average spread."""
        scaled = self.vectors * self.values[:, None] * self.weights[:, None, None]
        values, vectors = np.linalg.eigh(np.einsum("gab,gcb->ac", scaled, self.vectors))
        return replace(
            self,
            values=np.broadcast_to(np.maximum(values, 0.0), self.values.shape).copy(),
            vectors=np.broadcast_to(vectors, self.vectors.shape).copy(),
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


def best_weights(log_densities: FloatArray) -> FloatArray:
    """Return the weights of a mixture's parts that make the rows likeliest.

    Sequential quadratic programming: with ``R_ig`` the density of row i under part g over that
    under the mixture, ``-sum_i log(sum_g R_ig w_g) / n + sum_g w_g`` is about
    ``|R w - 2|^2 / 2n + sum_g w_g``, whose minimum over ``w >= 0`` is the next step.

    Parameters
    ----------
    log_densities : array of shape (n, parts)
        Of every row under every part.
    """
    likelihoods = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    n, parts = likelihoods.shape
    weights: FloatArray = np.full(parts, 1.0 / parts)
    marginal = likelihoods @ weights
    for _ in range(WEIGHT_STEPS):
        ratios = likelihoods / marginal[:, None]
        curvature = ratios.T @ ratios / n
        root = np.linalg.cholesky(curvature + 1e-9 * np.trace(curvature) * np.eye(parts))
        goal, _ = nnls(root.T, np.linalg.solve(root, 2.0 * ratios.mean(axis=0) - 1.0))
        goal /= goal.sum()
        # A full step could take the only part away that a row has.
        step, before = 0.95, float(np.log(marginal).sum())
        while step > 1e-3:
            tried = weights + step * (goal - weights)
            marginal_there = likelihoods @ tried
            gain = float(np.log(marginal_there).sum()) - before
            if gain > 0.0:
                weights, marginal = tried, marginal_there
                break
            step /= 2.0
        if gain < 1e-4:
            break
    return weights


def log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials of every row."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))
