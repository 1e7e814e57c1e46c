"""Initial iterates from earlier results."""

from __future__ import annotations

import numpy as np

from mnpca.precision._kernels.certificate import fill_dual
from mnpca.precision._types import Array, Index
from mnpca.precision.certificate import Iterate
from mnpca.precision.problem import Problem
from mnpca.precision.result import PrecisionResult


class Start:
    """The iterate behind a result, or on the line through two results.

    ``t`` is how far beyond the last result to start, in units of its distance from the one before.
    """

    def __init__(
        self, last: PrecisionResult, before: PrecisionResult | None = None, t: float = 0.0
    ):
        self.last, self.before, self.t = _Recalled(last), before and _Recalled(before), t

    def iterate(self, problem: Problem, index: Index) -> Iterate:
        """Return a start for the variables of one component, feasible for its problem."""
        iterate = self.last.iterate(problem.diagonal, index)
        if self.before is not None:
            _extrapolate(iterate, self.before.iterate(problem.diagonal, index), self.t)
        T = iterate.to_precision()
        S, alpha, diagonal = problem.covariance, problem.alpha, problem.diagonal
        fill_dual(S, alpha, diagonal, iterate.W, *T, True, iterate.W)
        return iterate


class _Recalled:
    """A result whose components are looked up for those of another problem."""

    def __init__(self, result: PrecisionResult):
        self.precision, self.blocks = result.precision, result._blocks
        # Block of each variable, -1 for one that stands alone, and the place in it.
        self.number = np.full(len(result.labels), -1)
        self.place = np.zeros(len(result.labels), np.int64)
        for c, (index, _) in enumerate(self.blocks):
            self.number[index] = c
            self.place[index] = np.arange(len(index))

    def iterate(self, diagonal: Array, index: Index) -> Iterate:
        """Return the iterate behind the result for some variables, scaled to new variances."""
        T = self.precision
        T = (T if len(index) == T.shape[0] else T[index][:, index]).toarray()
        W = np.diag(1.0 / np.diagonal(T))
        number = self.number[index]
        for c in np.unique(number[number >= 0]):
            here = np.flatnonzero(number == c)
            variables, covariance = self.blocks[c]
            if len(here) == len(index) == len(variables):
                W = covariance.copy()
            else:
                at = self.place[index[here]]
                W[np.ix_(here, here)] = covariance[np.ix_(at, at)]
        scale = np.sqrt(diagonal / np.diagonal(W))
        units = scale * scale[:, None]
        return Iterate.of(T / units, W * units)


def _extrapolate(iterate: Iterate, before: Iterate, t: float) -> None:
    """Go on from an earlier iterate through this one by t times their distance, in place.

    Regressions may shrink to zero, but neither appear nor change sign.
    """
    iterate.W += t * (iterate.W - before.W)
    ahead = iterate.B + t * (iterate.B - before.B) * (before.B != 0)
    iterate.B = np.where(ahead * iterate.B > 0, ahead, 0.0)
    iterate.theta *= (iterate.theta / before.theta) ** t
