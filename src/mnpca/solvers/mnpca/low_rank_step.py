"""The signal given the noise, with and without a mean row."""

from collections.abc import Callable
from functools import partial
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
        Components of the signal, the mean not counted. None takes those above the `noise_edge`,
        but no more than `most`.
    center : bool or "auto"
        Whether the model has a mean row.
    start : array of shape (p, any), optional
        Loadings near the answer.
    """
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
    svd = posterior.svd.leading(rank)
    return variational_step(
        engine, noise.row, noise.col, svd, total, max_sweeps=max_sweeps, tol=1e-7
    )


def _above_noise(
    triples: Callable[..., GeneralisedSVD], edge: float, most: int, start: FloatArray | None
) -> GeneralisedSVD:
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
