"""What the estimators of the paper's algorithms share: one solver for complete matrices."""

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines import engine_for
from mnpca.engines.arrays import astype, namespace, to_numpy
from mnpca.estimators._incomplete import NoiseEstimator
from mnpca.model.sparse_data import CenteredSparse
from mnpca.selection.rank import choose_rank
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.missing.refit import IncompleteFit, fit_incomplete
from mnpca.solvers.missing.start import column_fill, first_guess
from mnpca.solvers.progress import Report, State

#: Parts of the documentation that the estimators of the paper's algorithms share.
SHARED_DOCS = {
    "center_and_missing": """center : bool, default=True
        Whether to subtract the mean of every column. The paper's experiments do not.
    missing : {"em", "error"}, default="em"
        What NaN in X means: a missing value, replaced in every step of the fit by what the model
        expects of it, with the uncertainty that this leaves; or an error.""",
    "components": """components_ : ndarray of shape (n_components, n_features)
        Loadings, orthonormal in the metric ``col_precision_``; the largest absolute loading of
        each is positive.
    singular_values_ : ndarray of shape (n_components,)
        Generalized singular values.
    low_rank_ : LowRank
        Scores and loadings of the estimated signal, the mean left out.
    mean_ : ndarray of shape (n_features,)
        Subtracted mean, or zeros.""",
    "distribution": """n_components_ : int
        Number of components.
    explained_variance_, explained_variance_ratio_ : ndarrays of shape (n_components,)
        Variances of a row's scores, and their shares of the variance of a row in the metric B.
    missing_, completed_, completed_std_ : ndarrays of shape (n_samples, n_features) or None
        Where X had missing values: which, the completed matrix, and its standard errors; see
        `impute`.
    row_coef_ : ndarray of shape (n_row_covariates, n_features) or None
        Effects of the row covariates: `row_covariates_` with `row_covariates_mean_` subtracted.
    col_coef_ : ndarray of shape (n_samples, n_col_covariates) or None
        Effects of the column covariates, which `col_covariates_` keeps.
    noise_variance_, score_covariance_ : float, ndarray
        The distribution of a row that `score` assumes.""",
    "references": """References
    ----------
    .. [1] C. Zhang, K. Gai and S. Zhang, "Matrix normal PCA for interpretable dimension reduction
       and graphical noise modeling" (2019).""",
}


class PaperEstimator(NoiseEstimator):
    """An estimator whose solver takes a complete, centered matrix.

    A subclass has ``_solver(data, rank)``, which settles what depends on the data, such as
    penalties, and returns a `mnpca.solvers.missing.refit.Solve`; and ``_warn_unless_converged()``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:
            cls.__doc__ = inspect.cleandoc(cls.__doc__)
            for name, text in SHARED_DOCS.items():
                cls.__doc__ = cls.__doc__.replace(f"{{{name}}}", inspect.cleandoc(text))

    def _estimate(
        self, X: Any, problem: Incomplete | None, report: Report, resume: State | None
    ) -> None:
        data, mean = self._centered(X if problem is None else column_fill(problem))
        rank = choose_rank(self.n_components, data)
        if problem is None:
            solution = self._solver(data, rank)(data, report, resume)
            fit = IncompleteFit(solution, mean, solution.signal, None, X)
        else:
            guess = first_guess(problem, rank, self.center, seed=0)
            fit = fit_incomplete(
                problem,
                guess,
                rank,
                self._solver(self._centered(guess)[0], rank),
                center=self.center,
                ridge=getattr(self, "ridge", 0.0),
                report=report,
                resume=resume,
            )
            assert fit.outcome is not None
            self._store_incomplete(X, fit.outcome)
        self.objective_history_ = np.array(fit.solution.history)
        self.n_iter_ = len(fit.solution.history) - 1
        self.converged_ = fit.solution.converged
        self._warn_unless_converged()
        self._store_fit(
            fit.data,
            mean=fit.mean,
            low_rank=fit.signal.low_rank(),
            components=fit.signal.right.T,
            singular_values=fit.signal.singular_values,
            row_precision=fit.solution.row_precision,
            col_precision=fit.solution.col_precision,
        )

    def _centered(self, data: Any) -> tuple[Any, FloatArray]:
        """Return the matrix less its mean row, and that row."""
        if sp.issparse(data):
            mean = engine_for(data).column_means() if self.center else np.zeros(data.shape[1])
            return CenteredSparse(sp.csr_array(data, dtype=np.float64), mean), mean
        data = astype(data, "float64")
        if not self.center:
            return data, np.zeros(data.shape[1])
        mean = namespace(data).mean(data, axis=0)
        return data - mean[None, :], to_numpy(mean)
