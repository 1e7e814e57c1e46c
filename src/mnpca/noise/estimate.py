"""From second moments of the noise to the precision of an axis, and the scales to begin with."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.special import polygamma

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.engines.gram import Gram
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.graph import Candidates, select_graph

Structure: TypeAlias = Literal["identity", "diagonal", "graph"]

#: Weight of the ridge on each side's covariance, in observations: an eighth of those that there
#: are, within these bounds. It hides correlations, and the variances are pooled anyway.
LEAST_RIDGE, MOST_RIDGE = 5.0, 10.0
#: Variances are kept above this share of their mean.
VARIANCE_FLOOR = 1e-8


@dataclass(frozen=True)
class NoiseModel:
    """The precisions of both sides."""

    row: AxisPrecision
    col: AxisPrecision

    @property
    def is_diagonal(self) -> bool:
        """Tell whether neither side has a graph."""
        return self.row.is_diagonal and self.col.is_diagonal

    def in_gauge(self) -> "NoiseModel":
        """Return the same noise with ``logdet A = 0``."""
        scale = float(np.exp(self.row.log_determinant / self.row.size))
        return NoiseModel(self.row.scaled(1.0 / scale), self.col.scaled(scale))


def geometric_mean(values: FloatArray) -> float:
    """Return ``exp(mean(log(values)))``."""
    return float(np.exp(np.log(values).mean()))


def ridge_weight(n_observations: int) -> float:
    """Return the weight of the ridge, in observations."""
    return float(np.clip(n_observations / 8, LEAST_RIDGE, MOST_RIDGE))


def ridged_variances(total: FloatArray, n_observations: int) -> FloatArray:
    """Variances from sums of squares: ``(m v + r g) / (m + r)``, g the geometric mean of v.

    The ridge keeps an item that a component fits perfectly from an infinite precision. All items
    are pulled to one level on purpose: a level of its own for each row would suit noise that
    differs by decades from row to row, but in real data rows that the components happen to fit
    well would take all the weight.
    """
    variances = total / n_observations
    variances = np.maximum(variances, VARIANCE_FLOOR * variances.mean())
    weight = n_observations / (n_observations + ridge_weight(n_observations))
    return np.asarray(weight * variances + (1.0 - weight) * geometric_mean(variances))


def pooled_variances(variances: FloatArray, n_observations: int) -> FloatArray:
    """Shrink log variances to their mean as far as their scatter is sampling error.

    A log variance from m observations has sampling variance trigamma(m / 2). What the observed
    scatter exceeds it by is real, so a log variance keeps the share (scatter - sampling) /
    scatter of its distance from the mean (as in Smyth 2004 for genes).
    """
    logs = np.log(variances)
    center = logs.mean()
    scatter = float(np.mean((logs - center) ** 2))
    sampling = float(polygamma(1, n_observations / 2))
    share = max(1.0 - sampling / scatter, 0.0) if scatter > 0.0 else 0.0
    return np.asarray(np.exp(center + share * (logs - center)))


def diagonal_noise(total: FloatArray, n_observations: int, structure: Structure) -> AxisPrecision:
    """Return equal variances from sums of squares, or pooled ones."""
    if structure == "identity":
        return AxisPrecision.diagonal(np.full_like(total, n_observations / total.mean()))
    variances = ridged_variances(total, n_observations)
    return AxisPrecision.diagonal(1.0 / pooled_variances(variances, n_observations))


def noise_from_gram(
    gram: Gram,
    uncertainty: tuple[FloatArray, sp.csr_array | None],
    n_observations: int,
    structure: Structure,
    candidates: Candidates,
) -> AxisPrecision:
    """Precision from ``m S``: variances, graph of the correlation, conditional variances.

    The graph fixes the partial correlations; the conditional variances are pooled.
    """
    diagonal, off_diagonal = uncertainty
    total = gram.diagonal() + diagonal
    if structure != "graph":
        return diagonal_noise(total, n_observations, structure)
    ridge = ridge_weight(n_observations)
    variances = ridged_variances(total, n_observations)
    gram.extra = off_diagonal
    gram.rescale(1.0 / np.sqrt(variances * (n_observations + ridge)))
    graph = select_graph(gram, n_observations, candidates)
    if graph is None:
        return AxisPrecision.diagonal(1.0 / pooled_variances(variances, n_observations))
    conditional = pooled_variances(variances / graph.diagonal, n_observations)
    scale = sp.diags_array(1.0 / np.sqrt(graph.diagonal * conditional))
    return AxisPrecision.from_precision(sp.csr_array(scale @ graph.precision() @ scale))


def structure_of(side: AxisPrecision) -> Structure:
    """Return the structure that a precision turned out to have."""
    if not side.is_diagonal:
        return "graph"
    return "identity" if np.ptp(side.weights) <= 1e-9 * side.weights.max() else "diagonal"


def simpler_structures(side: AxisPrecision) -> list[Structure]:
    """Return the structures that a precision could have had with fewer parameters."""
    structures: list[Structure] = ["graph", "diagonal", "identity"]
    return structures[structures.index(structure_of(side)) + 1 :]


def row_col_scales(
    engine: Engine, sweeps: int = 20, *, n_repeats: int = 1
) -> tuple[AxisPrecision, AxisPrecision]:
    """Sinkhorn scaling of the squared entries of Y.

    r_i = mean_j y_ij^2 / c_j, divided by its geometric mean, and c_j = mean_i y_ij^2 / r_i in
    turn; then A = diag(1/r), B = diag(1/c). Every row and column of the scaled matrix has mean
    square one, whatever the signal. The rows of several matrices, `n_repeats` of them one under the
    other, have one scale for all repeats of a row.
    """
    n, p = engine.shape
    squares = engine.squares()
    row_mean: FloatArray = np.ones(n // n_repeats)
    col_scale: FloatArray = np.ones(p)
    for _ in range(sweeps):
        sums = squares.times(1.0 / col_scale).reshape(n_repeats, -1).mean(axis=0)
        row_mean = _positive(sums / p)
        row_mean /= geometric_mean(row_mean)
        col_scale = _positive(squares.transposed_times(1.0 / np.tile(row_mean, n_repeats)) / n)
    row = AxisPrecision.diagonal(1.0 / row_mean).tile(n_repeats)
    return row, AxisPrecision.diagonal(1.0 / col_scale)


def _positive(scales: FloatArray, floor: float = 1e-8) -> FloatArray:
    """Keep a constant row or column from getting an infinite precision."""
    mean = scales.mean()
    return np.maximum(scales, floor * mean if mean > 0 else 1.0)
