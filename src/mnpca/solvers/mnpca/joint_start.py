"""A start of the search that looks for signal and network at once, by convex optimization."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.engines.gram import as_array
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.variational import Posterior

#: Steps at most, and the change of an entry at which they end. A start needs no more digits.
STEPS, TOLERANCE = 300, 1e-3


def joint_start(engine: Engine, noise: NoiseModel, posterior: Posterior) -> tuple[NoiseModel, int]:
    """Split the covariance of the shorter axis into a network and a signal.

    With white noise along the other axis, items have the covariance ``inv(B) + W G W'``, and so the
    precision ``B - L``, L of low rank: the latent variable graphical lasso (Chandrasekaran,
    Parrilo and Willsky 2012) finds both from one matrix. `noise` gives the variances along the
    other axis, `posterior` the mean row. Returned are the noise with the network of the shorter
    axis, and the rank of L.
    """
    n, p = engine.shape
    cols = p <= n
    # The column of the mean, if there is one.
    left, right = posterior.left[:, posterior.rank :], posterior.right[:, posterior.rank :]
    nothing = np.zeros((right.shape[1], right.shape[1]))
    if cols:
        gram = engine.col_gram(left, right, noise.row.weights, right, nothing)
    else:
        gram = engine.row_gram(left, right, noise.col.weights, left, nothing)
    size, m = min(n, p), max(n, p)
    covariance = as_array(gram) / m
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-12 * np.trace(covariance) / size))
    network, rank = sparse_and_low_rank(
        covariance / scale / scale[:, None], np.sqrt(np.log(size) / m), np.sqrt(size / m)
    )
    side = AxisPrecision.from_precision(sp.csr_array(network / scale / scale[:, None]))
    return NoiseModel(noise.row, side) if cols else NoiseModel(side, noise.col), rank


def sparse_and_low_rank(
    correlation: FloatArray, sparse_penalty: float, trace_penalty: float
) -> tuple[FloatArray, int]:
    """Return S and the rank of L that minimize, with R = S - L definite and L semidefinite,

        ``-logdet R + tr(C R) + a sum_(i != j) |S_ij| + b tr L``.

    Alternating directions on the constraint R = S - L, with a gradient step for S and L together
    (Ma, Xue and Zou 2013).
    """  # noqa: D400
    size = len(correlation)
    sparse: FloatArray = np.eye(size)
    low_rank: FloatArray = np.zeros((size, size))
    dual: FloatArray = np.zeros((size, size))
    off_diagonal = 1.0 - np.eye(size)
    for _ in range(STEPS):
        values, vectors = np.linalg.eigh(sparse - low_rank - dual - correlation)
        both = (vectors * ((values + np.sqrt(values**2 + 4.0)) / 2.0)) @ vectors.T
        step = (both + dual - sparse + low_rank) / 2.0
        before = sparse, low_rank
        moved = sparse + step
        shrunk = np.maximum(np.abs(moved) - sparse_penalty / 2.0 * off_diagonal, 0.0)
        sparse = np.sign(moved) * shrunk
        values, vectors = np.linalg.eigh(low_rank - step)
        values = np.maximum(values - trace_penalty / 2.0, 0.0)
        low_rank = (vectors * values) @ vectors.T
        dual += both - sparse + low_rank
        change = max(np.abs(sparse - before[0]).max(), np.abs(low_rank - before[1]).max())
        if change < TOLERANCE:
            break
    return sparse, int(np.sum(values > 0.0))
