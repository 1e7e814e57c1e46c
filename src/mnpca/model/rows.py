"""Rows, seen or unseen, complete or not: scores, likelihood, and predictions of missing cells.

A row is ``y = mean + W x + e`` with x ~ N(0, C) and e ~ N(0, s2 inv B), or, where rows differ in
scale, that times the root of an inverse gamma variable: a multivariate t distribution. Functions
take rows with the mean taken off. The observed cells o of a row have the marginal precision
``B_o = B_oo - B_om B_mm^-1 B_mo`` (the Schur complement), and its missing cells m given them the
mean ``-B_mm^-1 B_mo e_o`` and the precision B_mm.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import splu

from mnpca._typing import BoolArray, FloatArray, IntArray, Precision
from mnpca.model.sparse import logdet

#: Rows that are made dense together.
ROWS_AT_ONCE = 1024
#: Degrees of freedom of a t distribution of rows: with fewer the covariance hardly exists, with
#: more it is a normal one.
FEWEST_DEGREES, MOST_DEGREES = 2.5, 200.0
#: EM steps for the scales of rows, at most, and the change of the noise variance that ends them.
SCALE_STEPS, SCALE_TOLERANCE = 50, 1e-4


class RowModel(NamedTuple):
    """The distribution of a row: ``W x + e``, x ~ N(0, C), e ~ N(0, s2 inv B).

    With finite degrees of freedom v the row is multiplied by ``sqrt(v / u)``, u chi-square with v
    degrees: a multivariate t distribution with the scatter ``W C W' + s2 inv B``. B may also be
    anything that multiplies like a matrix, for scores and their variances.
    """

    col_precision: Precision
    loadings: FloatArray
    score_covariance: FloatArray
    noise_variance: float
    degrees_of_freedom: float = math.inf

    @property
    def inflation(self) -> float:
        """Return covariance over scatter, ``v / (v - 2)``."""
        v = self.degrees_of_freedom
        return 1.0 if math.isinf(v) else v / (v - 2.0)

    def covariance(self) -> FloatArray:
        """Return ``W C W' + s2 inv(B)``, times `inflation`, a dense matrix."""
        W = self.loadings
        noise = np.linalg.inv(_dense(self.col_precision))
        scatter = W @ self.score_covariance @ W.T + self.noise_variance * noise
        return np.asarray(self.inflation * scatter)

    def precision(self) -> FloatArray:
        """Return the inverse of `covariance`, by Woodbury's identity."""
        noise = _dense(self.col_precision) / self.noise_variance
        weighted = noise @ self.loadings
        C = self.score_covariance
        inner = np.eye(len(C)) + C @ (self.loadings.T @ weighted)
        precision = noise - weighted @ np.linalg.solve(inner, C @ weighted.T)
        return np.asarray(precision / self.inflation)

    def score_variances(self) -> FloatArray:
        """Return the variances of generalized least squares scores, ``diag(C + s2 (W'BW)^-1)``."""
        gram = self.loadings.T @ (self.col_precision @ self.loadings)
        noise = self.noise_variance * np.diag(_pinv(gram))
        return np.asarray(self.inflation * (np.diag(self.score_covariance) + noise))

    def total_variance(self) -> float:
        """Return the expected squared length ``y'By`` of a row, ``tr(C W'BW) + s2 p``."""
        gram = self.loadings.T @ (self.col_precision @ self.loadings)
        signal = float(np.sum(self.score_covariance * gram))
        noise = self.noise_variance * float(self.col_precision.shape[0])
        return self.inflation * (signal + noise)

    def with_covariates(self, covariates: FloatArray, effects: FloatArray) -> "RowModel":
        """Return the model with column covariates (p x s) as further loadings.

        Their scores vary as the effects (n x s) of the training rows do.
        """
        moments = effects.T @ effects / len(effects)
        return self._replace(
            loadings=np.column_stack([self.loadings, covariates]),
            score_covariance=scipy.linalg.block_diag(self.score_covariance, moments),
        )


def squared_length(rows: Any, mean: FloatArray, precision: Precision) -> float:
    """Return ``tr(R B R')`` with R the rows less their mean, a batch of rows at a time."""
    total = 0.0
    for start in range(0, rows.shape[0], ROWS_AT_ONCE):
        batch = _dense(rows[start : start + ROWS_AT_ONCE]) - mean
        total += float(np.vdot(batch.T, precision @ batch.T))
    return total


