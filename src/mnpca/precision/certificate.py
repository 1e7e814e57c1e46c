"""Duality gap of a pair of iterates.

The dual of min -logdet T + tr(S T) + |alpha o T|_1 is max logdet W + p over |W - S| <= alpha
(equality on an unpenalised diagonal). Each of the two values costs one Cholesky factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mnpca.precision._kernels.certificate import fill_dual, fill_primal
from mnpca.precision.problem import Problem
from mnpca.precision.result import Array


def log_determinant(lower: Array) -> float:
    """Log-determinant from the lower triangle (overwritten), or -inf if not positive definite."""
    # The C-ordered lower triangle is the Fortran-ordered upper one, so nothing is copied.
    factor, info = lapack.dpotrf(lower.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        return -np.inf
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def primal_value(problem: Problem, B: Array, theta: Array, work: Array) -> float:
    """Objective at the symmetric precision of the regressions B, theta; inf if not definite."""
    cost = fill_primal(problem.covariance, problem.alpha, problem.diagonal, B, theta, work)
    return float(cost) - log_determinant(work)


def dual_value(problem: Problem, W: Array, B: Array, work: Array, enough: float) -> float:
    """Dual objective at a feasible point near W; -inf if that is not positive definite.

    B gives the support of the precision and minus its signs. A point that uses them errs by
    second order only; where that one has less than ``enough``, W clipped is tried too, which is
    nearer to W and so more often definite.
    """
    best = -np.inf
    for on_support in (True, False):
        fill_dual(problem.covariance, problem.alpha, problem.diagonal, W, B, on_support, work)
        best = max(best, log_determinant(work) + problem.size)
        if best >= enough:
            break
    return best
