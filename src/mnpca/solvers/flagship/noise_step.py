"""The noise given the signal: S1 and S2 with the correction D, then a precision of each."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import polygamma

from mnpca._typing import FloatArray
from mnpca.engines.base import Engine, Gram
from mnpca.engines.gram import FactorGram
from mnpca.solvers.flagship.graph import STRICT, Candidates, Levels, select_graph
from mnpca.solvers.flagship.noise_side import NoiseSide
from mnpca.solvers.flagship.scales import geometric_mean
from mnpca.solvers.flagship.variational import Posterior

Structure: TypeAlias = Literal["identity", "diagonal", "graph"]

#: Weight of the ridge on each side's covariance, in observations.
RIDGE = 10.0
#: Where a graph is to be found, it falls to an eighth of the observations that there are, but not
#: below this: the ridge hides correlations, and the conditional variances are pooled anyway.
LEAST_RIDGE = 5.0
#: A correlation above this is never taken for a remainder of the signal.
NO_ARTEFACT = 0.1
#: Variances are kept above this share of their mean.
VARIANCE_FLOOR = 1e-8


@dataclass(frozen=True)
class NoiseModel:
    """The precisions of both sides."""

    row: NoiseSide
    col: NoiseSide

    @property
    def is_diagonal(self) -> bool:
        """Tell whether neither side has a graph."""
        return self.row.is_diagonal and self.col.is_diagonal

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
    engine: Engine,
    posterior: Posterior,
    noise: NoiseModel,
    row_structure: Structure,
    col_structure: Structure,
    memory: Memory,
    levels: Levels = STRICT,
    blur: float = 0.0,
) -> NoiseModel:
    """Re-estimate A and B from the residual and the uncertainty of the signal.

    ``S2 = (R'AR + D_B) / n`` and ``S1 = (R B R' + D_A) / p``, R = Y - E[signal] and D the
    posterior covariance of the signal seen from that side; each with a ridge. The side with
    more observations comes first; the second one sees its new value. Several matrices, one under
    the other, have one A: ``S1`` is the mean over them.

    `blur` says how far the noise may still be from its end. D is right only if the noise it was
    computed with is; otherwise the signal leaves correlations of the order sqrt(k) / q among q
    items, k components. With very many observations they would pass for edges, and as edges they
    would stay. So edges below ``blur sqrt(k) / q`` do not enter.
    """
    n, p = engine.shape
    row, col = noise.row, noise.col
    if "graph" in (row_structure, col_structure):
        step: _DiagonalStep | _GraphStep = _GraphStep(engine, posterior, memory, levels, blur)
    else:
        step = _DiagonalStep(engine, posterior)
    if n >= p:
        col = step.col(row, col, col_structure)
        row = step.row(row, col, row_structure)
    else:
        row = step.row(row, col, row_structure)
        col = step.col(row, col, col_structure)
    return NoiseModel(row, col).in_gauge()


class _DiagonalStep:
    """Both sides diagonal: two weighted sums of squares of one residual."""

    def __init__(self, engine: Engine, posterior: Posterior):
        self.shape = engine.shape
        self.posterior = posterior
        self.squares = engine.residual_squares(posterior.left, posterior.right)

    def row(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        total = self.squares.row_sums(1.0 / col.variances)
        total += _thin_diagonal(posterior.left, posterior.right_spread)
        total += row.marginal(posterior.row_uncertainty[:, None])[:, 0]
        m = self.shape[1] * row.copies
        return _diagonal_noise(row.pool(total), m, structure).repeated(row.copies)

    def col(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        posterior = self.posterior
        total = self.squares.col_sums(1.0 / row.variances)
        total += _thin_diagonal(posterior.right, posterior.left_spread)
        total += col.marginal(posterior.col_uncertainty[:, None])[:, 0]
        return _diagonal_noise(total, self.shape[0], structure)


class _GraphStep:
    """At least one side with a graph: Gram matrices of the residual."""

    def __init__(
        self,
        engine: Engine,
        posterior: Posterior,
        memory: Memory,
        levels: Levels,
        blur: float,
    ):
        self.levels = levels
        self.blur = blur * float(np.sqrt(posterior.rank))
        self.engine = engine
        self.posterior = posterior
        self.memory = memory

    def row(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        signal = self.posterior
        uncertainty = row.function(signal.row_uncertainty)
        gram = self.engine.row_gram(
            signal.left, signal.right, col.weights, signal.left, signal.right_spread
        )
        m = self.engine.shape[1] * row.copies
        gram = _pooled(gram, row.copies)
        floor = self._floor(gram.size)
        side = noise_from_gram(gram, uncertainty, m, structure, self.memory.row, self.levels, floor)
        return side.repeated(row.copies)

    def col(self, row: NoiseSide, col: NoiseSide, structure: Structure) -> NoiseSide:
        signal = self.posterior
        uncertainty = col.function(signal.col_uncertainty)
        gram = self.engine.col_gram(
            signal.left, signal.right, row.weights, signal.right, signal.left_spread
        )
        m = self.engine.shape[0]
        floor = self._floor(gram.size)
        return noise_from_gram(gram, uncertainty, m, structure, self.memory.col, self.levels, floor)

    def _floor(self, size: int) -> float:
        return min(self.blur / size, NO_ARTEFACT)


def ridged_variances(total: FloatArray, n_observations: int, ridge: float = RIDGE) -> FloatArray:
    """Variances from sums of squares: ``(m v + r g) / (m + r)``, g the geometric mean of v.

    The ridge keeps an item that a component fits perfectly from an infinite precision. All items
    are pulled to one level on purpose: a level of its own for each row would suit noise that
    differs by decades from row to row, but in data from life rows that the components happen to
    fit well would take all the weight.
    """
    variances = total / n_observations
    variances = np.maximum(variances, VARIANCE_FLOOR * variances.mean())
    weight = n_observations / (n_observations + ridge)
    return np.asarray(weight * variances + (1.0 - weight) * geometric_mean(variances))


def pooled_variances(variances: FloatArray, n_observations: int) -> FloatArray:
    """Shrink log variances to their mean as far as their scatter is sampling error.

    A log variance from m observations has sampling variance trigamma(m / 2). What the observed
    scatter exceeds it by is real, so a log variance keeps the share (scatter - sampling) /
    scatter of its distance from the mean (as in Smyth 2004 for genes).
    """
    logs = np.log(variances)
    centre = logs.mean()
    scatter = float(np.mean((logs - centre) ** 2))
    sampling = float(polygamma(1, n_observations / 2))
    share = max(1.0 - sampling / scatter, 0.0) if scatter > 0.0 else 0.0
    return np.asarray(np.exp(centre + share * (logs - centre)))


def _diagonal_noise(total: FloatArray, n_observations: int, structure: Structure) -> NoiseSide:
    if structure == "identity":
        return NoiseSide.diagonal(np.full_like(total, n_observations / total.mean()))
    return NoiseSide.diagonal(1.0 / ridged_variances(total, n_observations))


def _pooled(gram: Gram, copies: int) -> Gram:
    """Add up the blocks on the diagonal that belong to the copies of the items."""
    if copies == 1:
        return gram
    if not isinstance(gram, FactorGram):
        raise TypeError("Several matrices are fitted in memory only; give one NumPy array.")
    # The sum of products is a product of longer factors.
    left, right = (
        np.concatenate(np.split(factor, copies), axis=1) for factor in (gram.left, gram.right)
    )
    return FactorGram(left, right)


def _thin_diagonal(thin: FloatArray, spread: FloatArray) -> FloatArray:
    """Diagonal of ``F spread F'``."""
    return np.asarray(np.einsum("ij,ij->i", thin @ spread, thin))