def fit_row_model(
    scores: FloatArray,
    squared_length: float,
    n_free: int,
    col_precision: Precision,
    loadings: FloatArray,
) -> RowModel:
    """Estimate the distribution of an unseen row from the scores of the n training rows.

    These have covariance ``C + s2 (W'BW)^-1``; the noise variance s2 is the mean square, in the
    metric B, of what the scores leave of `squared_length`, ``tr(Y B Y')`` with the mean taken off.
    `n_free` is n, less one where a mean was estimated.
    """
    n, p = len(scores), col_precision.shape[0]
    gram = loadings.T @ (col_precision @ loadings)
    explained = float(np.sum((scores @ gram) * scores))
    floor = _smallest_variance(squared_length, n * p)
    left_over = max(n_free * (p - loadings.shape[1]), 1)
    noise_variance = max((squared_length - explained) / left_over, floor)
    covariance = scores.T @ scores / max(n_free, 1) - noise_variance * _pinv(gram)
    return RowModel(col_precision, loadings, _semidefinite(covariance), noise_variance)


def _smallest_variance(squared_length: float, n_entries: int) -> float:
    """Return the noise variance that rounding leaves where there is no noise."""
    smallest = np.finfo(float)
    return float(smallest.eps * max(squared_length, smallest.tiny) / max(n_entries, 1))


def with_row_scales(model: RowModel, rows: FloatArray) -> RowModel:
    """Let rows differ in scale if that makes the given ones (mean taken off) likelier.

    Maximum likelihood of the multivariate t distribution by EM: a row at the distance Q_i weighs
    ``(v + p) / (v + Q_i)``. The normal distribution stays unless the gain is more than the
    ``log(n) / 2`` that one more parameter costs.
    """
    n, p = rows.shape
    weighted = model.col_precision @ model.loadings
    gram = model.loadings.T @ weighted
    projected = rows @ weighted
    lengths = np.einsum("ij,ij->i", rows @ model.col_precision, rows)
    scores = projected @ _pinv(gram)
    left_over = lengths - np.einsum("ij,ij->i", scores @ gram, scores)

    def likelihood(model: RowModel) -> float:
        distances, log_volume = _distances(lengths, projected, gram, p, model)
        return float(np.sum(_log_density(distances, log_volume, p, model.degrees_of_freedom)))

    best, floor = model, _smallest_variance(float(lengths.sum()), n * p)
    for _ in range(SCALE_STEPS):
        distances, _ = _distances(lengths, projected, gram, p, best)
        v = _degrees_of_freedom(distances, p)
        weights = (v + p) / (v + distances)
        noise_variance = float(weights @ left_over) / (n * max(p - len(gram), 1))
        covariance = (scores.T * weights) @ scores / n - noise_variance * _pinv(gram)
        moved = best._replace(
            score_covariance=_semidefinite(covariance),
            noise_variance=max(noise_variance, floor),
            degrees_of_freedom=v,
        )
        settled = abs(moved.noise_variance / best.noise_variance - 1.0) < SCALE_TOLERANCE
        best = moved
        if settled:
            break
    return best if likelihood(best) - likelihood(model) > 0.5 * math.log(n) else model


def _degrees_of_freedom(distances: FloatArray, p: int) -> float:
    """Return the degrees of freedom that make rows at these distances likeliest."""

    def loss(log_v: float) -> float:
        return -float(np.sum(_log_density(distances, 0.0, p, math.exp(log_v))))

    bounds = (math.log(FEWEST_DEGREES), math.log(MOST_DEGREES))
    return math.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x)


def gls_scores(
    rows: Any,
    col_precision: sp.csr_array | FloatArray,
    loadings: FloatArray,
    mean: FloatArray | None = None,
) -> FloatArray:
    """Return ``X = (Y - 1 mean') B W (W'BW)^-1``; a sparse Y stays sparse.

    It minimizes ``tr((Y - 1 mean' - XW') B (Y - 1 mean' - XW')')``; the row precision does not
    enter, so the same formula serves unseen rows. Components without any loading have scores 0.
    """
    weights = gls_weights(col_precision, loadings)
    if mean is None:
        scores: FloatArray = rows @ weights
    elif sp.issparse(rows):
        scores = rows @ weights - mean @ weights
    else:  # the difference of the products would cancel where the mean is large
        scores = (rows - mean) @ weights
    return scores


