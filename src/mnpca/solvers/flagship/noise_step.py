"""The noise given the signal: S1 and S2 with the correction D, then a precision of each."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.dense import DenseEngine
from mnpca.engines.gram import Gram
from mnpca.solvers.flagship.graph import Candidates, select_graph
from mnpca.solvers.flagship.noise_side import NoiseSide
from mnpca.solvers.flagship.scales import geometric_mean
from mnpca.solvers.flagship.variational import Posterior

Structure: TypeAlias = Literal["identity", "diagonal", "graph"]

#: Weight of the shrinkage target, in observations.
SHRINKAGE = 20.0
#: Variances are kept above this share of their mean.
VARIANCE_FLOOR = 1e-8


@dataclass(frozen=True)
class NoiseModel:
    """The precisions of both sides."""

    row: NoiseSide
    col: NoiseSide

    def in_gauge(self) -> "NoiseModel":
        """Return the same noise with ``logdet A = 0``."""
        scale = float(np.exp(self.row.log_determinant / self.row.size))
        return NoiseModel(self.row.scaled(1.0 / scale), self.col.scaled(scale))


@dataclass(frozen=True)
class Memory:
    """What noise steps remember of earlier ones: candidate edges of both sides."""

    row: Candidates = field(default_factory=Candidates)
    col: Candidates = field(default_factory=Candidates)


def noise_step(
    engine: DenseEngine,
    posterior: Posterior,
    noise: NoiseModel,
    row_structure: Structure,
    col_structure: Structure,
    memory: Memory,
) -> NoiseModel:
    """Re-estimate A and B from the residual and the uncertainty of the signal.

    ``S2 = (R'AR + D_B) / n`` and ``S1 = (R B R' + D_A) / p``, R = Y - E[signal] and D the
    posterior covariance of the signal seen from that side; each shrunk towards a multiple of the
    identity. The side with more observations comes first; the second one sees its new value.
    """
    n, p = engine.shape
    step = _diagonal_step if "graph" not in (row_structure, col_structure) else _graph_step
    row, col = noise.row, noise.col
    sides = step(engine, posterior, memory)
    if n >= p:
        col = sides.col(row, col, col_structure)
        row = sides.row(row, col, row_structure)
    else:
        row = sides.row(row, col, row_structure)
        col = sides.col(row, col, col_structure)
    return NoiseModel(row, col).in_gauge()


class _diagonal_step:
    """Both sides diagonal: two weighted sums of squares of one residual."""

    def __init__(self, engine: DenseEngine, posterior: Posterior, memory: Memory):
        self.shape = engine.shape
        self.posterior = posterior
        self.squares = engine.residual_squares(posterior.left, posterior.right)

    def row(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        spread = _thin_diagonal(posterior.left, posterior.right_spread)
        total = self.squares.row_sums(col.variances**-1) + spread
        total += row.marginal(posterior.row_uncertainty[:, None])[:, 0]
        return _diagonal_noise(total, self.shape[1], structure)

    def col(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        spread = _thin_diagonal(posterior.right, posterior.left_spread)
        total = self.squares.col_sums(row.variances**-1) + spread
        total += col.marginal(posterior.col_uncertainty[:, None])[:, 0]
        return _diagonal_noise(total, self.shape[0], structure)


class _graph_step:
    """At least one side with a graph: Gram matrices of the residual."""

    def __init__(self, engine: DenseEngine, posterior: Posterior, memory: Memory):
        self.engine = engine
        self.posterior = posterior
        self.memory = memory

    def row(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        gram = self.engine.row_gram(
            posterior.left, posterior.right, col.weights, posterior.right_spread
        )
        uncertainty = row.function(posterior.row_uncertainty)
        m = self.engine.shape[1]
        return _noise_from_gram(gram, uncertainty, m, structure, self.memory.row)

    def col(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        gram = self.engine.col_gram(
            posterior.left, posterior.right, row.weights, posterior.left_spread
        )
        uncertainty = col.function(posterior.col_uncertainty)
        m = self.engine.shape[0]
        return _noise_from_gram(gram, uncertainty, m, structure, self.memory.col)


def shrunk_variances(total: FloatArray, n_observations: int, structure: Structure) -> FloatArray:
    """Variances from sums of squares: ``(m v + 20 g) / (m + 20)``, g the geometric mean of v."""
    variances = total / n_observations
    if structure == "identity":
        return np.full_like(variances, variances.mean())
    variances = np.maximum(variances, VARIANCE_FLOOR * variances.mean())
    weight = n_observations / (n_observations + SHRINKAGE)
    return weight * variances + (1.0 - weight) * geometric_mean(variances)


def _diagonal_noise(total: FloatArray, n_observations: int, structure: Structure) -> NoiseSide:
    return NoiseSide.diagonal(1.0 / shrunk_variances(total, n_observations, structure))


def _thin_diagonal(thin: FloatArray, spread: FloatArray) -> FloatArray:
    """Diagonal of ``F spread F'``."""
    return np.asarray(np.einsum("ij,ij->i", thin @ spread, thin))


def _noise_from_gram(
    gram: Gram,
    uncertainty: tuple[FloatArray, sp.csr_array | None],
    n_observations: int,
    structure: Structure,
    candidates: Candidates,
) -> NoiseSide:
    """Precision from ``m S``: variances first, then the graph of the correlation."""
    diagonal, off_diagonal = uncertainty
    total = gram.diagonal() + diagonal
    if structure != "graph":
        return _diagonal_noise(total, n_observations, structure)
    scale = 1.0 / np.sqrt(shrunk_variances(total, n_observations, structure))
    gram.extra = off_diagonal
    gram.rescale(scale / np.sqrt(n_observations + SHRINKAGE))
    graph = select_graph(gram, n_observations, candidates)
    if graph is None:
        return NoiseSide.diagonal(scale**2)
    weights = sp.diags_array(scale)
    return NoiseSide.from_precision(sp.csr_array(weights @ graph.precision() @ weights))
