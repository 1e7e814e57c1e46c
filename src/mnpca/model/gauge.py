"""The scale that the two precisions share: (t A, B / t) has the same likelihood for every t."""

import math

import scipy.sparse as sp

from mnpca.model.sparse import logdet


def normalize_gauge(
    row_precision: sp.csr_array, col_precision: sp.csr_array
) -> tuple[sp.csr_array, sp.csr_array]:
    """Scale the pair so that ``logdet A = 0``, the gauge in which fits are reported."""
    scale = math.exp(logdet(row_precision) / row_precision.shape[0])
    return sp.csr_array(row_precision / scale), sp.csr_array(col_precision * scale)
