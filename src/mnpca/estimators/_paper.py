"""What the estimators of the paper's algorithms share: one solver for complete matrices."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mnpca.estimators._base import NoiseEstimator
from mnpca.estimators._incomplete import store_outcome
from mnpca.model.sparse_data import centered
from mnpca.selection.rank import choose_rank
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.missing.refit import Solve, fit_incomplete
from mnpca.solvers.missing.start import column_fill, first_guess
from mnpca.solvers.progress import Report, State


class PaperEstimator(NoiseEstimator):
    """An estimator whose solver takes a complete, centered matrix.

    A subclass has ``_solver(data, rank)``, which settles what depends on the data, such as
    penalties, and returns a `mnpca.solvers.missing.refit.Solve`; and ``_unconverged()``, which says
    what a fit that did not converge lacks, and the remedy.
    """

    n_components: int | str
    center: bool
    max_iter: int
    _solver: Callable[..., Solve]
    _unconverged: Callable[[], str]

    def _estimate(
        self, X: Any, problem: Incomplete | None, report: Report, resume: State | None
    ) -> None:
        data, mean = centered(X if problem is None else column_fill(problem), self.center)
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
                self._solver(centered(guess, self.center)[0], rank),
                center=self.center,
                ridge=getattr(self, "ridge", 0.0),
                report=report,
                resume=resume,
            )
            store_outcome(self, X, fit.outcome)
            X, solution, mean, signal = fit.data, fit.solution, fit.mean, fit.signal
        self.objective_history_ = np.array(solution.history)
        self.n_iter_ = len(solution.history) - 1
        self.converged_ = solution.converged
        if not self.converged_:
            text = f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations"
            warnings.warn(f"{text}{self._unconverged()}", ConvergenceWarning, stacklevel=3)
        self._store_fit(
            X,
            mean=mean,
            low_rank=signal.low_rank(),
            components=signal.right.T,
            singular_values=signal.singular_values,
            row_precision=solution.row_precision,
            col_precision=solution.col_precision,
        )
