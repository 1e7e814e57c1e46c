"""Components that are asked for beyond the signal: what PCA would show beside it."""

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import thin
from mnpca.engines.engine import Engine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.low_rank_step import generalized_svd, noise_edge
from mnpca.solvers.mnpca.variational import GeneralizedSVD

#: Data that vary less than this along a direction, in units of the first component, end there.
NO_DIRECTION = 1e-7


def with_principal_components(
    engine: Engine, noise: NoiseModel, svd: GeneralizedSVD, seed: int
) -> GeneralizedSVD:
    """Replace components below the noise edge by principal components of what the others leave.

    Under the right noise all directions without a signal are alike. Which of them comes first
    is chance, while the data vary more along some of them than along others. So the last
    components are the leading principal components W of the data, rows weighted by their
    precision, less what the components V of the signal have of them, ``(I - V V'B) W``, and
    within their span they are generalized singular vectors again.
    """
    rank = len(svd.singular_values)
    live = int(np.sum(svd.singular_values > noise_edge(engine.shape)))
    if live == rank:
        return svd
    signal = svd.leading(live)
    row_weights = noise.row.weights if noise.row.is_diagonal else noise.row.weights.diagonal()
    rows = AxisPrecision.diagonal(row_weights)
    cols = AxisPrecision.diagonal(np.ones(engine.shape[1]))
    plain = generalized_svd(engine, rows, cols, rank, mean=svd.mean, seed=seed)
    beside = _apart(plain.right * plain.singular_values, signal, noise)
    directions, sizes, _ = np.linalg.svd(beside, full_matrices=False)
    if sizes[rank - live - 1] < NO_DIRECTION * plain.singular_values[0]:
        return svd
    beside = _apart((directions * sizes)[:, : rank - live], signal, noise)
    rest = _within(engine, noise, beside, svd.mean)
    return GeneralizedSVD(
        np.column_stack([signal.left, rest.left]),
        np.concatenate([signal.singular_values, rest.singular_values]),
        np.column_stack([signal.right, rest.right]),
        svd.mean,
    )


def _apart(directions: FloatArray, signal: GeneralizedSVD, noise: NoiseModel) -> FloatArray:
    """Return ``(I - V V'B) W`` for directions W."""
    overlap = thin.inner(signal.right, noise.col.apply(directions))
    return directions - signal.right @ overlap


def _within(
    engine: Engine, noise: NoiseModel, plane: FloatArray, mean: FloatArray | None
) -> GeneralizedSVD:
    """Return the generalized SVD of Y restricted to a plane of loadings."""
    root = np.linalg.cholesky(thin.inner(plane, noise.col.apply(plane)))
    right = np.linalg.solve(root, plane.T).T
    weighted = noise.col.apply(right)
    left = engine.times(weighted)
    if mean is not None:
        left -= mean @ weighted
    squares, rotation = np.linalg.eigh(thin.inner(left, noise.row.apply(left)))
    sizes = np.sqrt(np.maximum(squares[::-1], np.finfo(float).tiny))
    rotation = rotation[:, ::-1]
    return GeneralizedSVD(
        thin.product(left, rotation / sizes), sizes, thin.product(right, rotation), mean
    )
