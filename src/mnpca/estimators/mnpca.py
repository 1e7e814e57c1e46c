"""`MNPCA` as a scikit-learn estimator."""

import warnings
from dataclasses import KW_ONLY, asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import RandomState
from mnpca.engines import engine_for, is_dask, reads_in_blocks
from mnpca.engines.arrays import namespace
from mnpca.engines.threads import worker_threads
from mnpca.estimators._base import NoiseEstimator
from mnpca.estimators._edges import EdgesMixin, stored
from mnpca.estimators._incomplete import store_outcome
from mnpca.estimators._input import Accepts, noise_structures, seed_of
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.model.low_rank import LowRank
from mnpca.model.rows import RowModel, with_row_scales
from mnpca.model.whiteness import ModelCheckWarning
from mnpca.noise.edges import EdgeTests
from mnpca.selection.choose_model import ChosenModel, check_residual, choose_model, explain
from mnpca.selection.incomplete import choose_incomplete_model
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.mnpca.edge_tests import edge_tests
from mnpca.solvers.mnpca.low_rank_step import Center
from mnpca.solvers.mnpca.priors import PriorChoice
from mnpca.solvers.mnpca.settings import Settings
from mnpca.solvers.progress import Report, State, negated

STRUCTURES = ("auto", "graph", "diagonal", "identity")
#: A stage ends early below `tol`; one that ran to its end has settled below this multiple of it.
UNSETTLED = 10.0
#: Rows that show whether rows differ in scale, at most.
SCALED_ROWS = 5000


