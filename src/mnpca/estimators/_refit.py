"""Holes and covariates for estimators whose solver takes a complete matrix at a time."""

import numpy as np

from mnpca.estimators._incomplete import IncompleteMixin
from mnpca.selection.rank import choose_rank
from mnpca.solvers.missing import first_guess
from mnpca.solvers.missing.refit import fit_again
from mnpca.solvers.missing.start import column_fill


class RefitMixin(IncompleteMixin):
    """Fits incomplete matrices by `fit_again`.

    The estimator has ``_solver(data, rank)``, which makes the solver for `fit_again` from a first
    completed and centered matrix, and ``_warn_unless_converged()``.
    """

    def _store_history(self, fit):
        """Set what a fit tells of how it went, and warn where it did not settle."""
        self.objective_history_ = np.array(fit.history)
        self.n_iter_ = len(fit.history) - 1
        self.converged_ = fit.converged
        self._warn_unless_converged()

    def _fit_again(self, problem, X, covariates, progress):
        """Fit an incomplete problem; `progress` are the arguments of fit of that kind."""
        data = column_fill(problem)
        rank = choose_rank(self.n_components, data - data.mean(axis=0) if self.center else data)
        guess = first_guess(problem, rank, self.center, seed=0)
        solve = self._solver(guess - guess.mean(axis=0) if self.center else guess, rank)
        with self._progress(self._fit_data(X, *covariates), *progress) as (report, resume):
            fit = fit_again(
                problem,
                guess,
                rank,
                solve,
                center=self.center,
                ridge=getattr(self, "ridge", 0.0),
                report=report,
                resume=resume,
            )
        self._store_history(fit.solution.detail)
        self._store_incomplete(X, fit.outcome)
        self._store_fit(
            fit.data,
            mean=fit.mean,
            low_rank=fit.signal.low_rank(),
            components=fit.signal.right.T,
            singular_values=fit.signal.singular_values,
            row_precision=fit.solution.row_precision,
            col_precision=fit.solution.col_precision,
        )
        return self
