"""A matrix with missing cells and covariates, and what the present model expects of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mnpca._typing import BoolArray, FloatArray, Precision
from mnpca.model.conditional import MissingNoise, sample_noise
from mnpca.model.effects import Covariates, Effects
from mnpca.model.low_rank import LowRank

#: Rounds between the effects of covariates and the missing cells, where there are both.
EFFECT_ROUNDS = 3


class Completion(NamedTuple):
    """What the model expects of an incomplete matrix, given what was observed.

    `filled` is the matrix with missing cells at their conditional means, `fitted` signal and
    effects together, `cells` the conditional mean of the noise in the missing cells.
    """

    filled: FloatArray
    effects: Effects
    fitted: FloatArray
    cells: FloatArray


class Outcome(NamedTuple):
    """What a fit says about missing cells and covariates.

    `std` has the standard errors of the filled cells as predictions, signal and noise together; 0
    elsewhere.
    """

    effects: Effects
    filled: FloatArray
    std: FloatArray


@dataclass(frozen=True)
class Incomplete:
    """``Y = Z G + H C' + signal + E``, known in some cells only; zero in the missing ones."""

    matrix: FloatArray
    missing: BoolArray
    covariates: Covariates

    def under(self, row_precision: Precision, col_precision: Precision) -> "Expectation":
        """Return the expectations under noise with these precisions."""
        return Expectation(self, MissingNoise(self.missing, row_precision, col_precision))


class Expectation:
    """Conditional expectations of an incomplete matrix under one noise model."""

    def __init__(self, problem: Incomplete, noise: MissingNoise) -> None:
        self.problem = problem
        self.noise = noise
        self.precisions = (noise.row_precision, noise.col_precision)

    def complete(
        self, signal: FloatArray, cells: FloatArray | None = None, *, tol: float = 1e-2
    ) -> Completion:
        """Return the expected matrix given the signal, mean row included.

        The search for the noise in the missing cells starts from `cells`.
        """
        problem, missing = self.problem, self.problem.missing
        filled = np.where(missing, signal, problem.matrix)
        known = problem.covariates.any
        effects, fitted = problem.covariates.nothing(), signal
        for _ in range(EFFECT_ROUNDS if known and missing.any() else 1):
            if known:
                effects = problem.covariates.estimate(filled - signal, *self.precisions)
                fitted = signal + problem.covariates.dense(effects)
            cells = self.noise.mean(problem.matrix - fitted, cells, tol=tol)
            filled[missing] = fitted[missing] + cells
        assert cells is not None
        return Completion(filled, effects, fitted, cells)

    def for_signal(self, completion: Completion) -> FloatArray:
        """Return what the signal is estimated from: the expected matrix less its effects."""
        return self.problem.covariates.without(completion.filled, *self.precisions)

    def for_noise(self, completion: Completion, rng: np.random.Generator) -> FloatArray:
        """Return a matrix with the second moments that the noise is estimated from.

        Expected values vary less than the noise does. Instead, the noise in the missing cells is
        drawn from its conditional distribution, and the effects of covariates from theirs, so that
        ``E[R'AR]`` and ``E[R B R']`` hold the conditional covariances as they should.
        """
        covariates, missing = self.problem.covariates, self.problem.missing
        drawn = completion.filled
        if missing.any():
            drawn = drawn.copy()
            residual = self.problem.matrix - completion.fitted
            cells = self.noise.draw(residual, sample_noise(*self.precisions, rng))
            drawn[missing] = completion.fitted[missing] + cells
        drawn = covariates.without(drawn, *self.precisions)
        if covariates.any:
            other = sample_noise(*self.precisions, rng)
            drawn = drawn + other - covariates.without(other, *self.precisions)
        return drawn

    def outcome(self, completion: Completion, signal_variance: LowRank) -> Outcome:
        """Return what is reported, from the variance of every entry of the signal as factors."""
        missing = self.problem.missing
        rows, cols = np.nonzero(missing)
        left, right = signal_variance
        variances = np.einsum("ck,ck->c", left[rows], right[cols]) + self.noise.variances()
        std = np.zeros(missing.shape)
        std[missing] = np.sqrt(variances)
        return Outcome(completion.effects, completion.filled, std)


def relative_change(new: FloatArray, old: FloatArray) -> float:
    """Return ``|new - old|`` as a share of the larger of the two."""
    size = max(float(np.linalg.norm(new)), float(np.linalg.norm(old)), np.finfo(float).tiny)
    return float(np.linalg.norm(new - old)) / size
