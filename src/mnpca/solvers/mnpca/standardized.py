"""What is done to a matrix before the search, and the way back: units, and dependent columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import Engine, engine_for
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, geometric_mean
from mnpca.noise.significance import LARGEST
from mnpca.solvers.mnpca.low_rank_step import Center
from mnpca.solvers.mnpca.variational import FactorPrior, Posterior

#: Items whose spreads differ by this factor, in the root mean square, still share a unit.
ONE_UNIT = 1.6
#: A column whose residual on others has less than this share of its mean square follows from them:
#: rounding to float32 leaves 1e-13 of a mean square, a measurement more than 1e-8.
ROUNDING = 1e-8
#: Weights below this, of columns of variance one, are rounding errors too.
NO_WEIGHT = 1e-6
#: Rows that are looked at beyond one for each column.
MORE_ROWS = 50
#: Most columns of a table that is looked at: the cost grows with the cube of their number.
MOST_COLUMNS = 5000


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


@dataclass(frozen=True)
class Dependence:
    """Columns `dependent` of a matrix that equal the columns `kept` times `weights`.

    The matrix has no density: its noise lives on the kept columns. So the model is fitted to
    these. What it says of a dependent column follows: its mean and its loadings are the same
    combination, ``w_D = T' w_K``. Its noise given the others has the variance that the noise of
    perfectly correlated items is given, the share ``1 - LARGEST^2`` of its own variance.
    """

    kept: IntArray
    dependent: IntArray
    weights: FloatArray
    """T, kept x dependent."""

    def in_units(self, units: FloatArray) -> "Dependence":
        """Return the same of a matrix whose columns were divided by the units."""
        weights = self.weights * units[self.kept, None] / units[self.dependent]
        return replace(self, weights=weights)

    def expanded(self, thin: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return one row for every column of the matrix from rows for those that were kept."""
        weights = self.weights if weights is None else weights
        whole = np.empty((len(self.kept) + len(self.dependent), *thin.shape[1:]), thin.dtype)
        whole[self.kept] = thin
        whole[self.dependent] = weights.T @ thin
        return whole

    def precision(self, kept: AxisPrecision) -> AxisPrecision:
        """Return the precision of all columns from that of the kept ones.

        With B the precision of the kept columns and V the variances of the others given these,

            [[B + T inv(V) T', -T inv(V)], [-inv(V) T', inv(V)]],

        so that the kept columns have the covariance inv(B) as before.
        """
        spectral = kept.rotate(self.weights) / np.sqrt(kept.eigenvalues)[:, None]
        variances = np.sum(spectral**2, axis=0)
        inverse = sp.diags_array(1.0 / ((1.0 - LARGEST**2) * variances))
        weights = sp.csr_array(self.weights)
        both = weights @ inverse
        joined = sp.block_array(
            [[kept.precision + both @ weights.T, -both], [-both.T, inverse]], format="csr"
        )
        place = np.argsort(np.concatenate([self.kept, self.dependent]))
        return AxisPrecision.from_precision(sp.csr_array(joined[place][:, place]))

    def posterior(self, kept: Posterior, noise: AxisPrecision) -> Posterior:
        """Return the posterior with loadings of all columns; `noise` is that of the kept ones.

        Its decomposition stays that of the kept columns. Variances of dependent loadings are those
        of sums of independent ones.
        """
        factor = kept.right_factor
        if factor is not None:
            factor = replace(
                factor,
                mean=self.expanded(factor.mean),
                variances=self.expanded(factor.row_variances(noise), self.weights**2),
            )
        priors = kept.priors and (kept.priors[0], self._prior(kept.priors[1]))
        right = self.expanded(kept.right)
        return replace(kept, right=right, right_factor=factor, priors=priors)

    def _prior(self, kept: FactorPrior) -> FactorPrior:
        """Give a dependent column the probabilities of its parts, by their weights."""
        shares = np.abs(self.weights) / np.abs(self.weights).sum(axis=0)
        groups, zero = (
            None if each is None else self.expanded(each, shares)
            for each in (kept.groups, kept.zero)
        )
        return replace(kept, groups=groups, zero=zero)


def find_dependence(engine: Engine) -> Dependence | None:
    """Find the columns that are linear combinations of earlier ones, up to rounding; None if none.

    With more columns than rows all columns depend on each other, and nobody can tell which are
    redundant; nor where most columns follow from a few, as without noise.
    """
    n, p = engine.shape
    if not 1 < p < min(n, MOST_COLUMNS):
        return None
    rows = np.unique(np.linspace(0, n - 1, min(n, p + MORE_ROWS)).astype(int))
    block = engine.block(rows, np.arange(p))
    deviations = block.std(axis=0)
    varies = deviations > 0.0
    deviations[~varies] = 1.0
    triangle = np.linalg.qr(block / deviations)[1]
    # Squared, what the columns before it leave of a column.
    rest = np.diag(triangle) ** 2 / len(rows)
    suspects = np.flatnonzero((rest < ROUNDING) & varies)
    if not 0 < len(suspects) < p / 2:
        return None
    others = np.setdiff1d(np.arange(p), suspects)
    weights = np.zeros((p, len(suspects)))
    weights[others] = np.linalg.lstsq(triangle[:, others], triangle[:, suspects])[0]
    weights[np.abs(weights) < NO_WEIGHT] = 0.0
    weights *= deviations[suspects] / deviations[:, None]
    # What holds for some rows need not hold for all.
    combination = -weights
    combination[suspects, np.arange(len(suspects))] = 1.0
    rest = np.mean(engine.times(combination) ** 2, axis=0)
    holds = rest < ROUNDING * engine.column_mean_squares(engine.column_means())[suspects]
    kept = np.setdiff1d(np.arange(p), suspects[holds])
    return Dependence(kept, suspects[holds], weights[kept][:, holds]) if holds.any() else None
