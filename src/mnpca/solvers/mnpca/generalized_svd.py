"""Leading generalized singular triples by subspace iteration: no factor of A or B is formed."""

from typing import NamedTuple

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.noise.axis_precision import AxisPrecision

#: Columns carried beyond the rank; they make the iteration converge by s_k / s_(k + extra).
EXTRA = 6


class GeneralisedSVD(NamedTuple):
    """``Y - 1 mean' ~ left diag(s) right'`` with left'A left = I and right'B right = I."""

    left: FloatArray
    singular_values: FloatArray
    right: FloatArray
    mean: FloatArray | None

    def leading(self, rank: int) -> "GeneralisedSVD":
        """Return the first so many triples."""
        return self._replace(
            left=self.left[:, :rank],
            singular_values=self.singular_values[:rank],
            right=self.right[:, :rank],
        )


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
) -> GeneralisedSVD:
    """Find the `rank` leading generalized singular triples of ``Y - 1 mean'``.

    Alternates U = (Y - 1 mean') B V and V = (Y - 1 mean')' A U, made orthonormal in the inner
    products of A and of B, until the leading singular values settle.

    Parameters
    ----------
    engine : Engine
        Holds Y.
    row_noise, col_noise : AxisPrecision
        Metrics A and B.
    mean : array of shape (p,), optional
        Row to subtract.
    start : array of shape (p, any), optional
        Loadings to start from; filled up with random columns.
    """
    n, p = engine.shape
    if rank == 0:
        return GeneralisedSVD(np.zeros((n, 0)), np.zeros(0), np.zeros((p, 0)), mean)
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
        right, weighted_right = (
            right @ (rotation / singular),
            weighted_right @ (rotation / singular),
        )
        leading = singular[:rank]
        settled = previous is not None and np.max(np.abs(leading - previous) / leading) < tol
        if settled or step == max_iter - 1:
            break
        previous = leading
        left = np.empty((0, width))  # the next one needs its room
    return GeneralisedSVD(thin.product(left, rotation[:, :rank]), leading, right[:, :rank], mean)


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
