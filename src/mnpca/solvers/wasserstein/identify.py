"""From a pair of precisions in the objective's scale to a fit in the model's."""

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.model.gauge import normalise_gauge
from mnpca.model.gpca import CentredMatrix, Gpca, gpca
from mnpca.model.metric import Metric
from mnpca.solvers.wasserstein.pair import Pair


class Identified(NamedTuple):
    """The signal by generalised PCA, and the precisions it is orthonormal in."""

    signal: Gpca
    precision: Pair[sp.csr_array]


def identify(data: FloatArray, rank: int, precision: Pair[sp.csr_array]) -> Identified:
    """Return the signal that the precisions imply, with the precisions in the model's scale.

    The objective shrinks the precisions, and asks of the whitened residual a spectrum that white
    noise does not have; neither changes the signal. B is multiplied by the number that maximises
    the likelihood, which gives the whitened residual mean square one, in the gauge logdet A = 0.
    """
    row, col = normalise_gauge(*precision)
    n, p = data.shape
    signal = gpca(CentredMatrix(data), rank, Metric(n, row), Metric(p, col))
    total = float(np.vdot(row @ data, data @ col))
    left_over = total - float(np.sum(signal.singular_values**2))
    if left_over <= 1e-12 * total:  # no noise, so no scale of it
        left_over = float(n * p)
    root = math.sqrt(left_over / (n * p))
    scaled = signal._replace(
        right=signal.right * root, singular_values=signal.singular_values / root
    )
    return Identified(scaled, Pair(row, sp.csr_array(col / root**2)))
