"""What the estimators of the paper's algorithms share: one solver for complete matrices."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from mnpca._typing import FloatArray
from mnpca.engines import engine_for
from mnpca.engines.arrays import astype, namespace, to_numpy
from mnpca.estimators._incomplete import NoiseEstimator
from mnpca.model.sparse_data import CenteredSparse
from mnpca.selection.rank import choose_rank
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.missing.refit import fit_incomplete
from mnpca.solvers.missing.start import column_fill, first_guess
from mnpca.solvers.progress import Report, State


class PaperEstimator(NoiseEstimator):
    """An estimator whose solver takes a complete, centered matrix.

    A subclass has ``_solver(data, rank)``, which settles what depends on the data, such as
    penalties, and returns a `mnpca.solvers.missing.refit.Solve`; and ``_warn_unless_converged()``.
    """

    n_components: int | str
    center: bool

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **NoiseEstimator._parameter_constraints,
        "center": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def _estimate(
        self, X: Any, problem: Incomplete | None, report: Report, resume: State | None
    ) -> None:
        data, mean = self._centered(X if problem is None else column_fill(problem))
        rank = choose_rank(self.n_components, data)
        if problem is None:
            solution = self._solver(data, rank)(data, report, resume)
            signal = solution.signal
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
            self._store_incomplete(X, fit.outcome)
            X, solution, mean, signal = fit.data, fit.solution, fit.mean, fit.signal
        self.objective_history_ = np.array(solution.history)
        self.n_iter_ = len(solution.history) - 1
        self.converged_ = solution.converged
        self._warn_unless_converged()
        self._store_fit(
            X,
            mean=mean,
            low_rank=signal.low_rank(),
            components=signal.right.T,
            singular_values=signal.singular_values,
            row_precision=solution.row_precision,
            col_precision=solution.col_precision,
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
