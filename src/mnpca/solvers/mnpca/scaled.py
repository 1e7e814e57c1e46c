"""A matrix as a search works on it: in the solver's units, dependent columns left out."""

from dataclasses import dataclass

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import Engine
from mnpca.noise.estimate import NoiseModel, ridge_weight
from mnpca.solvers.mnpca.evidence import prior_gain
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.search import Iterate
from mnpca.solvers.mnpca.settings import Settings
from mnpca.solvers.mnpca.standardized import Dependence, StandardizedData


@dataclass(frozen=True)
class Scaled:
    """The whole matrix in the solver's units, the columns of it that are kept, and the others."""

    whole: StandardizedData
    kept: StandardizedData
    dependence: Dependence | None

    @classmethod
    def of(
        cls,
        given: Engine,
        settings: Settings,
        dependence: Dependence | None,
        row_units: FloatArray | None = None,
    ) -> "Scaled":
        """Scale a matrix of which the given columns follow from others."""
        whole = StandardizedData.of(given, settings.center, settings.col_structure, row_units)
        if dependence is None:
            return cls(whole, whole, None)
        dependence = dependence.in_units(whole.scale[:, 0])
        return cls(whole, whole.columns(dependence.kept), dependence)

    @property
    def row_units(self) -> FloatArray:
        """Return by what the rows were divided."""
        return self.whole.row_scale[:, 0]

    def row_noise(self, fit: Iterate) -> FloatArray:
        """Return the root mean square of every row's noise, without what ties it to other rows.

        A ridge to the mean square of the row itself keeps one that the signal happens to fit very
        well from a noise of next to nothing.
        """
        engine, weights = self.kept.engine, 1.0 / fit.noise.col.variances
        left, right = fit.posterior.left, fit.posterior.right
        m = engine.shape[1]
        rest = engine.row_norms(left, right, weights) / m
        whole = engine.squares().times(weights) / m
        ridge = ridge_weight(m)
        return np.asarray(np.sqrt((m * rest + ridge * whole) / (m + ridge)))

    def signal_evidence(self, noise: NoiseModel, settings: Settings) -> float:
        """Return the evidence under a noise of the data, without the price of that noise."""
        data, noise = self.kept, self.kept.to_scaled(noise)
        posterior = low_rank_step(
            data.engine,
            noise.row,
            noise.col,
            settings.rank,
            most=settings.most,
            center=data.center,
            seed=settings.seed,
        )
        return posterior.elbo + prior_gain(data.engine, noise, posterior) + data.constant