def noise_from_gram(
    gram: Gram,
    uncertainty: tuple[FloatArray, sp.csr_array | None],
    n_observations: int,
    structure: Structure,
    candidates: Candidates,
    levels: Levels,
    floor: float = 0.0,
) -> NoiseSide:
    """Precision from ``m S``: variances, graph of the correlation, conditional variances.

    The graph fixes the partial correlations; the conditional variances are pooled. Edges with a
    score below `floor` do not enter.
    """
    diagonal, off_diagonal = uncertainty
    total = gram.diagonal() + diagonal
    if structure != "graph":
        return _diagonal_noise(total, n_observations, structure)
    ridge = float(np.clip(n_observations / 8, LEAST_RIDGE, RIDGE))
    variances = ridged_variances(total, n_observations, ridge)
    gram.extra = off_diagonal
    gram.rescale(1.0 / np.sqrt(variances * (n_observations + ridge)))
    graph = select_graph(gram, n_observations, candidates, levels, floor)
    if graph is None:
        return NoiseSide.diagonal(1.0 / pooled_variances(variances, n_observations))
    conditional = pooled_variances(variances / graph.diagonal, n_observations)
    scale = sp.diags_array(1.0 / np.sqrt(graph.diagonal * conditional))
    return NoiseSide.from_precision(sp.csr_array(scale @ graph.precision() @ scale))