def gls_weights(col_precision: sp.csr_array | FloatArray, loadings: FloatArray) -> FloatArray:
    """Return ``T = B W (W'BW)^-1``, so that the scores of centered rows are ``Y T``."""
    weighted = col_precision @ loadings
    weights: FloatArray = weighted @ _pinv(loadings.T @ weighted)
    return weights


def row_log_likelihood(rows: FloatArray, model: RowModel) -> FloatArray:
    """Log-density of each centered row under the scatter ``Sigma = W C W' + s2 inv(B)``.

    A row outside the training matrix is independent of the training rows; its scores have the
    covariance C that the training scores showed, its noise the average row variance s2. With
    identity B and no scales of rows this is the probabilistic PCA likelihood. By Woodbury, with
    C = F F' and the eigenvalues g and eigenvectors Q of F'W'BWF / s2,

        Sigma^-1 = (B - B W F Q diag(1 / (1 + g)) Q' F' W' B / s2) / s2,
        logdet Sigma = p log s2 - logdet B + sum log(1 + g),

    which stays accurate where components stand far above the noise. NaN marks missing cells: the
    density is that of the observed ones, with B_o in the place of B.
    """
    precision = model.col_precision
    log_determinant = logdet(precision)
    densities = np.empty(len(rows))
    for members, pattern in _patterns(np.isnan(rows), precision):
        given = rows if len(members) == len(rows) else rows[members]
        distances, log_volume = pattern.distances(given, model)
        log_volume -= log_determinant - pattern.log_determinant()
        densities[members] = _log_density(
            distances, log_volume, len(pattern.observed), model.degrees_of_freedom
        )
    return densities


