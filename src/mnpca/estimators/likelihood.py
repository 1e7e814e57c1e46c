"""MN-PCA by penalised likelihood, as a scikit-learn estimator."""

import warnings
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions

from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.model.gauge import normalise_gauge
from mnpca.model.gpca import identify, truncated_svd
from mnpca.model.metric import Metric
from mnpca.model.objective import Penalty
from mnpca.selection.penalty import RULES, bic_path
from mnpca.selection.rank import choose_rank
from mnpca.solvers.likelihood import fit_likelihood

_ALPHA = [Interval(Real, 0, None, closed="left"), StrOptions(set(RULES)), "array-like"]


class LikelihoodMNPCA(MatrixNormalEstimator):
    """PCA with correlated noise, by maximum penalised likelihood.

    Estimates ``Y = X W' + E`` with ``E ~ MN(0, inv A, inv B)``: a low-rank signal and two sparse
    noise networks, one among the samples (the zeros of A) and one among the features (of B). It
    minimises::

        tr(B R'AR)/(np) - logdet(A)/n - logdet(B)/p
        + alpha_row |A|_1 / n + alpha_col |B|_1 / p + ridge (tr(X'AX) + tr(W'BW)) / (np)

    with R = Y - X W' over A, B, their common scale, and X and W in turn [1]_. It works while the
    signal is visible in one of its starts; `MNPCA` goes further.

    Parameters
    ----------
    n_components : int or "paper", default=2
        Number of components, or the paper's rule for the cumulative share of variance.
    alpha_row, alpha_col : float, "bic", "bic-authors" or array-like, default="bic"
        Penalties of the two precisions. Larger values give fewer edges; 0 switches the network of
        that side off (its precision is the identity). "bic" chooses by the Bayesian information
        criterion on the residual of the truncated SVD as the paper prints it, "bic-authors" with
        the grid and the count of the paper's program. A symmetric matrix gives every entry a
        penalty of its own: a mask has large entries where there may be no edge.
    penalize_diagonal : bool, default=True
        Whether the diagonals of the precisions are penalised too.
    ridge : float, default=0.0
        Weight of ``tr(X'AX) + tr(W'BW)``; a small one keeps the regressions for X and W regular.
    start : {"best", "svd", "scales"}, default="best"
        Where the descent begins: the truncated SVD of X as in the paper, that of X with rows and
        columns scaled to equal mean squares, or both; then the lower objective wins.
    low_rank_step : {"als", "closed"}, default="als"
        How X and W are updated: by alternating least squares, or by generalised PCA at once.
    center : bool, default=True
        Whether to subtract the mean of every column. The paper's experiments do not.
    max_iter : int, default=200
        Largest number of iterations.
    tol : float, default=1e-5
        The fit ends when an iteration changes the objective by at most this (relative to the
        objective where that exceeds 1).
    random_state : None
        Ignored: nothing is random. It is here because every estimator of the package has it.
    verbose : int, default=0
        Whether to print the objective after every iteration.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings, orthonormal in the metric ``col_precision_``; the largest absolute loading of
        each is positive.
    singular_values_ : ndarray of shape (n_components,)
        Generalised singular values.
    low_rank_ : LowRank
        Scores and loadings of the estimated signal, the mean left out.
    mean_ : ndarray of shape (n_features,)
        Subtracted mean, or zeros.
    row_precision_, col_precision_ : csr_array
        A and B, scaled so that ``logdet A = 0``.
    alpha_row_, alpha_col_ : float or ndarray
        Penalties used.
    selection_ : Bunch
        ``row`` and ``col``: the whole path of the criterion (arrays ``alpha``, ``bic`` and
        ``n_edges``, and ``best``), or None where the penalty was given.
    objective_history_ : ndarray
        Objective at the start and after every iteration; it never rises.
    n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether the objective settled within `max_iter` iterations.
    n_components_ : int
        Number of components.
    noise_variance_, score_covariance_ : float, ndarray
        The distribution of a row that `score` assumes.
    n_features_in_, feature_names_in_, sample_names_in_
        Size and names of the training data.

    References
    ----------
    .. [1] C. Zhang, K. Gai and S. Zhang, "Matrix normal PCA for interpretable dimension reduction
       and graphical noise modeling" (2019).

    Examples
    --------
    >>> from mnpca import LikelihoodMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.metrics import psnr
    >>> data = make_paper_small(c=16, seed=0)
    >>> model = LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    >>> psnr(model.denoise(), data.signal) > 15
    True
    >>> model.transform(data.Y[:5]).shape
    (5, 2)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"paper"})],
        "alpha_row": _ALPHA,
        "alpha_col": _ALPHA,
        "penalize_diagonal": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "start": [StrOptions({"best", "svd", "scales"})],
        "low_rank_step": [StrOptions({"als", "closed"})],
        "center": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components=2,
        *,
        alpha_row="bic",
        alpha_col="bic",
        penalize_diagonal=True,
        ridge=0.0,
        start="best",
        low_rank_step="als",
        center=True,
        max_iter=200,
        tol=1e-5,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.alpha_row = alpha_row
        self.alpha_col = alpha_col
        self.penalize_diagonal = penalize_diagonal
        self.ridge = ridge
        self.start = start
        self.low_rank_step = low_rank_step
        self.center = center
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, callback=None, checkpoint=None, resume_from=None):
        """Estimate the signal and the two noise networks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data.
        y : None
            Ignored.
        callback : callable, default=None
            Called with a `mnpca.solvers.progress.Progress` after every iteration.
        checkpoint : path-like, default=None
            File in which the state of the fit is kept.
        resume_from : path-like, default=None
            Checkpoint of the same fit to go on from.

        Returns
        -------
        self
        """
        X = self._validate_training(X)
        data = X.astype(np.float64, copy=False)
        mean = data.mean(axis=0) if self.center else np.zeros(data.shape[1])
        if self.center:
            data = data - mean
        rank = choose_rank(self.n_components, data)
        penalty = self._choose_penalty(data, rank)
        with self._progress(X, callback, checkpoint, resume_from) as (report, resume):
            fit = fit_likelihood(
                data,
                rank,
                penalty,
                start=self.start,
                low_rank_step=self.low_rank_step,
                tol=self.tol,
                max_iter=self.max_iter,
                report=report,
                resume=resume,
            )
        self.objective_history_ = np.array(fit.history)
        self.n_iter_ = len(fit.history) - 1
        self.converged_ = fit.converged
        self._warn_unless_converged()
        row_precision, col_precision = normalise_gauge(fit.row_precision, fit.col_precision)
        parts = identify(
            *fit.signal,
            Metric(len(data), row_precision),
            Metric(len(mean), col_precision),
        )
        self._store_fit(
            X,
            mean=mean,
            low_rank=parts.low_rank(),
            components=parts.right.T,
            singular_values=parts.singular_values,
            row_precision=row_precision,
            col_precision=col_precision,
        )
        return self

    def _choose_penalty(self, data, rank):
        """Set and return the penalties: those given, or chosen on the residual of the SVD."""
        self.selection_ = Bunch(row=None, col=None)
        asked = {"row": self.alpha_row, "col": self.alpha_col}
        if any(isinstance(alpha, str) for alpha in asked.values()):
            residual = data - truncated_svd(data, rank).low_rank().dense()
        chosen = {}
        for side, alpha in asked.items():
            if isinstance(alpha, str):
                rows = residual if side == "row" else residual.T
                path = bic_path(rows, alpha, penalize_diagonal=self.penalize_diagonal)
                self.selection_[side] = Bunch(**path)
                chosen[side] = path["best"]
            else:
                size = data.shape[0] if side == "row" else data.shape[1]
                chosen[side] = _checked(alpha, size, f"alpha_{side}")
        self.alpha_row_, self.alpha_col_ = chosen["row"], chosen["col"]
        return Penalty(chosen["row"], chosen["col"], self.penalize_diagonal, self.ridge)

    def _warn_unless_converged(self):
        if self.converged_:
            return
        change = self.objective_history_[-2] - self.objective_history_[-1]
        warnings.warn(
            f"LikelihoodMNPCA did not converge in max_iter={self.max_iter} iterations: the last "
            f"one lowered the objective by {change:.3g}, more than tol={self.tol:g} allows. "
            "Increase max_iter or tol, or the penalties alpha_row and alpha_col.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _checked(alpha, size, name):
    """Return a penalty as a number or a symmetric matrix."""
    if np.ndim(alpha) == 0 and not sp.issparse(alpha):
        return float(alpha)
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.shape != (size, size):
        raise ValueError(
            f"{name} must be a number or a matrix of shape ({size}, {size}), got {alpha.shape}."
        )
    if not np.isfinite(alpha).all() or alpha.min() < 0:
        raise ValueError(
            f"{name} must be finite and not negative; a large entry rules an edge out."
        )
    if not np.array_equal(alpha, alpha.T):
        raise ValueError(f"{name} must be symmetric; pass ({name} + {name}.T) / 2.")
    return alpha
