"""Row and column scales: the start that does not look at correlations at all."""

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.noise.axis_precision import AxisPrecision


def geometric_mean(values: FloatArray) -> float:
    """Return ``exp(mean(log(values)))``."""
    return float(np.exp(np.log(values).mean()))


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
