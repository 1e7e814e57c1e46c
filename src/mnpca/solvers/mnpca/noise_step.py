"""The noise given the signal: S1 and S2 with the correction D, then a precision of each."""

from dataclasses import dataclass, field

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.engines.gram import FactorGram, Gram
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure, diagonal_noise, noise_from_gram
from mnpca.noise.graph import Candidates
from mnpca.solvers.mnpca.variational import Posterior


@dataclass(frozen=True)
class Memory:
    """What noise steps remember of earlier ones: candidate edges of both sides."""

    row: Candidates = field(default_factory=Candidates)
    col: Candidates = field(default_factory=Candidates)

    def reopen(self) -> None:
        """Let the next noise step look at all pairs again."""
        self.row.complete = self.col.complete = False


def noise_step(
    engine: Engine,
    posterior: Posterior,
    noise: NoiseModel,
    row_structure: Structure,
    col_structure: Structure,
    memory: Memory,
) -> NoiseModel:
    """Re-estimate A and B from the residual and the uncertainty of the signal.

    ``S2 = (R'AR + D_B) / n`` and ``S1 = (R B R' + D_A) / p``, R = Y - E[signal] and D the
    posterior covariance of the signal seen from that side; each with a ridge. The side with
    more observations comes first; the second one sees its new value. Several matrices, one under
    the other, have one A: ``S1`` is the mean over them.
    """
    n, p = engine.shape
    row, col = noise.row, noise.col
    if "graph" in (row_structure, col_structure):
        step: _DiagonalStep | _GraphStep = _GraphStep(engine, posterior, memory)
    else:
        step = _DiagonalStep(engine, posterior)
    if n >= p:
        col = step.col(row, col, col_structure)
        row = step.row(row, col, row_structure)
    else:
        row = step.row(row, col, row_structure)
        col = step.col(row, col, col_structure)
    return NoiseModel(row, col).in_gauge()


def simpler_noise(
    engine: Engine, posterior: Posterior, noise: NoiseModel, axis: int, structure: Structure
) -> NoiseModel:
    """Re-estimate the noise of one axis with variances alone; the other axis stays as it is."""
    row, col = noise.row, noise.col
    if (row if axis else col).is_diagonal:
        step: _DiagonalStep | _GraphStep = _DiagonalStep(engine, posterior)
    else:
        step = _GraphStep(engine, posterior, Memory())
    if axis:
        return NoiseModel(row, step.col(row, col, structure)).in_gauge()
    return NoiseModel(step.row(row, col, structure), col).in_gauge()


class _DiagonalStep:
    """Both sides diagonal: two weighted sums of squares of one residual."""

    def __init__(self, engine: Engine, posterior: Posterior):
        self.shape = engine.shape
        self.posterior = posterior
        self.squares = engine.residual_squares(posterior.left, posterior.right)

    def row(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        posterior = self.posterior
        total = self.squares.row_sums(1.0 / col.variances)
        total += _thin_diagonal(posterior.left, posterior.right_spread)
        total += row.marginal(posterior.row_uncertainty[:, None])[:, 0]
        m = self.shape[1] * row.n_repeats
        return diagonal_noise(row.pool(total), m, structure).tile(row.n_repeats)

    def col(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        posterior = self.posterior
        total = self.squares.col_sums(1.0 / row.variances)
        total += _thin_diagonal(posterior.right, posterior.left_spread)
        total += col.marginal(posterior.col_uncertainty[:, None])[:, 0]
        return diagonal_noise(total, self.shape[0], structure)


class _GraphStep:
    """At least one side with a graph: Gram matrices of the residual."""

    def __init__(self, engine: Engine, posterior: Posterior, memory: Memory):
        self.engine = engine
        self.posterior = posterior
        self.memory = memory

    def row(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        signal = self.posterior
        uncertainty = row.function(signal.row_uncertainty)
        gram = self.engine.row_gram(
            signal.left, signal.right, col.weights, signal.left, signal.right_spread
        )
        m = self.engine.shape[1] * row.n_repeats
        gram = _pooled(gram, row.n_repeats)
        side = noise_from_gram(gram, uncertainty, m, structure, self.memory.row)
        return side.tile(row.n_repeats)

    def col(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        signal = self.posterior
        uncertainty = col.function(signal.col_uncertainty)
        gram = self.engine.col_gram(
            signal.left, signal.right, row.weights, signal.right, signal.left_spread
        )
        m = self.engine.shape[0]
        return noise_from_gram(gram, uncertainty, m, structure, self.memory.col)


def _pooled(gram: Gram, n_repeats: int) -> Gram:
    """Add up the blocks on the diagonal that belong to the repeats of the items."""
    if n_repeats == 1:
        return gram
    if not isinstance(gram, FactorGram):
        raise TypeError("Several matrices are fitted in memory only; give one NumPy array.")
    # The sum of products is a product of longer factors.
    left, right = (
        np.concatenate(np.split(factor, n_repeats), axis=1) for factor in (gram.left, gram.right)
    )
    return FactorGram(left, right)


def _thin_diagonal(thin: FloatArray, spread: FloatArray) -> FloatArray:
    """Diagonal of ``F spread F'``."""
    return np.asarray(np.einsum("ij,ij->i", thin @ spread, thin))
