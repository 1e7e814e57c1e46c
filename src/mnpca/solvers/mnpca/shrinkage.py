"""Ridge regression of every row of a factor, with EM for the prior covariance."""

from typing import NamedTuple

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.thin import ROWS
from mnpca.engines.threads import each, slices
from mnpca.solvers.mnpca import _kernels as kernels

#: Smallest prior variance, in units of the noise.
LEAST_VARIANCE = 1e-9


class ShrunkRows(NamedTuple):
    """Posterior of every row, in the eigenbasis of the prior."""

    means: FloatArray
    values: FloatArray
    """g, the eigenvalues of the prior covariance."""
    vectors: FloatArray
    shares: FloatArray
    """``sum_i g_j / (g_j + a_i)``."""
    divergence: float
    """Twice the Kullback-Leibler divergence from the prior."""
    total_variance: FloatArray
    """Summed posterior variance of every row."""


def shrink_rows(
    targets: FloatArray, noise_variances: FloatArray, prior: FloatArray, steps: int
) -> ShrunkRows:
    """Find the posterior of every row and the prior that fits them.

    Row i of `targets` is a least squares estimate with covariance a_i I, a_i its noise
    variance; its prior is N(0, prior). In the eigenbasis of the prior (eigenvalues g_j) the
    posterior mean shrinks coordinate j by g_j / (g_j + a_i), with variance
    g_j a_i / (g_j + a_i). `steps` EM steps re-estimate the prior; the last pass reports.
    """
    n, k = targets.shape
    parts = slices(n, ROWS)
    values, vectors = _spectrum(prior)
    if len(parts) == 1:
        values, vectors = kernels.improve_prior(
            targets, noise_variances, values, vectors, steps, LEAST_VARIANCE
        )
        steps = 0
    for _ in range(steps):
        second = _second_moment(targets, noise_variances, values, vectors, parts)
        values, turned = _spectrum(second / n)
        vectors = np.ascontiguousarray(vectors @ turned)
    means = np.empty((n, k))
    total_variance = np.empty(n)
    shares = np.zeros((len(parts), k))

    def finish(number: int) -> float:
        part = parts[number]
        rows = (part.start, part.stop, means, total_variance, shares[number])
        return float(kernels.posterior_rows(targets, noise_variances, values, vectors, *rows))

    divergence = sum(each(finish, range(len(parts))))
    total = shares.sum(axis=0)
    return ShrunkRows(means, values, vectors, total, divergence - total.sum(), total_variance)


def _second_moment(
    targets: FloatArray,
    noise_variances: FloatArray,
    values: FloatArray,
    vectors: FloatArray,
    parts: list[slice],
) -> FloatArray:
    """Return the sum over rows of E[x x'] in the eigenbasis of the prior."""

    def moment(part: slice) -> FloatArray:
        return np.asarray(
            kernels.second_moment(targets, noise_variances, values, vectors, part.start, part.stop)
        )

    return np.asarray(sum(each(moment, parts)))


def _spectrum(prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(prior)
    return np.maximum(values, LEAST_VARIANCE), np.ascontiguousarray(vectors)
