"""A matrix as a search works on it: in the solver's units, without columns that follow from others."""

from dataclasses import dataclass

from mnpca._typing import FloatArray
from mnpca.engines import Engine
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.dependence import Dependence
from mnpca.solvers.mnpca.evidence import prior_gain
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.settings import Settings
from mnpca.solvers.mnpca.standardized import StandardizedData


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
