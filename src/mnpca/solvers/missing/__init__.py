"""Fits of incomplete matrices with known covariates, around the solvers of complete ones."""

from mnpca.solvers.missing.incomplete import Completion, Incomplete, Outcome
from mnpca.solvers.missing.start import first_fit, first_guess

__all__ = ["Completion", "Incomplete", "Outcome", "first_fit", "first_guess"]
