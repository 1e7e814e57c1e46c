"""Rows with holes: scores, likelihood and predictions from the cells that were observed.

A row's noise has precision B / s2. Its observed cells o have the marginal precision
``B_o = B_oo - B_om B_mm^-1 B_mo`` (the Schur complement), and its missing cells m given them the
mean ``-B_mm^-1 B_mo e_o`` and the precision B_mm.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from mnpca._typing import BoolArray, FloatArray, IntArray, Precision
from mnpca.model.likelihood import row_density
from mnpca.model.sparse import logdet


class RowModel(NamedTuple):
    """The distribution of a row: ``W x + e``, x ~ N(0, C), e ~ N(0, s2 inv B)."""

    col_precision: Precision
    loadings: FloatArray
    score_covariance: FloatArray
    noise_variance: float


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
        return np.asarray(self._seen @ thin + self._across @ self.regression(thin))

    def log_determinant(self) -> float:
        """Return ``logdet B_mm``."""
        if self._factor is None:
            return float(np.log(self._diagonal).sum())
        return float(np.log(np.abs(self._factor.U.diagonal())).sum())


def observed_scores(rows: FloatArray, precision: Precision, loadings: FloatArray) -> FloatArray:
    """Return ``(W_o'B_o W_o)^-1 W_o'B_o y_o`` of each centered row; NaN marks holes.

    The generalized least squares scores from the observed cells. In directions that these do
    not show, the score of least length is taken.
    """
    scores = np.empty((len(rows), loadings.shape[1]))
    for members, pattern in _patterns(np.isnan(rows), precision):
        seen = loadings[pattern.observed]
        weighted = pattern.times(seen)
        inverse = np.linalg.pinv(seen.T @ weighted, hermitian=True)
        scores[members] = rows[np.ix_(members, pattern.observed)] @ weighted @ inverse
    return scores


def observed_log_likelihood(rows: FloatArray, model: RowModel) -> FloatArray:
    """Log-density of the observed cells of each centered row; NaN marks holes."""
    precision = model.col_precision
    whole = logdet(precision)
    densities = np.empty(len(rows))
    for members, pattern in _patterns(np.isnan(rows), precision):
        values = rows[np.ix_(members, pattern.observed)]
        seen = model.loadings[pattern.observed]
        weighted = pattern.times(seen)
        distance = np.einsum("ij,ji->i", values, pattern.times(values.T))
        densities[members] = row_density(
            distance,
            values @ weighted,
            seen.T @ weighted,
            whole - pattern.log_determinant(),
            len(pattern.observed),
            model.score_covariance,
            model.noise_variance,
        )
    return densities


def predict_missing(rows: FloatArray, model: RowModel) -> tuple[FloatArray, FloatArray]:
    """Fill the holes of centered rows by their conditional means; return variances too.

    With ``V = (C^-1 + W_o'B_o W_o / s2)^-1`` the scores have mean ``V W_o'B_o y_o / s2`` and
    covariance V. A missing cell is ``L x - B_mm^-1 B_mo y_o + e``, ``L = W_m + B_mm^-1 B_mo W_o``,
    so its variance is ``diag(L V L' + s2 B_mm^-1)``. Observed cells have variance 0.
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
        spread = covariance @ np.linalg.inv(gain)
        scores = (values @ weighted / s2) @ spread
        slopes = model.loadings[pattern.missing] - pattern.regression(seen)
        cells = np.ix_(members, pattern.missing)
        filled[cells] = scores @ slopes.T + pattern.regression(values.T).T
        alone = np.diag(pattern.solve(np.eye(len(pattern.missing))))
        variances[cells] = s2 * alone + np.einsum("ik,kl,il->i", slopes, spread, slopes)
    return filled, variances


def _patterns(missing: BoolArray, precision: Precision) -> Iterator[tuple[IntArray, _Pattern]]:
    """Yield the rows that miss the same columns, and the precision of what they show."""
    precision = sp.csr_array(precision)
    keys = np.packbits(missing, axis=1)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    bounds = np.cumsum(np.bincount(group))[:-1]
    for example, members in zip(first, np.split(order, bounds), strict=True):
        yield members, _Pattern(precision, missing[example])
