"""The data in the units that MNPCA works in, and the way back."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import Engine, engine_for
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.low_rank_step import Center

#: Columns whose spreads differ by this factor, in the root mean square, still share a unit.
ONE_UNIT = 1.6


def column_units(spreads: FloatArray) -> FloatArray:
    """Return what the columns' spreads owe to units: 1 for all where they differ little.

    The noise step's ridge pulls variances together. That helps columns that are alike and spoils
    the small ones where units differ by decades. So the distance of a log spread from the middle
    one counts for a unit to the share ``1 - log(1.6)^2 / mean square distance``: none of it where
    the spreads are alike, nearly all where they are not.

    Rows keep their scale. They share the columns' units and the mean row; what makes some of them
    larger is their noise, and dividing the signal by it costs several decibels where noise levels
    differ by two decades.
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

    @classmethod
    def of(cls, Y: Any, center: Center, col_structure: str) -> "StandardizedData":
        """Scale to mean square one, in float32; take the column means off where one is certain.

        A mean ten times larger than the spread is numerically harmful and certainly there.
        Columns in very different units are brought closer, unless the noise is to be identical.
        """
        engine = engine_for(Y)
        means = engine.column_means()
        squares = engine.column_mean_squares(means)
        units = np.ones_like(means)
        if col_structure != "identity":
            # A constant column has rounding errors only, which are no unit.
            units = column_units(np.where(squares > 1e-24 * means**2, squares, 0.0) ** 0.5)
        spread, size = (float(np.mean(part / units**2)) for part in (squares, means**2))
        if center == "auto" and spread < 0.01 * size:
            center = True
        offset = means if center is True else np.zeros_like(means)
        total = spread if center is True else spread + size
        scale = units * (np.sqrt(total) or 1.0)
        return cls(engine.standardized(offset, scale), offset, scale[:, None], center)

    @property
    def constant(self) -> float:
        """Return what makes an evidence of scaled data one of the data: Jacobian and 2 pi."""
        n, p = self.engine.shape
        return float(-n * p * (float(np.log(self.scale).mean()) + 0.5 * np.log(2 * np.pi)))

    def to_scaled(self, noise: NoiseModel) -> NoiseModel:
        """Express a noise model of the data in the solver's units."""
        return NoiseModel(noise.row, noise.col.rescaled(self.scale[:, 0]))

    def from_scaled(self, noise: NoiseModel) -> NoiseModel:
        """Express a noise model in the units of the data, in the gauge logdet A = 0."""
        return NoiseModel(noise.row, noise.col.rescaled(1.0 / self.scale[:, 0])).in_gauge()
