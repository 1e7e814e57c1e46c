"""The paper's MN-PCA as its program runs it, slips included."""

from dataclasses import replace
from numbers import Integral
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from mnpca.estimators import GeneralizedPCA
from mnpca.model.gpca import truncated_svd
from mnpca.model.low_rank import LowRank
from mnpca.model.sparse import logdet
from mnpca.precision import sparse_precision
from mnpca.selection.penalty import RULES, BicRule, bic_path
from reproduction.baselines._in_metrics import ComponentsInMetrics

_RIDGE = 0.01
_ROUNDS, _SCORE_ROUNDS = 19, 20
_CHANGE, _ABSOLUTE_CHANGE = 1e-3, 1e-4
#: On real data the program's grid of penalties begins higher than on synthetic data.
REAL_RULE = replace(RULES["bic-authors"], smallest=0.1)


class ProgramMNPCA(ComponentsInMetrics):
    """MN-PCA as in the program behind the paper's tables; `LikelihoodMNPCA` is what it means.

    Penalties by BIC on the residual of the truncated SVD of rank `n_components`. Then rounds of
    row precision, column precision, scores and loadings. After each round the program computes an
    objective whose penalties are weighted as if n and p were swapped; its rounds need not lower
    it. When it rises (often after one or two rounds) or hardly changes, the program stops.
    Generalized PCA in the fitted metrics gives the components.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    fit_rank : int, default=None
        Rank of the signal in the rounds; None for `n_components`, as in the paper's algorithm. The
        program's script for real data has 2.
    rule : BicRule or {"bic", "bic-authors"}, default=REAL_RULE
        Grid and count of the criterion.

    Attributes
    ----------
    row_precision_, col_precision_ : csr_array
        The noise precisions.
    alpha_row_, alpha_col_ : float
        Penalties.
    objective_history_ : ndarray
        The program's objective at the start and after every round.
    low_rank_ : LowRank
        Scores and loadings after the last round.
    gpca_ : GeneralizedPCA
        The components in the fitted metrics.

    Examples
    --------
    >>> from reproduction.baselines import ProgramMNPCA
    >>> from reproduction.paper_draws import paper_draw_small
    >>> from mnpca.metrics import psnr
    >>> data = paper_draw_small(8, run=1)
    >>> model = ProgramMNPCA(2).fit(data.Y)
    >>> psnr(model.low_rank_.dense(), data.signal) > 16
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "fit_rank": [Interval(Integral, 1, None, closed="left"), None],
        "rule": [BicRule, StrOptions(set(RULES))],
    }

    def __init__(self, n_components=2, *, fit_rank=None, rule=REAL_RULE):
        self.n_components = n_components
        self.fit_rank = fit_rank
        self.rule = rule

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Choose the penalties, run the rounds, take the components. Nothing is centered."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        residual = X - truncated_svd(X, self.n_components).low_rank().dense()
        n, p = residual.shape
        self.alpha_row_ = bic_path(residual @ residual.T / p, p, self.rule)["best"]
        self.alpha_col_ = bic_path(residual.T @ residual / n, n, self.rule)["best"]
        self._rounds(X)
        self.gpca_ = GeneralizedPCA(
            self.n_components,
            row_metric=self.row_precision_,
            col_metric=self.col_precision_,
            center=False,
        ).fit(X)
        return self

    def _rounds(self, data):
        n, p = data.shape
        signal = truncated_svd(data, self.fit_rank or self.n_components).low_rank()
        row, col = (sp.eye_array(size, format="csr") for size in data.shape)
        history = [self._objective(data, signal, row, col)]
        for _ in range(_ROUNDS):
            residual = data - signal.dense()
            row = _sparse(residual @ (col @ residual.T) / p, self.alpha_row_)
            col = _sparse(residual.T @ (row @ residual) / n, self.alpha_col_)
            signal = _regress(data, signal, row, col)
            history.append(self._objective(data, signal, row, col))
            fall = history[-2] - history[-1]
            if fall < max(_CHANGE * (abs(history[-2]) + 1e-5), _ABSOLUTE_CHANGE):
                break
        self.row_precision_, self.col_precision_, self.low_rank_ = row, col, signal
        self.objective_history_ = np.array(history)

    def _objective(self, data, signal, row, col):
        """Return what the program watches: |A|_1 over p and |B|_1 over n, without diagonals."""
        n, p = data.shape
        value = _misfit(data, signal, row, col) - logdet(row) / n - logdet(col) / p
        value += self.alpha_row_ * _off_diagonal(row) / p
        return value + self.alpha_col_ * _off_diagonal(col) / n


def _sparse(covariance, penalty):
    covariance = (covariance + covariance.T) / 2
    return sparse_precision(covariance, penalty, penalize_diagonal=True, tol=1e-5).precision


def _regress(data, signal, row, col):
    """Regress for scores and loadings in turn until the weighted misfit settles."""
    scores, loadings = signal
    ridge = _RIDGE * np.eye(scores.shape[1])
    before = _misfit(data, signal, row, col)
    for _ in range(_SCORE_ROUNDS):
        weighted = col @ loadings
        scores = np.linalg.solve(loadings.T @ weighted + ridge, (data @ weighted).T).T
        now = _misfit(data, LowRank(scores, loadings), row, col)
        if abs(before - now) < _ABSOLUTE_CHANGE:
            break
        before = now
        weighted = row @ scores
        loadings = np.linalg.solve(scores.T @ weighted + ridge, (data.T @ weighted).T).T
    return LowRank(scores, loadings)


def _misfit(data, signal, row, col):
    residual = data - signal.dense()
    squares = sum(float(np.sum(factor**2)) for factor in signal)
    return (float(np.sum((row @ residual) * (residual @ col))) + _RIDGE * squares) / data.size


def _off_diagonal(precision):
    return float(abs(precision).sum() - abs(precision.diagonal()).sum())
