"""Fits of matrices with holes and known covariates, around the solvers of complete matrices."""

from mnpca.solvers.missing.incomplete import Completion, Incomplete
from mnpca.solvers.missing.start import first_guess

__all__ = ["Completion", "Incomplete", "first_guess"]