def _distances(
    lengths: FloatArray,
    projected: FloatArray,
    gram: FloatArray,
    n_cells: int,
    model: RowModel,
) -> tuple[FloatArray, float]:
    """Return ``y' Sigma^-1 y`` of each row, and ``logdet Sigma + logdet B``."""
    values, vectors = np.linalg.eigh(model.score_covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    s2 = model.noise_variance
    gains, rotation = np.linalg.eigh(root.T @ gram @ root / s2)
    gains = np.maximum(gains, 0.0)
    explained = (projected @ (root @ rotation)) ** 2 @ (1.0 / (1.0 + gains)) / s2
    log_volume = n_cells * math.log(s2) + float(np.log1p(gains).sum())
    return (lengths - explained) / s2, log_volume


def _log_density(distances: FloatArray, log_volume: float, p: int, v: float) -> FloatArray:
    """Return the log-density of a normal or t distribution with v degrees of freedom."""
    if math.isinf(v):
        return np.asarray(-0.5 * (distances + log_volume + p * math.log(2 * math.pi)))
    constant = math.lgamma((v + p) / 2) - math.lgamma(v / 2) - 0.5 * p * math.log(v * math.pi)
    tail = 0.5 * (v + p) * np.log1p(np.maximum(distances, 0.0) / v)
    return np.asarray(constant - 0.5 * log_volume - tail)


class _Pattern:
    """The marginal precision of one set of observed columns."""

    def __init__(self, precision: Precision, missing: BoolArray) -> None:
        self.missing = np.flatnonzero(missing)
        self.observed = np.flatnonzero(~missing)
        rows = precision[self.observed]
        self._seen = rows[:, self.observed]
        self._across = rows[:, self.missing]
        block = precision[self.missing][:, self.missing]
        self._factor = None
        self._diagonal: FloatArray = block.diagonal()
        if block.nnz > len(self.missing):
            self._factor = splu(sp.csc_array(block), permc_spec="MMD_AT_PLUS_A")

    def solve(self, thin: FloatArray) -> FloatArray:
        """Return ``B_mm^-1 Z``."""
        if self._factor is None:
            return np.asarray(thin / self._diagonal[:, None])
        return np.asarray(self._factor.solve(np.ascontiguousarray(thin)))

    def regression(self, thin: FloatArray) -> FloatArray:
        """Return ``-B_mm^-1 B_mo Z``, what the observed cells Z say about the missing ones."""
        return -self.solve(np.asarray(self._across.T @ thin))

    def times(self, thin: FloatArray) -> FloatArray:
        """Return ``B_o Z``."""
        if not len(self.missing):
            return np.asarray(self._seen @ thin)
        return np.asarray(self._seen @ thin + self._across @ self.regression(thin))

    def distances(self, rows: FloatArray, model: RowModel) -> tuple[FloatArray, float]:
        """Return `_distances` of the observed cells of some rows."""
        values = rows[:, self.observed] if len(self.missing) else rows
        seen = model.loadings[self.observed]
        weighted = self.times(seen)
        lengths = np.einsum("ij,ji->i", values, self.times(values.T))
        projected, gram = values @ weighted, seen.T @ weighted
        return _distances(lengths, projected, gram, len(self.observed), model)

    def log_determinant(self) -> float:
        """Return ``logdet B_mm``."""
        if self._factor is None:
            return float(np.log(self._diagonal).sum())
        return float(np.log(np.abs(self._factor.U.diagonal())).sum())


def observed_scores(rows: FloatArray, precision: Precision, loadings: FloatArray) -> FloatArray:
    """Return ``(W_o'B_o W_o)^-1 W_o'B_o y_o`` of each centered row; NaN marks missing cells.

    The generalized least squares scores from the observed cells. In directions that these do
    not show, the score of least length is taken.
    """
    scores = np.empty((len(rows), loadings.shape[1]))
    for members, pattern in _patterns(np.isnan(rows), precision):
        seen = loadings[pattern.observed]
        weighted = pattern.times(seen)
        inverse = _pinv(seen.T @ weighted)
        scores[members] = rows[np.ix_(members, pattern.observed)] @ weighted @ inverse
    return scores


def predict_missing(rows: FloatArray, model: RowModel) -> tuple[FloatArray, FloatArray]:
    """Fill the missing cells of centered rows by their conditional means; return variances too.

    With ``V = (C^-1 + W_o'B_o W_o / s2)^-1`` the scores have mean ``V W_o'B_o y_o / s2`` and
    covariance V. A missing cell is ``L x - B_mm^-1 B_mo y_o + e``, ``L = W_m + B_mm^-1 B_mo W_o``,
    so its variance is ``diag(L V L' + s2 B_mm^-1)``. Where rows differ in scale, that is multiplied
    by ``(v + Q) / (v + q - 2)``, Q the distance of the q observed cells. Observed cells have
    variance 0.
    """
    filled, variances = rows.copy(), np.zeros_like(rows)
    covariance, s2 = model.score_covariance, model.noise_variance
    for members, pattern in _patterns(np.isnan(rows), model.col_precision):
        if len(pattern.missing) == 0:
            continue
        values = rows[np.ix_(members, pattern.observed)]
        seen = model.loadings[pattern.observed]
        weighted = pattern.times(seen)
        # C may be singular, so its inverse is avoided: V = C (I + G C / s2)^-1.
        gain = np.eye(len(covariance)) + (seen.T @ weighted) @ covariance / s2
        posterior = covariance @ np.linalg.inv(gain)
        scores = (values @ weighted / s2) @ posterior
        slopes = model.loadings[pattern.missing] - pattern.regression(seen)
        cells = np.ix_(members, pattern.missing)
        filled[cells] = scores @ slopes.T + pattern.regression(values.T).T
        alone = np.diag(pattern.solve(np.eye(len(pattern.missing))))
        alone = s2 * alone + np.einsum("ik,kl,il->i", slopes, posterior, slopes)
        variances[cells] = alone
        if math.isfinite(model.degrees_of_freedom):
            v, q = model.degrees_of_freedom, len(pattern.observed)
            distances, _ = pattern.distances(rows[members], model)
            variances[cells] *= ((v + distances) / max(v + q - 2.0, 1.0))[:, None]
    return filled, variances


def _patterns(missing: BoolArray, precision: Precision) -> Iterator[tuple[IntArray, _Pattern]]:
    """Yield the rows that miss the same columns, and the precision of what they show."""
    precision = sp.csr_array(precision)
    if not missing.any():
        yield np.arange(len(missing)), _Pattern(precision, np.zeros(missing.shape[1], dtype=bool))
        return
    keys = np.packbits(missing, axis=1)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    bounds = np.cumsum(np.bincount(group))[:-1]
    for example, members in zip(first, np.split(order, bounds), strict=True):
        yield members, _Pattern(precision, missing[example])


def _semidefinite(covariance: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _pinv(gram: FloatArray) -> FloatArray:
    inverse: FloatArray = np.linalg.pinv(gram, hermitian=True)
    return inverse


def _dense(matrix: Any) -> FloatArray:
    entries: FloatArray = matrix.toarray() if sp.issparse(matrix) else matrix
    return entries
