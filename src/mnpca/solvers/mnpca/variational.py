"""The variational step: average over the factors instead of truncating.

Model of the step (A and B given): rows of X are N(0, G_X), rows of [W, mu] are N(0, G_W), and
Y = X W' + 1 mu' + E with E ~ MN(inv A, inv B). The posterior is approximated by
q(X) q([W, mu]); updating one factor given the other is a ridge regression that falls apart into
scalars in the eigenbasis of its own side's precision. docs/method.md derives the formulas.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.engines.threads import each, slices
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca import _kernels as kernels

#: EM steps for a prior covariance inside one update of a factor.
EM_STEPS = 5
#: Smallest prior variance, in units of the noise.
LEAST_VARIANCE = 1e-9


class GeneralizedSVD(NamedTuple):
    """``Y - 1 mean' ~ left diag(s) right'`` with left'A left = I and right'B right = I."""

    left: FloatArray
    singular_values: FloatArray
    right: FloatArray
    mean: FloatArray | None

    def leading(self, rank: int) -> "GeneralizedSVD":
        """Return the first so many triples."""
        left, right = self.left[:, :rank], self.right[:, :rank]
        return GeneralizedSVD(left, self.singular_values[:rank], right, self.mean)


@dataclass(frozen=True)
class FactorPosterior:
    """Gaussian posterior of one factor F (q x k).

    In the eigenbasis of its side's precision (noise variances a_i) the covariance of row i is
    ``basis diag(g a_i / (g + a_i)) basis'``.
    """

    mean: FloatArray
    prior: FloatArray
    """Prior covariance G of the rows, k x k."""
    basis: FloatArray
    signal_variances: FloatArray
    """g, the eigenvalues of the whitened prior."""
    spread: FloatArray
    """``E[(F - mean)' P (F - mean)]``, k x k."""
    uncertainty: FloatArray
    """Trace of each rotated row's covariance in the other factor's metric."""
    divergence: float
    """Twice the Kullback-Leibler divergence of the posterior from the prior."""
    variances: FloatArray | None = None
    """What `row_variances` returns, where rows have variances of their own."""

    def row_variances(self, noise: AxisPrecision) -> FloatArray:
        """Variances of each row in data space: covariance i is ``basis diag(v_i) basis'``."""
        if self.variances is not None:
            return self.variances
        noise_variances = 1.0 / noise.eigenvalues[:, None]
        g = self.signal_variances
        return noise.marginal(g * noise_variances / (g + noise_variances))


@dataclass(frozen=True)
class FactorPrior:
    """The prior that was learned for the rows of a factor."""

    family: str
    """See `priors.Family`."""
    groups: FloatArray | None = None
    """Probability of every group for every row, q x groups, where there are groups."""
    zero: FloatArray | None = None
    """Probability that a row is next to zero, where a part of the prior is."""


@dataclass(frozen=True)
class Posterior:
    """The posterior of the signal ``left right'``, mean included.

    With a mean, ``left`` ends in a column of ones and ``right`` in the mean.
    """

    left: FloatArray
    right: FloatArray
    centered: bool
    left_factor: FactorPosterior | None
    right_factor: FactorPosterior | None
    svd: GeneralizedSVD
    elbo_path: FloatArray
    priors: tuple[FactorPrior, FactorPrior] | None = None
    """Of rows and of columns, where they were learned."""
    undetected: int = 0
    """Components of the model of which nothing is known but that they are below the threshold."""

    @property
    def elbo(self) -> float:
        """Return the evidence lower bound at the last sweep (without the 2 pi constant)."""
        return float(self.elbo_path[-1])

    @property
    def rank(self) -> int:
        """Return the number of components, the mean not counted."""
        return len(self.svd.singular_values)

    @property
    def left_spread(self) -> FloatArray:
        """Return ``E[(L - left)' A (L - left)]``; a column of ones has none."""
        spread: FloatArray = np.zeros((self.right.shape[1], self.right.shape[1]))
        if self.left_factor is not None:
            spread[: self.rank, : self.rank] = self.left_factor.spread
        return spread

    @property
    def right_spread(self) -> FloatArray:
        """Return ``E[(R - right)' B (R - right)]``."""
        return self.right_factor.spread if self.right_factor else np.zeros((0, 0))

    @property
    def row_uncertainty(self) -> FloatArray:
        """Return the trace of each rotated row's covariance in the metric of the loadings."""
        return self.left_factor.uncertainty if self.left_factor else np.zeros(len(self.left))

    @property
    def col_uncertainty(self) -> FloatArray:
        """Return the trace of each rotated column's covariance in the metric of the scores."""
        return self.right_factor.uncertainty if self.right_factor else np.zeros(len(self.right))

    @property
    def mean(self) -> FloatArray:
        """Return the posterior mean of the mean row (zeros without one)."""
        return self.right[:, -1] if self.centered else np.zeros(len(self.right))

    @property
    def scores(self) -> FloatArray:
        """Return the posterior mean of X."""
        return self.left[:, : self.rank]

    @property
    def loadings(self) -> FloatArray:
        """Return the posterior mean of W."""
        return self.right[:, : self.rank]


def variational_step(
    engine: Engine,
    row_noise: AxisPrecision,
    col_noise: AxisPrecision,
    svd: GeneralizedSVD,
    total: float,
    *,
    max_sweeps: int,
    tol: float = 1e-7,
) -> Posterior:
    """Alternate the updates of q(X) and q([W, mu]) from the generalized SVD.

    A mean row in the SVD puts a mean into the model. `total` is ``tr(A Y B Y')``. This stops when
    the ELBO rises by less than `tol` per entry of Y.
    """
    n, p = engine.shape
    k = len(svd.singular_values)
    centered = svd.mean is not None
    left, right = svd.left * svd.singular_values, svd.right
    if svd.mean is not None:
        left, right = np.column_stack([left, np.ones(n)]), np.column_stack([right, svd.mean])
    width = right.shape[1]
    left_spread: FloatArray = np.zeros((width, width))
    right_spread: FloatArray = np.zeros((width, width))
    left_factor: FactorPosterior | None = None
    right_factor: FactorPosterior | None = None
    constant = total - p * row_noise.log_determinant - n * col_noise.log_determinant
    weighted_right = col_noise.apply(right)
    path: list[float] = []
    while width > 0 and len(path) < max_sweeps:
        if k > 0:
            metric = thin.inner(right, weighted_right) + right_spread
            target = engine.times(weighted_right[:, :k])
            if centered:
                target -= metric[k, :k]
            left_factor = update_factor(target, metric[:k, :k], row_noise, left_factor)
            left[:, :k] = left_factor.mean
            left_factor = replace(left_factor, mean=left[:, :k])  # kept once
            del target
            left_spread[:k, :k] = left_factor.spread
        weighted_left = row_noise.apply(left)
        left_metric = thin.inner(left, weighted_left) + left_spread
        target = engine.transposed_times(weighted_left)
        del weighted_left
        right_factor = update_factor(target, left_metric, col_noise, right_factor)
        right, right_spread = right_factor.mean, right_factor.spread
        weighted_right = col_noise.apply(right)
        right_metric = thin.inner(right, weighted_right) + right_spread
        divergence = right_factor.divergence + (left_factor.divergence if left_factor else 0.0)
        misfit = float(np.sum(left_metric * right_metric) - 2.0 * np.sum(target * weighted_right))
        path.append(-0.5 * (constant + misfit + divergence))
        if len(path) > 1 and abs(path[-1] - path[-2]) < tol * n * p:
            break
    return Posterior(
        left=left,
        right=right,
        centered=centered,
        left_factor=left_factor,
        right_factor=right_factor,
        svd=svd,
        elbo_path=np.array(path if path else [-0.5 * constant]),
    )


def update_factor(
    target: FloatArray,
    metric: FloatArray,
    noise: AxisPrecision,
    previous: FactorPosterior | None,
) -> FactorPosterior:
    """Return the posterior of one factor given the other.

    For X with P = A, `target` is ``Y B W`` and `metric` H = ``E[W'BW]``; for W, ``Y' A X`` and
    ``E[X'AX]``. The least squares estimate ``target H^-1`` has row covariance ``P^-1`` and column
    covariance ``H^-1 = L L'``. Rotated by P's eigenvectors and multiplied by ``L^-T`` its entries
    are independent with variances a_i, and `shrink_rows` finishes. EM begins with the prior of the
    previous posterior, or with a moment estimate.
    """
    k = len(metric)
    metric = metric + (1e-10 * np.trace(metric) + 1e-12) * np.eye(k)
    inverse = np.linalg.inv(metric)
    root = np.linalg.cholesky((inverse + inverse.T) / 2)
    whitener = np.linalg.inv(root)
    whitened = noise.rotate(thin.product(target, inverse @ whitener.T))
    if previous is None:
        precisions = noise.eigenvalues[:, None]
        moment = thin.inner(whitened, whitened * precisions) / noise.size - np.eye(k)
        values, vectors = np.linalg.eigh(moment)
        prior = (vectors * np.maximum(values, 1e-3)) @ vectors.T
    else:
        prior = whitener @ previous.prior @ whitener.T
    means, g, vectors, shares, divergence, uncertainty = shrink_rows(
        whitened, 1.0 / noise.eigenvalues, prior, EM_STEPS
    )
    basis = root @ vectors
    return FactorPosterior(
        mean=noise.unrotate(thin.product(means, basis.T)),
        prior=(basis * g) @ basis.T,
        basis=basis,
        signal_variances=g,
        spread=(basis * shares) @ basis.T,
        uncertainty=uncertainty,
        divergence=divergence,
    )


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

    Row i of `targets` is a least squares estimate with covariance a_i I, a_i its noise variance;
    its prior is N(0, prior). In the eigenbasis of the prior (eigenvalues g_j) the posterior mean
    shrinks coordinate j by g_j / (g_j + a_i), with variance g_j a_i / (g_j + a_i). `steps` EM
    steps re-estimate the prior; the last pass reports.
    """
    n, k = targets.shape
    parts = slices(n, thin.ROWS)
    values, vectors = _spectrum(prior)

    def second_moment(part: slice) -> FloatArray:
        observed = (targets, noise_variances, values, vectors)
        return np.asarray(kernels.second_moment(*observed, part.start, part.stop))

    for _ in range(steps):
        values, turned = _spectrum(sum(each(second_moment, parts)) / n)
        vectors = np.ascontiguousarray(vectors @ turned)
    means, total_variance = np.empty((n, k)), np.empty(n)
    shares = np.zeros((len(parts), k))

    def finish(number: int) -> float:
        part = parts[number]
        rows = (part.start, part.stop, means, total_variance, shares[number])
        return float(kernels.posterior_rows(targets, noise_variances, values, vectors, *rows))

    divergence = sum(each(finish, range(len(parts))))
    total = shares.sum(axis=0)
    return ShrunkRows(means, values, vectors, total, divergence - total.sum(), total_variance)


def _spectrum(prior: FloatArray) -> tuple[FloatArray, FloatArray]:
    values, vectors = np.linalg.eigh(prior)
    return np.maximum(values, LEAST_VARIANCE), np.ascontiguousarray(vectors)
