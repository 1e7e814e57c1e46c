"""Generalized PCA with dense metrics, wherever the arrays live."""

import math

import numpy as np

from mnpca.engines.arrays import Array, cholesky, logdet, namespace, to_numpy
from mnpca.model.gpca import Gpca
from mnpca.model.low_rank import fix_signs


def dense_gpca(
    data: Array, rank: int, row_precision: Array, col_precision: Array
) -> tuple[Gpca, float, float]:
    """Return generalized PCA in the gauge logdet A = 0, with what it leaves and the gauge.

    With A = La La' and B = Lb Lb' it is the SVD of ``La' Y Lb``; the sum of squares of the other
    singular values is what the signal leaves.

    Returns
    -------
    signal : Gpca
        In the host's memory, for ``A / t`` and ``t B``.
    left_over : float
        Weighted sum of squares of the residual (np where it is zero but for rounding).
    t : float
        The gauge.
    """
    xp = namespace(data)
    row, col = cholesky(row_precision), cholesky(col_precision)
    if row is None or col is None:
        raise np.linalg.LinAlgError("a noise precision is not positive definite")
    scale = math.exp(logdet(row) / row.shape[0])
    u, values, vt = xp.linalg.svd(row.T @ data @ col, full_matrices=False)
    left = to_numpy(xp.linalg.solve(row.T, u[:, :rank])) * math.sqrt(scale)
    right = to_numpy(xp.linalg.solve(col.T, vt[:rank, :].T)) / math.sqrt(scale)
    squares = to_numpy(values).astype(np.float64) ** 2
    left_over = float(squares[rank:].sum())
    if left_over <= 1e-12 * squares.sum():
        left_over = float(data.shape[0] * data.shape[1])
    signed = fix_signs(left, right)
    return Gpca(signed.left, np.sqrt(squares[:rank]), signed.right), left_over, scale
