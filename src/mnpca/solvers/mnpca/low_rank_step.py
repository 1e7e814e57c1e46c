"""The signal given the noise: leading generalized singular triples, then the variational step.

The triples come from subspace iteration; no factor of A or B is formed.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import Engine, engine_for, thin
from mnpca.model.low_rank import LowRank
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.variational import GeneralizedSVD, Posterior, variational_step

#: Components that are kept beyond those above the noise: one that a wrong noise model has swallowed
#: comes back as that model improves, and one that is noise costs next to no evidence.
SURPLUS = 2
#: Columns carried beyond the rank; they make the iteration converge by s_k / s_(k + extra).
EXTRA = 6

Center: TypeAlias = bool | Literal["auto"]


def low_rank_step(
    engine: Engine,
    row_noise: AxisPrecision,
    col_noise: AxisPrecision,
    rank: int | None,
    *,
    most: int | None = None,
    center: Center = "auto",
    start: FloatArray | None = None,
    max_sweeps: int = 8,
    seed: int = 0,
) -> Posterior:
    """Return the variational posterior of the signal, `rank` components and perhaps a mean row.

    Without a rank it has the components above the `noise_edge`, but no more than `most`.
    ``center="auto"`` lets the ELBO decide about the mean row. `start` are loadings near the answer.
    """
    step = partial(variational_step, engine, row_noise, col_noise, max_sweeps=max_sweeps)
    total = engine.weighted_norm(row_noise.weights, col_noise.weights)
    posteriors = []
    for centered in (False, True) if center == "auto" else (bool(center),):
        mean = generalized_least_squares_mean(engine, row_noise) if centered else None
        triples = partial(generalized_svd, engine, row_noise, col_noise, mean=mean, seed=seed)
        if rank is None:
            largest = largest_rank(engine.shape)
            bound = largest if most is None else min(most, largest)
            svd = _above_noise(triples, noise_edge(engine.shape), bound, start)
        else:
            svd = triples(rank, start=start)
        posteriors.append(step(svd, total))
    return max(posteriors, key=lambda posterior: posterior.elbo)


def leading_components(
    engine: Engine, noise: NoiseModel, posterior: Posterior, rank: int
) -> Posterior:
    """Return the posterior of the signal's leading components under the same noise."""
    total = engine.weighted_norm(noise.row.weights, noise.col.weights)
    svd = posterior.svd.leading(rank)
    return variational_step(engine, noise.row, noise.col, svd, total, max_sweeps=20)


