"""MN-PCA by penalized likelihood, as a scikit-learn estimator."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions

from mnpca.estimators._input import Accepts
from mnpca.estimators._paper import PaperEstimator
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.selection.penalty import RULES, choose_penalties
from mnpca.solvers.likelihood.blocks import LowRankStep
from mnpca.solvers.likelihood.fit import Start, fit_likelihood, identified
from mnpca.solvers.missing.refit import Solution, Solve
from mnpca.solvers.progress import Report, State

_ALPHA = [Interval(Real, 0, None, closed="left"), StrOptions(set(RULES)), "array-like"]


@dataclass(eq=False, repr=False)
class LikelihoodMNPCA(PaperEstimator):
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
    {center}
    {missing}
    max_iter : int, default=200
        Largest number of iterations.
    tol : float, default=1e-5
        The fit ends when an iteration changes the objective by at most this (relative to the
        objective where that exceeds 1).
    {verbose}

    Attributes
    ----------
    {paper}
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
    {several}
    {names}

    {reference}

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

    n_components: int | str = 2
    _: KW_ONLY
    alpha_row: Any = "bic"
    alpha_col: Any = "bic"
    penalize_diagonal: bool = True
    scale_free: bool = False
    ridge: float = 0.0
    start: Start = "best"
    low_rank_step: LowRankStep = "als"
    center: bool = True
    missing: str = "em"
    max_iter: int = 200
    tol: float = 1e-5
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_components": [Interval(Integral, 0, None, closed="left"), StrOptions({"paper"})],
        "alpha_row": _ALPHA,
        "alpha_col": _ALPHA,
        "penalize_diagonal": ["boolean"],
        "scale_free": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "start": [StrOptions({"best", "svd", "scales"})],
        "low_rank_step": [StrOptions({"als", "closed"})],
    }

    @property
    def _accepts(self) -> Accepts:
        return Accepts(sparse=True, several=True, foreign=True, missing=self.missing == "em")

    def _solver(self, data: Any, rank: int) -> Solve:
        chosen = choose_penalties(
            data,
            rank,
            self.alpha_row,
            self.alpha_col,
            n_matrices=self.n_matrices_,
            diagonal=self.penalize_diagonal,
            ridge=self.ridge,
            scale_free=self.scale_free,
        )
        self.alpha_row_, self.alpha_col_ = chosen.penalty.row, chosen.penalty.col
        self.unit_ = unit = chosen.unit
        row, col = (None if path is None else Bunch(**path) for path in chosen.paths)
        self.selection_ = Bunch(row=row, col=col)

        def solve(data: Any, report: Report, resume: State | None) -> Solution:
            fit = fit_likelihood(
                data / unit if unit != 1.0 else data,
                rank,
                chosen.penalty,
                start=self.start,
                low_rank_step=self.low_rank_step,
                tol=self.tol,
                max_iter=self.max_iter,
                n_matrices=self.n_matrices_ or 1,
                report=report,
                resume=resume,
            )
            return Solution(*identified(fit, unit), fit.history, fit.converged)

        return solve

    def _unconverged(self) -> str:
        change = self.objective_history_[-2] - self.objective_history_[-1]
        return (
            f": the last one lowered the objective by {change:.3g}, more than tol={self.tol:g} "
            "allows. Increase max_iter or tol, or the penalties alpha_row and alpha_col."
        )
