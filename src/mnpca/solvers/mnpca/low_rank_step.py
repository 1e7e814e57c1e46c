"""The signal given the noise, with and without a mean row."""

from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.base import Engine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca.generalized_svd import generalized_least_squares_mean, generalized_svd
from mnpca.solvers.mnpca.variational import Posterior, variational_step

Center: TypeAlias = bool | Literal["auto"]


def low_rank_step(
    engine: Engine,
    row_noise: AxisPrecision,
    col_noise: AxisPrecision,
    rank: int,
    *,
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
    rank : int
        Components of the signal, the mean not counted.
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
        rng = np.random.default_rng(seed)
        svd = generalized_svd(engine, row_noise, col_noise, rank, mean=mean, start=start, rng=rng)
        posteriors.append(
            variational_step(
                engine, row_noise, col_noise, svd, total, max_sweeps=max_sweeps, tol=tol
            )
        )
    return max(posteriors, key=lambda posterior: posterior.elbo)


def relative_change(new: Posterior, old: Posterior) -> float:
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
