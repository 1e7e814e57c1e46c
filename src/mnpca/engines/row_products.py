"""Products of rows in memory, some of them at a time."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines import _kernels
from mnpca.engines.threads import slices

#: Rows of the matrix that one pass holds as a temporary.
BLOCK = 1024


def long_sums(rows: FloatArray, left: FloatArray) -> FloatArray:
    """Return ``rows' left``: float32 sums over `BLOCK` rows each, added up in float64."""
    total = np.zeros((rows.shape[1], *left.shape[1:]))
    for part in slices(len(rows), BLOCK):
        total += rows[part].T @ left[part]
    return total


def filter_rows(rows: FloatArray, precision: FloatArray | sp.csr_array) -> FloatArray:
    """Return ``rows @ precision``."""
    if not sp.issparse(precision):
        return rows * precision.astype(rows.dtype)
    data = precision.data.astype(rows.dtype)
    filtered: FloatArray = _kernels.times_sparse(rows, precision.indptr, precision.indices, data)
    return filtered
