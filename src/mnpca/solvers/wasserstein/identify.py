"""From a pair of precisions in the objective's scale to a fit in the model's."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import Array, to_numpy
from mnpca.model.dense_gpca import dense_gpca
from mnpca.model.gauge import normalize_gauge
from mnpca.model.gpca import CenteredMatrix, Gpca, gpca
from mnpca.model.metric import Metric
from mnpca.solvers.wasserstein.pair import Pair, each


class Identified(NamedTuple):
    """The signal by generalized PCA, and the precisions it is orthonormal in."""

    signal: Gpca
    precision: Pair[sp.csr_array]


def identify(data: Array, rank: int, precision: Pair[Any]) -> Identified:
    """Return the signal that the precisions imply, with the precisions in the model's scale.

    The objective shrinks the precisions, and asks of the whitened residual a spectrum that white
    noise does not have; neither changes the signal. B is multiplied by the number that maximizes
    the likelihood, which gives the whitened residual mean square one, in the gauge logdet A = 0.
    The outcome is thin or sparse and lives in the host's memory, wherever the data do.
    """
    if sp.issparse(precision.row):
        pair = Pair(*normalize_gauge(*precision))
        signal, left_over = _signal(data, rank, pair)
    else:
        signal, left_over, scale = dense_gpca(data, rank, *precision)
        pair = each(
            lambda side, times: sp.csr_array(to_numpy(side) * times),
            precision,
            Pair(1.0 / scale, scale),
        )
    root = math.sqrt(left_over / (data.shape[0] * data.shape[1]))
    scaled = signal._replace(
        right=signal.right * root, singular_values=signal.singular_values / root
    )
    return Identified(scaled, Pair(pair.row, sp.csr_array(pair.col / root**2)))


def _signal(data: FloatArray, rank: int, precision: Pair[sp.csr_array]) -> tuple[Gpca, float]:
    """Return the signal and the weighted sum of squares that it leaves."""
    n, p = data.shape
    signal = gpca(CenteredMatrix(data), rank, Metric(n, precision.row), Metric(p, precision.col))
    total = float(np.vdot(precision.row @ data, data @ precision.col))
    left_over = total - float(np.sum(signal.singular_values**2))
    # Where there is no noise there is no scale of it.
    return signal, left_over if left_over > 1e-12 * total else float(n * p)
