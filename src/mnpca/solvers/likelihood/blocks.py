"""The blocks of the likelihood algorithm: each lowers the same objective."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import Array, inner, is_foreign_array, like, namespace, to_numpy
from mnpca.model.gpca import gpca
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric
from mnpca.model.objective import Penalty, absolute_sum, best_gauge, misfit, objective
from mnpca.model.sparse import logdet, side_by_side, tile
from mnpca.model.sparse_data import SparseMinusLowRank, col_gram, row_gram
from mnpca.precision import NotCertifiedError, PrecisionResult, sparse_precision

LowRankStep: TypeAlias = Literal["als", "closed"]
Shares: TypeAlias = dict[str, FloatArray]

# A row or column with a smaller share of its squares left in the residual is fitted exactly. On the
# way to zero, rounding errors stop alternating least squares at about 1e-13.
EXACT = 1e-10
# From here on a share that goes to its square, twice, counts as well.
NEARLY_EXACT = 1e-3
REMEDIES = "Use penalize_diagonal=True, larger penalties or fewer components"


@dataclass(frozen=True, eq=False)
class Iterate:
    """Where a descent stands: X and W, not yet identified, and A and B in the penalties' gauge.

    `row_start` and `col_start` are what warm starts need. `history` has the objective at the start
    and after every iteration; it never rises.
    """

    signal: LowRank
    row_precision: sp.csr_array
    col_precision: sp.csr_array
    row_start: PrecisionResult | None = None
    col_start: PrecisionResult | None = None
    history: tuple[float, ...] = ()
    converged: bool = False

    def value(self, data: FloatArray, penalty: Penalty) -> float:
        """Return the objective."""
        return objective(data, self.signal, self.row_precision, self.col_precision, penalty)


def row_step(data: FloatArray, iterate: Iterate, penalty: Penalty, *, tol: float) -> Iterate:
    """Minimize over the row precision: a sparse precision of ``S1 = (R B R' + ridge X X')/p``.

    With several matrices S1 is the mean over them.
    """
    if not penalty.row_on:
        return iterate
    n, p = iterate.row_precision.shape[0], data.shape[1]
    covariance = row_gram(data, iterate.signal, iterate.col_precision, n)
    if penalty.ridge:
        scores = side_by_side(iterate.signal.left, n)
        covariance += penalty.ridge * scores @ scores.T
    covariance /= data.shape[0] // n * p
    if penalty.scale_free and penalty.col_on:
        covariance /= math.exp(logdet(iterate.col_precision) / p)
    hold_scale = penalty.col_on and not penalty.determines_scale
    block = _Block(covariance, penalty.row, penalty.diagonal)
    precision, result = block.lower(iterate.row_precision, iterate.row_start, tol, hold_scale)
    return replace(iterate, row_precision=precision, row_start=result)


def col_step(data: FloatArray, iterate: Iterate, penalty: Penalty, *, tol: float) -> Iterate:
    """Minimize over the column precision, with ``S2 = (R'AR + ridge W W')/n``.

    Where penalties are scale-free, ``B = b B0`` with ``logdet B0 = 0``: B0 as in `row_step`, then
    ``1/b = tr(B0 S2)/p + alpha_col |B0|_1 / p + alpha_row |A|_1 / n``, the noise variance.
    """
    if not penalty.col_on:
        return iterate
    n, p = data.shape
    covariance = col_gram(data, iterate.signal, tile(iterate.row_precision, n))
    if penalty.ridge:
        covariance += penalty.ridge * iterate.signal.right @ iterate.signal.right.T
    covariance /= n
    precision = iterate.col_precision
    hold_scale = penalty.scale_free and penalty.row_on
    if hold_scale:
        precision = precision / math.exp(logdet(precision) / p)
    block = _Block(covariance, penalty.col, penalty.diagonal)
    precision, result = block.lower(precision, iterate.col_start, tol, hold_scale)
    if hold_scale:
        row = iterate.row_precision
        row_size = absolute_sum(row, penalty.row, penalty.diagonal) / row.shape[0]
        precision = precision / (block.penalized_trace(precision) / p + row_size)
    return replace(iterate, col_precision=precision, col_start=result)


def gauge_step(data: FloatArray, iterate: Iterate, penalty: Penalty) -> Iterate:
    """Move the common scale of the two precisions to where the penalties are lowest."""
    if not (penalty.row_on and penalty.col_on and penalty.determines_scale):
        return iterate
    scale = best_gauge(
        data.shape, iterate.signal, iterate.row_precision, iterate.col_precision, penalty
    )
    return replace(
        iterate,
        row_precision=iterate.row_precision * scale,
        col_precision=iterate.col_precision / scale,
    )


def signal_step(
    data: FloatArray, iterate: Iterate, penalty: Penalty, low_rank_step: LowRankStep
) -> Iterate:
    """Minimize over scores and loadings; near a perfect fit rounding may prevent it."""
    all_rows = tile(iterate.row_precision, data.shape[0])
    precisions = (all_rows, iterate.col_precision, penalty.ridge)
    if low_rank_step == "closed":
        signal = closed_form(data, iterate.signal.left.shape[1], *precisions)
    else:
        signal = alternate_least_squares(data, iterate.signal, *precisions)
    if misfit(data, signal, *precisions) > misfit(data, iterate.signal, *precisions):
        return iterate
    return replace(iterate, signal=signal)


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


def exact_shares(data: FloatArray, iterate: Iterate, penalty: Penalty) -> Shares:
    """Return the share of its squares that the signal leaves of every row and column.

    Empty where nothing can grow without end: the diagonal has its penalty, or data are sparse and
    their residual is never formed.
    """
    if penalty.diagonal or isinstance(data, SparseMinusLowRank):
        return {}
    residual = data - iterate.signal.dense()
    shares = {}
    for name, axis, on in (("row", 1, penalty.row_on), ("column", 0, penalty.col_on)):
        if on:
            left, total = (to_numpy((x * x).sum(axis=axis)) for x in (residual, data))
            shares[name] = left / np.maximum(total, np.finfo(float).tiny)
    return shares


def check_bounded(shares: Sequence[Shares]) -> None:
    """Raise an error where the likelihood has no bound; `shares` are those of the last iterates.

    Without a penalty on the diagonal, the precision of a row or column that the signal fits exactly
    grows without end. On the way there its share s of squares left goes to about s^2 in an
    iteration, because its weight is 1 / s: that is seen long before the end, which the solver of
    ever worse conditioned precisions may not reach. A signal that is merely strong keeps its share.
    """
    for name, share in shares[-1].items():
        exact = share < EXACT
        if len(shares) == 3:
            before, start = shares[1][name], shares[0][name]
            exact |= (share < NEARLY_EXACT) & (share < before**1.5) & (before < start**1.5)
        if exact.any():
            raise NotCertifiedError(
                f"The likelihood has no bound: the components fit {name} {np.argmax(exact)} "
                f"exactly, so that its noise precision grows without end. {REMEDIES}."
            )


@dataclass(frozen=True, eq=False)
class _Block:
    """Minimize ``tr(S P) - logdet P + sum_ij weight_ij |P_ij|`` over a precision P."""

    covariance: FloatArray
    weight: float | FloatArray
    diagonal: bool

    def lower(
        self, precision: Any, start: PrecisionResult | None, tol: float, hold_scale: bool
    ) -> tuple[Any, PrecisionResult | None]:
        """Return the minimum, or the present precision if rounding leaves that no lower.

        With `hold_scale` both have log-determinant 0: by the method of Lagrange the minimum over
        such precisions is a multiple of the free minimum.
        """
        # Rounding errors of a product are as large as its largest rows make them.
        symmetric = replace(self, covariance=(self.covariance + self.covariance.T) / 2)
        try:
            result = sparse_precision(
                symmetric.covariance,
                self.weight,
                penalize_diagonal=self.diagonal,
                tol=tol,
                init=start,
            )
        except ValueError as error:  # no solution, or none that can be certified
            raise NotCertifiedError(
                "The fit ran into a noise precision without a certified solution; some rows or "
                f"columns may be fitted exactly. {REMEDIES}, or a larger tol."
            ) from error
        found = result.precision
        if hold_scale:
            found = found * math.exp(-logdet(found) / found.shape[0])
            gain = symmetric.penalized_trace(precision) - symmetric.penalized_trace(found)
        else:
            gain = symmetric.penalized_trace(precision) - logdet(precision) - result.objective
        return (precision, start) if gain < 0 else (found, result)

    def penalized_trace(self, precision: Any) -> float:
        """Return ``tr(S P) + sum_ij weight_ij |P_ij|``."""
        if sp.issparse(precision):
            trace = float(precision.multiply(self.covariance).sum())
        else:
            trace = inner(self.covariance, precision)
        return trace + absolute_sum(precision, self.weight, self.diagonal)


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
