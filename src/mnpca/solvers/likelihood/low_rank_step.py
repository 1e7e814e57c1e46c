"""The low-rank step: scores and loadings given both noise precisions."""

from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import Array, inner, is_foreign_array, like, namespace, to_numpy
from mnpca.model.gpca import gpca
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric

LowRankStep: TypeAlias = Literal["als", "closed"]


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
    """Update loadings and scores in turn, from the given scores, until the fit no longer gains.

    ``W = Y'A X (X'AX + ridge I)^-1``, then ``X = Y B W (W'BW + ridge I)^-1``. It ends on an X step,
    so that without a ridge the scores of the training rows are the projection of these rows. With a
    ridge the factors are balanced (``X'AX = W'BW``) after every iteration: that lowers the ridge
    for the same product, and alternation alone would be very slow to find it.
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
        trace = float(namespace(gram).linalg.trace(gram))
        gained = inner(scores, row_precision @ projected) - ridge * trace
        if ridge:
            scores, loadings = _balance(scores, loadings, row_precision, col_precision)
        if gained - gain <= tol * abs(gained):
            break
        gain = gained
    return LowRank(scores, loadings)


def closed_form(
    data: Any,
    rank: int,
    row_precision: Any = None,
    col_precision: Any = None,
    ridge: float = 0.0,
) -> LowRank:
    """Minimize over X and W at once by generalized PCA; None stands for the identity.

    With d the generalized singular values, the ridge lowers each by `ridge` (never below 0): it is
    twice the nuclear norm of the whitened signal, written on its balanced factors. These live where
    the data do.
    """
    n, p = data.shape
    parts = gpca(data, rank, Metric(n, row_precision), Metric(p, col_precision))
    root = np.sqrt(np.maximum(parts.singular_values - ridge, 0.0))
    factors = parts.left * root, parts.right * root
    if is_foreign_array(data):
        factors = like(factors[0], data), like(factors[1], data)
    return LowRank(*factors)


def _balance(scores: Array, loadings: Array, row_precision: Any, col_precision: Any) -> LowRank:
    """Return the factors of the same product for which tr(X'AX) + tr(W'BW) is smallest.

    Through the k x k Gram matrices ``X'AX`` and ``W'BW``, wherever the long factors live.
    """
    left, right = (
        _roots(to_numpy(factor.T @ (precision @ factor)))
        for factor, precision in ((scores, row_precision), (loadings, col_precision))
    )
    u, values, vt = np.linalg.svd(left[0] @ right[0].T)
    root = np.sqrt(values)
    return LowRank(
        scores @ like(left[1] @ (u * root), scores),
        loadings @ like(right[1] @ (vt.T * root), scores),
    )


def _roots(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the square root of a Gram matrix and its pseudo-inverse."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    root = np.sqrt(np.maximum(values, 0.0))
    seen = root > 1e-7 * root.max(initial=np.finfo(float).tiny)
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=seen)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def _ridge_regression(moments: Array, gram: Array, ridge: float) -> Array:
    """Return ``moments (gram + ridge I)^-1``, zero in directions without any weight."""
    small = to_numpy(gram)
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    values = values + ridge
    kept = values > 1e-14 * values.max(initial=np.finfo(float).tiny)
    vectors = vectors[:, kept]
    return moments @ like((vectors / values[kept]) @ vectors.T, moments)
