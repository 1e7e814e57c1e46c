"""MN-PCA by penalized likelihood, as a scikit-learn estimator."""

import math
import warnings
from dataclasses import replace
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions

from mnpca.engines.arrays import astype, inner, is_foreign_array, namespace, to_numpy
from mnpca.estimators._array_api import place_results
from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.estimators._refit import RefitMixin
from mnpca.model.gauge import normalize_gauge
from mnpca.model.gpca import identify
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric
from mnpca.model.objective import Penalty
from mnpca.model.sparse import repeated, side_by_side
from mnpca.selection.penalty import RULES, bic_path
from mnpca.selection.rank import choose_rank
from mnpca.solvers.likelihood.fit import fit_likelihood
from mnpca.solvers.likelihood.low_rank_step import svd_start
from mnpca.solvers.missing.refit import Solution

# A residual below this share of the data is rounding.
EXACT = 1e-10

_ALPHA = [Interval(Real, 0, None, closed="left"), StrOptions(set(RULES)), "array-like"]


class LikelihoodMNPCA(RefitMixin, MatrixNormalEstimator):
    """PCA with correlated noise, by maximum penalized likelihood.

    Estimates ``Y = X W' + E`` with ``E ~ MN(0, inv A, inv B)``: a low-rank signal and two sparse
    noise networks, one among the samples (the zeros of A) and one among the features (of B). It
    minimizes::

        tr(B R'AR)/(np) - logdet(A)/n - logdet(B)/p
        + alpha_row |A|_1 / n + alpha_col |B|_1 / p + ridge (tr(X'AX) + tr(W'BW)) / (np)

    with R = Y - X W' over A, B, their common scale, and X and W in turn [1]_. It works while the
    signal is visible in one of its starts; `MNPCA` goes further.

    Several matrices of the same rows and columns, ``Y_i = X_i W' + E_i``, share W, A and B; every
    matrix has scores and noise of its own. Then the first term is the mean over the matrices, and
    without signal and penalties the fit is the flip-flop maximum likelihood estimate.

    Parameters
    ----------
    n_components : int or "paper", default=2
        Number of components, 0 for noise alone, or the paper's rule for the cumulative share of
        variance.
    alpha_row, alpha_col : float, "bic", "bic-authors" or array-like, default="bic"
        Penalties of the two precisions. Larger values give fewer edges; 0 switches the network of
        that side off (its precision is the identity); with several matrices, whose likelihood has
        a maximum, 0 is no penalty. "bic" chooses by the Bayesian information criterion on the
        residual of the truncated SVD as the paper prints it, with X divided by `unit_` first, so
        that the units of X do not matter; a number beside it is a penalty in that unit, too.
        "bic-authors" has the grid and the count of the paper's program, for noise of about unit
        variance. A symmetric matrix gives every entry a penalty of its own: a mask has large
        entries where there may be no edge.
    penalize_diagonal : bool, default=True
        Whether the diagonals of the precisions are penalized too.
    scale_free : bool, default=False
        Whether the penalty of a side is multiplied by the mean precision of the other,
        ``exp(logdet(B)/p)`` or ``exp(logdet(A)/n)``. The common scale of A and B is free; in the
        objective above the best scale leaves only the product ``alpha_row * alpha_col`` to count.
        With True each penalty keeps the meaning that the criterion gave it, whatever the scale of
        the noise: more edges are found, right and wrong ones, and signals under strong noise are
        recovered a little better, in up to twice the time. Use it with "bic-authors", or where
        the two penalties are given and differ.
    ridge : float, default=0.0
        Weight of ``tr(X'AX) + tr(W'BW)``; a small one keeps the regressions for X and W regular.
    start : {"best", "svd", "scales"}, default="best"
        Where the descent begins: the truncated SVD of X as in the paper, that of X with rows and
        columns scaled to equal mean squares, or both; then the lower objective wins.
    low_rank_step : {"als", "closed"}, default="als"
        How X and W are updated: by alternating least squares, or by generalized PCA at once.
    center : bool, default=True
        Whether to subtract the mean of every column. The paper's experiments do not.
    missing : {"em", "error"}, default="em"
        What NaN in X means: a missing value, replaced in every step of the fit by what the model
        expects of it, with the uncertainty that this leaves; or an error.
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
        Generalized singular values.
    low_rank_ : LowRank
        Scores and loadings of the estimated signal, the mean left out.
    mean_ : ndarray of shape (n_features,)
        Subtracted mean, or zeros.
    row_precision_, col_precision_ : csr_array
        A and B, scaled so that ``logdet A = 0``.
    alpha_row_, alpha_col_ : float or ndarray
        Penalties used, of X divided by `unit_`.
    unit_ : float
        Root mean square of the residual of the truncated SVD, where a penalty is "bic"; else 1.
    selection_ : Bunch
        ``row`` and ``col``: the whole path of the criterion (arrays ``alpha``, ``bic`` and
        ``n_edges``, and ``best``), or None where the penalty was given.
    objective_history_ : ndarray
        Objective, of X divided by `unit_`, at the start and after every iteration; it never rises.
    n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether the objective settled within `max_iter` iterations.
    n_components_ : int
        Number of components.
    missing_, completed_, completed_std_ : ndarrays of shape (n_samples, n_features) or None
        Where X had holes: which, the completed matrix, and its standard errors; see `impute`.
    row_coef_ : ndarray of shape (n_row_covariates, n_features) or None
        Effects of the row covariates `row_covariates_`, these less `row_covariates_mean_`.
    col_coef_ : ndarray of shape (n_samples, n_col_covariates) or None
        Effects of the column covariates, which `col_covariates_` keeps.
    noise_variance_, score_covariance_ : float, ndarray
        The distribution of a row that `score` assumes.
    n_matrices_ : int or None
        Number of matrices, None where `fit` was given one. With several, `denoise` has a first
        axis for them; `low_rank_` has the rows of all, one matrix after the other.
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
        "n_components": [Interval(Integral, 0, None, closed="left"), StrOptions({"paper"})],
        "alpha_row": _ALPHA,
        "alpha_col": _ALPHA,
        "penalize_diagonal": ["boolean"],
        "scale_free": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "start": [StrOptions({"best", "svd", "scales"})],
        "low_rank_step": [StrOptions({"als", "closed"})],
        "center": ["boolean"],
        "missing": [StrOptions({"em", "error"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _several_input = True
    _elsewhere_input = True

    def __init__(
        self,
        n_components=2,
        *,
        alpha_row="bic",
        alpha_col="bic",
        penalize_diagonal=True,
        scale_free=False,
        ridge=0.0,
        start="best",
        low_rank_step="als",
        center=True,
        missing="em",
        max_iter=200,
        tol=1e-5,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.alpha_row = alpha_row
        self.alpha_col = alpha_col
        self.penalize_diagonal = penalize_diagonal
        self.scale_free = scale_free
        self.ridge = ridge
        self.start = start
        self.low_rank_step = low_rank_step
        self.center = center
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X,
        y=None,
        *,
        row_covariates=None,
        col_covariates=None,
        callback=None,
        checkpoint=None,
        resume_from=None,
    ):
        """Estimate the signal and the two noise networks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_matrices, n_samples, n_features)
            Data: one matrix, or several as an array with three axes or as a list. One matrix of
            torch or CuPy is fitted where it lives, and so are the results.
        y : None
            Ignored.
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Known covariates of the rows. Their effects are estimated by generalized least squares
            under the noise, together with the rest of the model.
        col_covariates : array-like of shape (n_features, n_col_covariates), default=None
            Known covariates of the columns.
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
        problem = self._incomplete_problem(X, row_covariates, col_covariates)
        if problem is not None:
            covariates = (row_covariates, col_covariates)
            return self._fit_again(problem, X, covariates, (callback, checkpoint, resume_from))
        data = astype(X, "float64")
        mean = np.zeros(data.shape[1])
        if self.center:
            mean_row = namespace(data).mean(data, axis=0)
            data, mean = data - mean_row[None, :], to_numpy(mean_row)
        rank = choose_rank(self.n_components, data)
        penalty = self._choose_penalty(data, rank)
        rows = self._as_fitted(X)
        with self._progress(rows, callback, checkpoint, resume_from) as (report, resume):
            fit = self._solve(data, rank, penalty, report, resume)
            self._store_history(fit)
            row_precision, col_precision = normalize_gauge(
                *(_on_host(side) for side in (fit.row_precision, fit.col_precision))
            )
            parts = identify(
                *map(to_numpy, fit.signal),
                Metric(data.shape[0], repeated(row_precision, data.shape[0])),
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
        if is_foreign_array(X):
            place_results(self, X)
        return self

    def _solve(self, data, rank, penalty, report, resume):
        """Fit X divided by its unit, and return the fit of X."""
        fit = fit_likelihood(
            data / self.unit_ if self.unit_ != 1.0 else data,
            rank,
            penalty,
            start=self.start,
            low_rank_step=self.low_rank_step,
            tol=self.tol,
            max_iter=self.max_iter,
            n_matrices=self.n_matrices_ or 1,
            report=report,
            resume=resume,
        )
        return replace(
            fit,
            signal=LowRank(fit.signal.left * self.unit_, fit.signal.right),
            col_precision=fit.col_precision / self.unit_**2,
        )

    def _solver(self, data, rank):
        """Return the solver that `fit_again` takes; the penalties are chosen once."""
        penalty = self._choose_penalty(data, rank)

        def solve(data, report, resume):
            fit = self._solve(data, rank, penalty, report, resume)
            return Solution(*normalize_gauge(fit.row_precision, fit.col_precision), fit)

        return solve

    def _choose_penalty(self, data, rank):
        """Set and return the penalties: those given, or chosen on the residual of the SVD.

        Sets the unit of X in which they are meant, too. The grid of the paper, and its objective,
        take the noise to have about unit variance.
        """
        self.selection_ = Bunch(row=None, col=None)
        self.unit_ = 1.0
        asked = {"row": self.alpha_row, "col": self.alpha_col}
        sizes = {"row": data.shape[0] // (self.n_matrices_ or 1), "col": data.shape[1]}
        rules = [alpha for alpha in asked.values() if isinstance(alpha, str)]
        if rules:
            residual = data - svd_start(data, rank).dense()
        if "bic" in rules:
            self.unit_ = _unit(data, residual)
            residual = residual / self.unit_
        chosen = {}
        for side, alpha in asked.items():
            if isinstance(alpha, str):
                rows = side_by_side(residual, sizes["row"]) if side == "row" else residual.T
                # Components leave correlations among columns that more matrices do not lower.
                lower = side == "row" or rank == 0
                path = bic_path(
                    rows,
                    alpha,
                    n_matrices=(self.n_matrices_ or 1) if lower else 1,
                    penalize_diagonal=self.penalize_diagonal,
                )
                self.selection_[side] = Bunch(**path)
                chosen[side] = path["best"]
            else:
                chosen[side] = _checked(alpha, sizes[side], f"alpha_{side}")
        self.alpha_row_, self.alpha_col_ = chosen["row"], chosen["col"]
        several = self.n_matrices_ is not None
        if several:
            _check_maximum_exists(self.n_matrices_, sizes, rank, chosen)
        return Penalty(
            chosen["row"],
            chosen["col"],
            self.penalize_diagonal,
            self.ridge,
            free=several,
            scale_free=self.scale_free,
        )

    def _warn_unless_converged(self):
        if self.converged_:
            return
        change = self.objective_history_[-2] - self.objective_history_[-1]
        warnings.warn(
            f"LikelihoodMNPCA did not converge in max_iter={self.max_iter} iterations: the last "
            f"one lowered the objective by {change:.3g}, more than tol={self.tol:g} allows. "
            "Increase max_iter or tol, or the penalties alpha_row and alpha_col.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _unit(data, residual):
    """Return the root mean square of the noise; of the data where these leave only rounding."""
    total, left = (
        math.sqrt(inner(rows, rows) / math.prod(rows.shape)) for rows in (data, residual)
    )
    return left if left > EXACT * total else total


def _check_maximum_exists(n_matrices, sizes, rank, alpha):
    """Refuse to maximize a likelihood without penalties that has no maximum."""
    if np.any(alpha["col"]):
        return
    if rank > 0:
        raise ValueError(
            "Scores of their own fit every row exactly along the loadings, so that without a "
            "penalty the column precision has no maximum. Set alpha_col above 0, or n_components=0."
        )
    n, p = sizes["row"], sizes["col"]
    enough = max(n / p, p / n) + 1
    if n_matrices <= enough and not np.any(alpha["row"]):
        raise ValueError(
            f"Without penalties the likelihood of {n_matrices} matrices of {n} x {p} has no "
            f"maximum: more than max(n/p, p/n) + 1 = {enough:.3g} are needed. Set alpha_row and "
            "alpha_col above 0."
        )


def _on_host(precision):
    """Return a precision as a sparse array in the host's memory."""
    return sp.csr_array(to_numpy(precision)) if is_foreign_array(precision) else precision


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
