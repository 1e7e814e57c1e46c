"""MNPCA: signal averaged over its uncertainty, noise networks chosen by scores."""

from mnpca.solvers.mnpca.fit import Candidate, MNPCAFit, fit_mnpca

__all__ = ["Candidate", "MNPCAFit", "fit_mnpca"]
