"""The data in the units that MNPCA works in, and the way back."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import Engine, engine_for
from mnpca.noise.estimate import NoiseModel
from mnpca.noise.scales import geometric_mean
from mnpca.solvers.mnpca.low_rank_step import Center

#: Items whose spreads differ by this factor, in the root mean square, still share a unit.
ONE_UNIT = 1.6


def units_of(spreads: FloatArray) -> FloatArray:
    """Return what spreads of columns or rows owe to units: 1 for all where they differ little.

    The noise step's ridge pulls variances together. That helps items that are alike and spoils
    the small ones where units differ by decades. So the distance of a log spread from the middle
    one counts for a unit to the share ``1 - log(1.6)^2 / mean square distance``: none of it where
    the spreads are alike, nearly all where they are not.
    """
    known = spreads > 0.0
    if not known.any():
        return np.ones_like(spreads)
    logs = np.log(spreads, where=known, out=np.zeros_like(spreads))
    distance = np.where(known, logs - np.median(logs[known]), 0.0)
    scatter = float(np.mean(distance**2))
    alike = np.log(ONE_UNIT) ** 2
    return np.asarray(np.exp(distance * (1.0 - alike / max(scatter, alike))))


@dataclass(frozen=True)
class StandardizedData:
    """Data in the units the solver works in, and the way back."""

    engine: Engine
    offset: FloatArray
    scale: FloatArray
    """Of every column, p x 1."""
    center: Center
    row_scale: FloatArray
    """Of every row, n x 1: ones unless rows have units of their own."""

    @classmethod
    def of(
        cls,
        Y: Any,
        center: Center,
        col_structure: str,
        row_units: FloatArray | None = None,
    ) -> "StandardizedData":
        """Scale to mean square one, in float32; take the column means off where one is certain.

        A mean ten times larger than the spread is numerically harmful and certainly there.
        Columns in very different units are brought closer, unless the noise is to be identical.
        Rows are divided by `row_units`, and then have no mean row in common.
        """
        engine = engine_for(Y)
        row_scale: FloatArray = np.ones((engine.shape[0], 1))
        if row_units is not None:
            row_units = row_units / geometric_mean(row_units)  # keeps the gauge logdet A = 0
            engine, center, row_scale = engine.rows_divided(row_units), False, row_units[:, None]
        means = engine.column_means()
        squares = engine.column_mean_squares(means)
        units = np.ones_like(means)
        if col_structure != "identity":
            # A constant column has rounding errors only, which are no unit.
            units = units_of(np.where(squares > 1e-24 * means**2, squares, 0.0) ** 0.5)
        spread, size = (float(np.mean(part / units**2)) for part in (squares, means**2))
        if center == "auto" and spread < 0.01 * size:
            center = True
        offset = means if center is True else np.zeros_like(means)
        total = spread if center is True else spread + size
        scale = units * (np.sqrt(total) or 1.0)
        return cls(engine.standardized(offset, scale), offset, scale[:, None], center, row_scale)

    def columns(self, cols: IntArray) -> "StandardizedData":
        """Return the given columns."""
        engine, offset, scale = self.engine.columns(cols), self.offset[cols], self.scale[cols]
        return replace(self, engine=engine, offset=offset, scale=scale)

    @property
    def constant(self) -> float:
        """Return what makes an evidence of scaled data one of the data: Jacobian and 2 pi."""
        n, p = self.engine.shape
        log_units = np.log(self.scale).mean() + np.log(self.row_scale).mean()
        return float(-n * p * (log_units + 0.5 * np.log(2 * np.pi)))

    def to_scaled(self, noise: NoiseModel) -> NoiseModel:
        """Express a noise model of the data in the solver's units."""
        row = noise.row.rescaled(self.row_scale[:, 0])
        return NoiseModel(row, noise.col.rescaled(self.scale[:, 0]))

    def from_scaled(self, noise: NoiseModel) -> NoiseModel:
        """Express a noise model in the units of the data, in the gauge logdet A = 0."""
        row = noise.row.rescaled(1.0 / self.row_scale[:, 0])
        return NoiseModel(row, noise.col.rescaled(1.0 / self.scale[:, 0])).in_gauge()
