"""The signal given the noise, with and without a mean row."""

from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.model.low_rank import LowRank
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.generalized_svd import (
    GeneralisedSVD,
    generalized_least_squares_mean,
    generalized_svd,
)
from mnpca.solvers.mnpca.variational import Posterior, variational_step

#: Components that are kept beyond those above the noise: one that a wrong noise model has swallowed
#: comes back as that model improves, and one that is noise costs next to no evidence.
SURPLUS = 2

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
    tol: float = 1e-7,
    seed: int = 0,
) -> Posterior:
    """Return the variational posterior of the signal; ``center="auto"`` lets the ELBO choose.

    Parameters
    ----------
    engine : Engine
        Holds Y.
    row_noise, col_noise : AxisPrecision
        A and B.
    rank : int or None
        Components of the signal, the mean not counted. None takes those whose generalized
        singular values exceed ``sqrt n + sqrt p``, where those of pure noise end.
    most : int, optional
        Where the rank is None, look for no more components than this.
    center : bool or "auto"
        Whether the model has a mean row.
    start : array of shape (p, any), optional
        Loadings near the answer.
    max_sweeps, tol : int, float
        Of the variational sweeps.
    seed : int
        Of the random columns in the subspace iteration.
    """
    total = engine.weighted_norm(row_noise.weights, col_noise.weights)
    options = (False, True) if center == "auto" else (bool(center),)
    posteriors = []
    for centered in options:
        mean = generalized_least_squares_mean(engine, row_noise) if centered else None
        if rank is None:
            svd = _above_noise(engine, row_noise, col_noise, mean, start, seed, most)
        else:
            svd = generalized_svd(
                engine,
                row_noise,
                col_noise,
                rank,
                mean=mean,
                start=start,
                rng=np.random.default_rng(seed),
            )
        posteriors.append(
            variational_step(
                engine, row_noise, col_noise, svd, total, max_sweeps=max_sweeps, tol=tol
            )
        )
    return max(posteriors, key=lambda posterior: posterior.elbo)


def leading_components(
    engine: Engine, noise: NoiseModel, posterior: Posterior, rank: int, max_sweeps: int = 20
) -> Posterior:
    """Return the posterior of the signal's leading components under the same noise."""
    total = engine.weighted_norm(noise.row.weights, noise.col.weights)
    return variational_step(
        engine,
        noise.row,
        noise.col,
        posterior.svd.leading(rank),
        total,
        max_sweeps=max_sweeps,
        tol=1e-7,
    )


def _above_noise(
    engine: Engine,
    row_noise: AxisPrecision,
    col_noise: AxisPrecision,
    mean: FloatArray | None,
    start: FloatArray | None,
    seed: int,
    limit: int | None,
) -> GeneralisedSVD:
    """Return the triples above the edge of pure noise: look at twice as many until one is below.

    They are first counted roughly, then computed.
    """
    edge = noise_edge(engine.shape)
    most = largest_rank(engine.shape)
    most = most if limit is None else min(most, limit)
    width = 6 if start is None else max(6, start.shape[1] + 4)

    def triples(rank: int, loadings: FloatArray | None, tol: float) -> GeneralisedSVD:
        rng = np.random.default_rng(seed)
        return generalized_svd(
            engine, row_noise, col_noise, rank, mean=mean, start=loadings, rng=rng, tol=tol
        )

    while True:
        rough = triples(min(width, most), start, 1e-3)
        count = int(np.sum(rough.singular_values > edge))
        start = rough.right
        if count + SURPLUS <= width or width >= most:
            return triples(min(count + SURPLUS, most), start, 1e-4)
        width *= 2


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
