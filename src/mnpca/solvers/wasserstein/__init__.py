"""Wasserstein MN-PCA: proximal steps on the precisions, or the paper's steps on their factors."""

from mnpca.solvers.wasserstein.convex import fit_convex
from mnpca.solvers.wasserstein.gradient import fit_gradient
from mnpca.solvers.wasserstein.pair import Pair, WassersteinFit, identify

__all__ = ["Pair", "WassersteinFit", "fit_convex", "fit_gradient", "identify"]
