"""The low-rank step: scores and loadings given both noise precisions."""

from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.model.gpca import CentredMatrix, gpca, identify
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric

LowRankStep: TypeAlias = Literal["als", "closed"]

# Above this size products are cheaper than factors and a full decomposition.
DENSE_LIMIT = 500


def alternate_least_squares(
    data: FloatArray,
    signal: LowRank,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    ridge: float,
    *,
    tol: float = 1e-7,
    max_iter: int = 500,
) -> LowRank:
    """Update loadings and scores in turn until the fit no longer gains.

    ``W = Y'A X (X'AX + ridge I)^-1``, then ``X = Y B W (W'BW + ridge I)^-1``. It ends on an X step,
    so that without a ridge the scores of the training rows are the projection of these rows. With
    a ridge the factors are balanced (``X'AX = W'BW``) after every iteration: that lowers the ridge
    for the same product, and alternation alone would be very slow to find it.

    Parameters
    ----------
    data : array of shape (n, p)
        Y.
    signal : LowRank
        X and W to start from; only X is read.
    row_precision, col_precision : sparse arrays
        A and B.
    ridge : float
        Weight of ``tr(X'AX) + tr(W'BW)``.
    tol : float, default=1e-7
        Relative gain of an iteration at which to stop.
    max_iter : int, default=500
        Largest number of iterations.
    """
    scores = signal.left
    gain = -np.inf
    for _ in range(max_iter):
        weighted = row_precision @ scores
        loadings = _ridge_regression(data.T @ weighted, scores.T @ weighted, ridge)
        weighted = col_precision @ loadings
        projected, gram = data @ weighted, loadings.T @ weighted
        scores = _ridge_regression(projected, gram, ridge)
        # At the best X the quadratic form has fallen by tr(X'A Y B W) less the ridge on W.
        gained = float(np.vdot(scores, row_precision @ projected)) - ridge * float(np.trace(gram))
        if ridge:
            scores, loadings = _balance(scores, loadings, row_precision, col_precision)
        if gained - gain <= tol * abs(gained):
            break
        gain = gained
    return LowRank(scores, loadings)


def closed_form(
    data: FloatArray,
    rank: int,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    ridge: float,
) -> LowRank:
    """Minimise over X and W at once by generalised PCA.

    With d the generalised singular values, the ridge lowers each by `ridge` (never below 0): it is
    twice the nuclear norm of the whitened signal, written on its balanced factors.
    """
    metrics = (Metric(data.shape[0], row_precision), Metric(data.shape[1], col_precision))
    solver: Literal["factor", "krylov"] = "factor" if min(data.shape) <= DENSE_LIMIT else "krylov"
    parts = gpca(CentredMatrix(data), rank, *metrics, solver=solver)
    root = np.sqrt(np.maximum(parts.singular_values - ridge, 0.0))
    return LowRank(parts.left * root, parts.right * root)


def _balance(
    scores: FloatArray,
    loadings: FloatArray,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
) -> LowRank:
    """Return the factors of the same product for which tr(X'AX) + tr(W'BW) is smallest."""
    metrics = (Metric(len(scores), row_precision), Metric(len(loadings), col_precision))
    parts = identify(scores, loadings, *metrics)
    root = np.sqrt(parts.singular_values)
    return LowRank(parts.left * root, parts.right * root)


def _ridge_regression(moments: FloatArray, gram: FloatArray, ridge: float) -> FloatArray:
    """Return ``moments (gram + ridge I)^-1``, zero in directions without any weight."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values = values + ridge
    kept = values > 1e-14 * values.max(initial=np.finfo(float).tiny)
    vectors = vectors[:, kept]
    solution: FloatArray = (moments @ (vectors / values[kept])) @ vectors.T
    return solution