def signal_under_variances(
    matrix: FloatArray,
    row_variances: FloatArray,
    col_variances: FloatArray,
    rank: int,
    *,
    center: bool = True,
    start: FloatArray | None = None,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the signal of a matrix under independent noise, mean row included, and its loadings.

    The noise in cell (i, j) has the variance ``r_i c_j``. `start` are loadings near the answer.
    """
    size = max(float(np.sqrt(np.mean(matrix**2))), np.finfo(float).tiny)
    posterior = low_rank_step(
        engine_for(matrix / size),
        AxisPrecision.diagonal(1.0 / row_variances),
        AxisPrecision.diagonal(size**2 / col_variances),
        rank,
        center=center,
        start=start,
        seed=seed,
    )
    return size * (posterior.left @ posterior.right.T), posterior.svd.right


def _above_noise(
    triples: Callable[..., GeneralizedSVD], edge: float, most: int, start: FloatArray | None
) -> GeneralizedSVD:
    """Return the triples above the edge of pure noise: look at twice as many until one is below.

    They are first counted roughly, then computed.
    """
    width = 6 if start is None else max(6, start.shape[1] + 4)
    while True:
        rough = triples(min(width, most), start=start, tol=1e-3)
        count = int(np.sum(rough.singular_values > edge))
        start = rough.right
        if count + SURPLUS <= width or width >= most:
            return triples(min(count + SURPLUS, most), start=start)
        width *= 2


def generalized_least_squares_mean(engine: Engine, row_noise: AxisPrecision) -> FloatArray:
    """Return ``mu = Y'A1 / 1'A1``, the mean row under correlated rows."""
    n, _ = engine.shape
    weights = row_noise.apply(np.ones((n, 1)))
    return np.asarray(engine.transposed_times(weights)[:, 0] / weights.sum())


def generalized_svd(
    engine: Engine,
    row_noise: AxisPrecision,
    col_noise: AxisPrecision,
    rank: int,
    *,
    mean: FloatArray | None = None,
    start: FloatArray | None = None,
    seed: int = 0,
    max_iter: int = 60,
    tol: float = 1e-4,
) -> GeneralizedSVD:
    """Find the `rank` leading generalized singular triples of ``Y - 1 mean'``.

    Alternates U = (Y - 1 mean') B V and V = (Y - 1 mean')' A U, made orthonormal in the inner
    products of A and of B, until the leading singular values settle. It starts from the loadings
    `start`, filled up with random columns.
    """
    n, p = engine.shape
    if rank == 0:
        return GeneralizedSVD(np.zeros((n, 0)), np.zeros(0), np.zeros((p, 0)), mean)
    width = min(rank + EXTRA, n, p)
    right: FloatArray = np.random.default_rng(seed).standard_normal((p, width))
    if start is not None:
        right[:, : start.shape[1]] = start[:, :width]
    right, weighted_right = _orthonormal(right, col_noise)
    previous = None
    for step in range(max_iter):
        left = engine.times(weighted_right)
        if mean is not None:
            left -= mean @ weighted_right
        left, weighted_left = _orthonormal(left, row_noise)
        right = engine.transposed_times(weighted_left)
        if mean is not None:
            right -= np.outer(mean, weighted_left.sum(axis=0))
        del weighted_left
        weighted_right = col_noise.apply(right)
        gram = thin.inner(right, weighted_right)
        values, rotation = np.linalg.eigh((gram + gram.T) / 2)
        rotation = rotation[:, ::-1]
        # Where Y has no more directions, rounding must not be blown up to unit length.
        floor = max(1e-14 * values[-1], np.finfo(float).tiny)
        singular = np.sqrt(np.maximum(values[::-1], floor))
        right = right @ (rotation / singular)
        weighted_right = weighted_right @ (rotation / singular)
        leading = singular[:rank]
        settled = previous is not None and np.max(np.abs(leading - previous) / leading) < tol
        if settled or step == max_iter - 1:
            break
        previous = leading
        left = np.empty((0, width))  # the next one needs its room
    return GeneralizedSVD(thin.product(left, rotation[:, :rank]), leading, right[:, :rank], mean)


def _orthonormal(factor: FloatArray, noise: AxisPrecision) -> tuple[FloatArray, FloatArray]:
    """Turn Z into Q with the same span and Q'PQ = I, in place; return it and P Q."""
    weighted = noise.apply(factor)
    gram = thin.inner(factor, weighted)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh((gram + gram.T) / 2 * scale * scale[:, None])
    transform = scale[:, None] * (vectors / np.sqrt(np.maximum(values, 1e-10)))
    thin.turn(factor, transform)
    thin.turn(weighted, transform)
    return factor, weighted


def noise_edge(shape: tuple[int, int]) -> float:
    """Return ``sqrt n + sqrt p``, where the singular values of white noise end."""
    return float(np.sqrt(shape[0]) + np.sqrt(shape[1]))


def largest_rank(shape: tuple[int, int]) -> int:
    """Return Ledermann's bound ``(2q + 1 - sqrt(8q + 1)) / 2``, q = min(n, p), at least 1.

    Beyond it, components and unequal noise variances of q items cannot be told apart.
    """
    q = min(shape)
    bound = int((2 * q + 1 - np.sqrt(8 * q + 1)) / 2)
    return min(max(bound, 1), q - 1)


def relative_change(new: Posterior | LowRank, old: Posterior | LowRank) -> float:
    """Return ``|M_new - M_old| / |M_new|`` of the two signals, from their factors.

    A signal of less than a hundredth of the data (of mean square one) counts as that much: how
    much of next to nothing changes says nothing.
    """
    left = np.column_stack([new.left, -old.left])
    right = np.column_stack([new.right, old.right])
    change = float(np.sum((left.T @ left) * (right.T @ right)))
    size = float(np.sum((new.left.T @ new.left) * (new.right.T @ new.right)))
    size = max(size, 1e-4 * len(new.left) * len(new.right))
    return float(np.sqrt(max(change, 0.0) / size))