@dataclass(eq=False, repr=False)
class MNPCA(EdgesMixin, NoiseEstimator):
    """PCA for correlated noise, with nothing to tune.

    Estimates ``Y = 1 mean' + X W' + E`` with ``E ~ MN(0, inv A, inv B)``: a low-rank signal and
    two sparse noise networks, one among the samples and one among the features, all from one
    matrix. The signal is averaged over its posterior instead of truncated; the noise is estimated
    from the residual plus the uncertainty of the signal; edges enter by score tests and are
    refitted without a penalty. See the method page of the documentation.

    Several matrices of the same rows and columns, ``Y_i = 1 mean' + X_i W' + E_i``, share the mean
    row, the loadings W and both networks; every matrix has scores and noise of its own.

    Parameters
    ----------
    n_components : int, float or "auto", default="auto"
        Number of components to show; "auto" shows all that the evidence finds, which may be none:
        then `components_` is empty, `transform` returns an array without columns, and `denoise`
        returns the mean. The noise does not depend on this number: the model is fitted with the
        components that it needs, `n_signal_` of them, and the leading ones are shown, so that the
        components of `MNPCA(2)` are the first two of `MNPCA(5)`. Where more are asked for than
        the evidence finds, the model is fitted with that many; as many as X has rows or columns
        would leave no noise: one fewer is fitted, with a warning. A share between 0 and 1 shows
        the fewest leading components with at least this share of the sum of squares of all
        `n_signal_` singular values; X must then be complete and without covariates.
    noise : {"auto", "graph", "diagonal", "identity"} or a pair of these, default="auto"
        Structure of the noise on both sides, or on the side of the rows and of the columns: a
        network, unequal variances, equal variances, or what the evidence prefers; see `noise_`.
    center : bool or "auto", default="auto"
        Whether the model has a mean row; "auto" compares the evidence of both.
    prior : {"auto", "gaussian", "mixture"}, default="auto"
        What the rows of scores and of loadings are drawn from. "auto" learns it on each side:
        a normal distribution, one of many scales (a few rows or columns carry the signal), groups,
        or a discrete one, whichever predicts best; see `priors_`. "mixture" means groups.
    robust : bool, default=False
        Whether to find single entries far outside signal and noise, and to leave them out of the
        fit; see `outliers_`.
    {missing}
    {stages}
    random_state : int, RandomState instance or None, default=None
        Source of the random start of the subspace iteration, on which the result depends by
        rounding only; None is a fixed start, so that fits can be repeated and resumed.
    n_jobs : int or None, default=None
        Threads of the linear algebra; the result does not depend on it. None leaves the number
        to the environment, -1 takes every processor.
    {verbose}

    Attributes
    ----------
    {components}
    mean_ : ndarray of shape (n_features,)
        Mean row, zeros where the model has none.
    low_rank_ : LowRank
        Posterior mean of the training signal, the mean left out, as two thin factors.
    signal_variance_ : LowRank
        Posterior variance of every entry of the signal, as two thin factors.
    row_precision_, col_precision_ : csr_array
        A and B, scaled so that ``logdet A = 0``.
    {explained}
    objective_history_ : ndarray
        What is minimized, after every iteration of the final fit: the price of the edges less the
        evidence lower bound.
    n_signal_ : int
        Number of components that the model was fitted with.
    evidence_ : float
        Evidence of the fit, by which everything was compared; see Notes.
    candidates_ : list of dict
        The ends of the search: name, components, evidence, ``group_gain`` (what groups of rows
        and columns add to it, where two ends compete) and edges of each.
    rank_path_ : list of dict or None
        For every rank that was looked at on the trail that won: ``n_components`` and the highest
        ``evidence``. None where X has missing values.
    noise_ : dict
        For ``"rows"`` and ``"columns"``: ``structure`` ("identity", "diagonal" or "graph"),
        ``n_edges``, ``evidence_lost_with`` (what each simpler structure would lose, in nats) and
        ``why``, the same in a sentence; for rows also ``units``, one for each row where rows have
        units of their own, otherwise None.
    priors_ : dict
        For ``"rows"`` and ``"columns"``: the ``family`` of the learned prior ("gaussian", "scales"
        or "groups"), ``groups`` (probability of every group for every row or column, None
        where no groups can be distinguished) and ``zero`` (probability that a row or
        column has next to no part in the signal, less than a fifth of the usual; None where no
        part of the prior is that small).
    choice_ : str
        Why the model has this number of components, and what its noise was compared with.
    outliers_ : ndarray of bool of shape (n_samples, n_features) or None
        The entries that ``robust=True`` left out, with a first axis for several matrices.
    model_check_ : dict
        Whiteness of the residual: correlation of rows and of columns beyond chance, distance of
        the singular values from the Marchenko-Pastur law, largest singular value, the verdict
        ``white`` (None for matrices under 20 rows or columns) and ``advice``.
    n_iter_ : int
        Iterations of the final fit.
    converged_ : bool
        Whether the signal settled: its last change was below ten times `tol`, or no edge was
        left. A ConvergenceWarning says so where it did not.
    {incomplete}
    predictions_ : list of dict or None
        Where X had missing values and rank or noise were chosen: the candidates and how well each
        predicts observed cells that were hidden from it. ``noise`` (the structures of rows and
        columns) and ``n_components`` of the model, ``error`` (root mean square, in units of a
        column's standard deviation)
        and ``n_cells``, the number of hidden cells. The first is what would be chosen for
        complete data; the one with the smallest error is the fitted model.
    edge_tests_ : dict or None
        The tests of both networks' edges, which `edges` lists. None where X was not in memory.
    noise_variance_, score_covariance_, degrees_of_freedom_ : float, ndarray, float
        The distribution of an unseen row that `score` assumes. Rows of unknown scale have a
        multivariate t distribution; where training rows hardly differ in scale, a normal one, with
        infinite degrees of freedom.
    {several}
    row_chunks_ : tuple of int or None
        Where `fit` was given a dask array, the lengths of its chunks: `denoise` then returns dask
        arrays with the same ones.
    {names}

    Warns
    -----
    ModelCheckWarning
        If the whitened residual is not white: the noise of these data is not what the model says.

    Notes
    -----
    One number decides about rank, noise and starts: the evidence, that is the lower bound of the
    log marginal likelihood of the data with the signal integrated out, plus what heavier tails
    than Gaussian ones would add to the likelihood of scores and loadings, less ``log(m) / 2`` for
    each of E edges with m observations and ``log C(Q, E)`` for their choice among Q pairs, less
    the price of unequal variances as draws from a common distribution. The search comes from
    both ends, networks first and signal first; it drops components as long as the evidence rises.
    Where the best two ends differ, what groups of rows or columns add to it counts, too.

    Examples
    --------
    >>> from mnpca import MNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.metrics import psnr
    >>> data = make_paper_small(c=224, seed=1)
    >>> model = MNPCA().fit(data.Y)
    >>> model.n_components_, model.noise_["columns"]["structure"]
    (2, 'graph')
    >>> psnr(model.denoise(), data.signal) > 15
    True
    """

    n_components: float | str = "auto"
    _: KW_ONLY
    noise: str | tuple[str, str] = "auto"
    center: Center = "auto"
    prior: PriorChoice = "auto"
    robust: bool = False
    missing: str = "em"
    max_iter: int = 9
    tol: float = 1e-2
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"auto"}),
        ],
        "noise": [StrOptions(set(STRUCTURES)), tuple, list],
        "center": ["boolean", StrOptions({"auto"})],
        "prior": [StrOptions({"auto", "gaussian", "mixture"})],
        "robust": ["boolean"],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None],
    }

    @property
    def _accepts(self) -> Accepts:
        # An outlier is found by comparison with all other entries, so robust fits need them dense.
        return Accepts(
            sparse=not self.robust,
            several=True,
            foreign=True,
            blocks=True,
            missing=self.missing == "em",
        )

    def _estimate(
        self, X: Any, problem: Incomplete | None, report: Report, resume: State | None
    ) -> None:
        rows, columns = self._structures()
        settings = Settings(
            rank=None,
            row_structure=rows,
            col_structure=columns,
            center=self.center,
            max_iter=self.max_iter,
            tol=self.tol,
            seed=seed_of(self.random_state),
            n_matrices=self.n_matrices_ or 1,
            prior=self.prior,
        )
        n_components = self._rank(X.shape, incomplete=problem is not None)
        options: Any = {"robust": self.robust, "report": negated(report), "resume": resume}
        self.predictions_: list[dict[str, Any]] | None = None
        with worker_threads(None if self.n_jobs is None else effective_n_jobs(self.n_jobs)):
            if problem is None:
                chosen = choose_model(X, n_components, settings, **options)
            else:
                chosen, outcome, self.predictions_ = choose_incomplete_model(
                    problem, n_components, settings, **options
                )
                store_outcome(self, X, outcome)
            self.edge_tests_ = self._edge_tests(chosen)
        self.row_chunks_ = X.chunks[0] if is_dask(X) else None
        self._store_choice(chosen)

    def _estimated_rows(self, X: Any) -> RowModel:
        """Let rows differ in scale, as far as those of the training matrix do."""
        rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], SCALED_ROWS)).astype(int)
        sample = engine_for(X).block(rows, np.arange(X.shape[1])) - self.mean_
        model = with_row_scales(super()._estimated_rows(X), sample)
        self.degrees_of_freedom_ = model.degrees_of_freedom
        return model

    def _store_choice(self, chosen: ChosenModel) -> None:
        """Set the fitted attributes, and warn of what is not right with the fit."""
        fit, shown = chosen.fit, chosen.shown
        self.objective_history_ = np.array([-entry[2] for entry in fit.history])
        self.evidence_ = fit.evidence
        self.candidates_ = [asdict(candidate) for candidate in fit.candidates]
        path = [{"n_components": rank, "evidence": value} for rank, value in fit.rank_path]
        self.rank_path_ = path if self.missing_ is None else None
        self.n_signal_ = len(fit.singular_values)
        asked = int(self.n_components) if isinstance(self.n_components, Integral) else None
        self.noise_, self.priors_, self.choice_ = explain(chosen, asked)
        self.outliers_ = None if chosen.outliers is None else self._as_fitted(chosen.outliers)
        self.converged_ = fit.converged or fit.last_change <= UNSETTLED * self.tol
        self.n_iter_ = fit.n_iter
        self.signal_variance_ = shown.signal_variance
        self.full_signal_: LowRank | None = None
        self.full_signal_variance_: LowRank | None = None
        if shown is not fit:
            self.full_signal_, self.full_signal_variance_ = fit.low_rank, fit.signal_variance
        self._store_fit(
            chosen.data,
            mean=fit.mean,
            low_rank=shown.low_rank,
            components=shown.loadings.T,
            singular_values=shown.singular_values,
            row_precision=fit.row_noise.base.precision,
            col_precision=fit.col_noise.precision,
        )
        self.model_check_ = check_residual(chosen)
        if not self.converged_:
            simpler = 'fewer components, noise="diagonal"'
            warnings.warn(
                f"MNPCA did not settle in {self.n_iter_} iterations: the last one changed the "
                f"signal or the noise level by {fit.last_change:.0%}. Use "
                f"{simpler if 'graph' in chosen.structures else 'fewer components'}, or a larger "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if self.model_check_["white"] is False:
            warnings.warn(self.model_check_["advice"], ModelCheckWarning, stacklevel=4)

    def _structures(self) -> list[Any]:
        """Return the structures that are asked for on the side of the rows and of the columns."""
        several = "a pair of these for rows and columns"
        return noise_structures(self.noise, STRUCTURES, 2, several)

    def _edge_tests(self, chosen: ChosenModel) -> dict[str, dict[str, Any]] | None:
        """Test the edges of a fit with networks to data in memory."""
        data, fit = chosen.data, chosen.fit
        if not isinstance(data, np.ndarray) or reads_in_blocks(data):
            return None
        if "graph" in (*chosen.structures, *self._structures()):
            tests = edge_tests(data, fit)
        else:
            tests = EdgeTests.none(fit.row_noise.base.size), EdgeTests.none(fit.col_noise.base.size)
        return dict(zip(("rows", "columns"), map(stored, tests), strict=True))

    def _rank(self, shape: tuple[int, ...], *, incomplete: bool) -> Any:
        """Return the number of components, or their share; as many as columns leave no noise."""
        if self.n_components == "auto":
            return None
        if not isinstance(self.n_components, Integral):
            if incomplete:
                raise ValueError(
                    f"n_components={self.n_components} is a share of the signal, which needs "
                    'complete data without covariates. Use a whole number, or "auto".'
                )
            return float(self.n_components)
        most = min(shape) - 1
        if self.n_components > min(shape):
            raise ValueError(
                f"n_components={self.n_components} is more than a {shape[0]} x {shape[1]} matrix "
                f'has. Use at most {most}, or "auto".'
            )
        if self.n_components > most:
            warnings.warn(
                f"n_components={self.n_components} would leave no noise to estimate in a "
                f"{shape[0]} x {shape[1]} matrix, so that {most} are fitted. Use "
                f'n_components={most}, or "auto"; PCA gives all {min(shape)}.',
                UserWarning,
                stacklevel=4,
            )
        return int(min(self.n_components, most))

    def denoise(self, *, return_std: bool = False, all_components: bool = False) -> Any:
        """Return the posterior mean of the training signal, with standard errors on request.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the posterior standard deviation of every entry too.
        all_components : bool, default=False
            Whether to return the signal of all `n_signal_` components that the model was fitted
            with, not only of those that `n_components` shows.

        Returns
        -------
        signal : ndarray of shape (n_samples, n_features)
            Mean row included.
        std : ndarray of shape (n_samples, n_features)
            Only with `return_std`.
        """
        check_is_fitted(self)
        signal: Any = self.low_rank_
        variance: Any = self.signal_variance_
        if all_components and self.full_signal_ is not None:
            signal, variance = self.full_signal_, self.full_signal_variance_
        mean = self._dense(signal, lambda rows: rows + self.mean_)
        if not return_std:
            return mean

        def root(variance: Any) -> Any:
            xp = namespace(variance)
            return xp.sqrt(xp.clip(variance, 0.0, None))

        return mean, self._dense(variance, root)
