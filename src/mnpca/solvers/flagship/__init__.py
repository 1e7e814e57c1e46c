"""The flagship: signal averaged over its uncertainty, noise networks chosen by scores."""

from mnpca.solvers.flagship.fit import Candidate, FlagshipFit, fit_flagship

__all__ = ["Candidate", "FlagshipFit", "fit_flagship"]
