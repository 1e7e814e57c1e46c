"""The flagship as a scikit-learn estimator."""

import warnings
from dataclasses import asdict
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.selection.auto_rank import fit_auto_rank
from mnpca.solvers.flagship import fit_flagship
from mnpca.solvers.flagship.search import Settings


class MNPCA(MatrixNormalEstimator):
    """PCA for correlated noise, with nothing to tune.

    Estimates ``Y = 1 mean' + X W' + E`` with ``E ~ MN(0, inv A, inv B)``: a low-rank signal and
    two sparse noise networks, one among the samples and one among the features, all from one
    matrix. The signal is averaged over its posterior instead of truncated; the noise is estimated
    from the residual plus the uncertainty of the signal; edges enter by score tests and are
    refitted without a penalty. See the method page of the documentation.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Number of components; "auto" takes as many as stand above the noise and spread over rows
        and columns.
    noise : {"auto", "graph", "diagonal"}, default="auto"
        Structure of the noise: networks on both sides, unequal variances only, or chosen.
    center : bool or "auto", default="auto"
        Whether the model has a mean row; "auto" compares the evidence of both.
    max_iter : int, default=9
        Most iterations of the diagonal stage.
    tol : float, default=1e-2
        A stage ends when the signal changes by less than this share.
    random_state : int, RandomState instance or None, default=None
        Source of the random start of the subspace iteration, on which the result depends by
        rounding only; None is a fixed start, so that fits can be repeated and resumed.
    verbose : int, default=0
        Whether to print every iteration.

    Examples
    --------
    >>> from mnpca import MNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.metrics import psnr
    >>> data = make_paper_small(c=224, seed=1)
    >>> model = MNPCA(n_components=2, random_state=0).fit(data.Y)
    >>> psnr(model.denoise(), data.signal) > 15
    True
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "noise": [StrOptions({"auto", "graph", "diagonal"})],
        "center": ["boolean", StrOptions({"auto"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_components="auto",
        *,
        noise="auto",
        center="auto",
        max_iter=9,
        tol=1e-2,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.noise = noise
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
        seed = self._seed()
        structure = "graph" if self.noise == "auto" else self.noise
        common = {"center": self.center, "max_iter": self.max_iter, "tol": self.tol}
        with self._progress(X, callback, checkpoint, resume_from) as (report, resume):
            if self.n_components == "auto":
                settings = Settings(
                    rank=0, row_structure=structure, col_structure=structure, seed=seed, **common
                )
                fit, trials = fit_auto_rank(data, settings, report, resume)
                self.rank_path_ = [asdict(trial) for trial in trials]
            else:
                rank = self._rank(X.shape)
                fit = fit_flagship(
                    data,
                    rank,
                    noise=structure,
                    random_state=seed,
                    report=report,
                    resume=resume,
                    **common,
                )
                self.rank_path_ = None
        self.objective_history_ = np.array([entry[2] for entry in fit.history])
        self.candidates_ = [asdict(candidate) for candidate in fit.candidates]
        self.converged_ = fit.converged
        self.n_iter_ = fit.n_iter
        self._warn_unless_converged()
        self.signal_variance_ = fit.signal_variance
        self._store_fit(
            X,
            mean=fit.mean,
            low_rank=fit.low_rank,
            components=fit.loadings.T,
            singular_values=fit.singular_values,
            row_precision=fit.row_noise.precision,
            col_precision=fit.col_noise.precision,
        )
        return self

    def _seed(self):
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _rank(self, shape):
        """Return the number of components; as many as columns would leave no noise."""
        if self.n_components > min(shape):
            raise ValueError(
                f"n_components={self.n_components} is more than a {shape[0]} x {shape[1]} matrix "
                f'has. Use at most {min(shape) - 1}, or "auto".'
            )
        return min(self.n_components, min(shape) - 1)

    def _warn_unless_converged(self):
        if not self.converged_:
            warnings.warn(
                f"MNPCA did not settle in {self.n_iter_} iterations: the signal still changes by "
                f"more than tol={self.tol:g} of its size. Use fewer components, "
                'noise="diagonal", or a larger max_iter or tol.',
                ConvergenceWarning,
                stacklevel=3,
            )

    def denoise(self, *, return_std=False):
        """Return the posterior mean of the training signal, with standard errors on request.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the posterior standard deviation of every entry too.
        """
        check_is_fitted(self)
        signal = super().denoise()
        if not return_std:
            return signal
        return signal, np.sqrt(np.maximum(self.signal_variance_.dense(), 0.0))
