"""The noise given the signal: S1 and S2 with the correction D, then a precision of each."""

from dataclasses import dataclass, field

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.engines.gram import FactorGram, Gram
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure, diagonal_noise, noise_from_gram
from mnpca.noise.graph import Candidates, graph_can_show
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
    step = _Step(engine, posterior, memory)
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
    step = _Step(engine, posterior, Memory())
    if axis:
        return NoiseModel(row, step.col(row, col, structure)).in_gauge()
    return NoiseModel(step.row(row, col, structure), col).in_gauge()


@dataclass(frozen=True)
class _Step:
    """The two halves of a noise step.

    A side whose edges are looked for needs a Gram matrix, any other side its diagonal.
    """

    engine: Engine
    signal: Posterior
    memory: Memory

    def row(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        """Return the precision of the rows."""
        signal, m = self.signal, self.engine.shape[1] * row.n_repeats
        factors = signal.left, signal.right, col.weights
        if structure == "graph" and graph_can_show(row.base.size, m):
            gram = self.engine.row_gram(*factors, signal.left, signal.right_spread)
            gram = _pooled(gram, row.n_repeats)
            uncertainty = row.function(signal.row_uncertainty)
            side = noise_from_gram(gram, uncertainty, m, structure, self.memory.row)
        else:
            total = self.engine.row_norms(*factors)
            total += _thin_diagonal(signal.left, signal.right_spread)
            total += row.marginal(signal.row_uncertainty[:, None])[:, 0]
            side = diagonal_noise(row.pool(total), m, structure)
        return side.tile(row.n_repeats)

    def col(self, row: AxisPrecision, col: AxisPrecision, structure: Structure) -> AxisPrecision:
        """Return the precision of the columns."""
        signal, m = self.signal, self.engine.shape[0]
        factors = signal.left, signal.right, row.weights
        if structure == "graph" and graph_can_show(col.size, m):
            gram = self.engine.col_gram(*factors, signal.right, signal.left_spread)
            uncertainty = col.function(signal.col_uncertainty)
            return noise_from_gram(gram, uncertainty, m, structure, self.memory.col)
        total = self.engine.col_norms(*factors)
        total += _thin_diagonal(signal.right, signal.left_spread)
        total += col.marginal(signal.col_uncertainty[:, None])[:, 0]
        return diagonal_noise(total, m, structure)


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
