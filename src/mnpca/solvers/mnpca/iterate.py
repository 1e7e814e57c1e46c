"""One point of the search: a noise, the signal under it, and how good the pair is."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.generalized_svd import GeneralisedSVD
from mnpca.solvers.mnpca.variational import FactorPosterior, Posterior
from mnpca.solvers.progress import State


@dataclass(frozen=True)
class Iterate:
    """A noise model, the posterior of the signal under it, and the evidence of both."""

    noise: NoiseModel
    posterior: Posterior
    evidence: float

    def pack(self, name: str) -> dict[str, Any]:
        """Return everything as a flat dictionary whose keys start with the name."""
        packed = pack_side(f"{name}.row", self.noise.row)
        packed |= pack_side(f"{name}.col", self.noise.col)
        packed[f"{name}.evidence"] = self.evidence
        return packed | _pack_fields(f"{name}.posterior", self.posterior)

    @classmethod
    def unpack(cls, name: str, state: State) -> "Iterate":
        """Rebuild an iterate from `pack`'s dictionary."""
        noise = NoiseModel(unpack_side(f"{name}.row", state), unpack_side(f"{name}.col", state))
        values = _unpack_fields(f"{name}.posterior", Posterior, state)
        for factor in ("left_factor", "right_factor"):
            parts = _unpack_fields(f"{name}.posterior.{factor}", FactorPosterior, state)
            values[factor] = FactorPosterior(**parts) if parts else None
        parts = {
            field: state.get(f"{name}.posterior.svd.{field}") for field in GeneralisedSVD._fields
        }
        values["svd"] = GeneralisedSVD(**parts)
        values["centered"] = bool(values["centered"])
        return cls(noise, Posterior(**values), float(state[f"{name}.evidence"]))


def pack_side(name: str, side: AxisPrecision) -> dict[str, Any]:
    """Return a precision as a flat dictionary whose keys start with the name."""
    base = side.base
    return {
        f"{name}.unscaled": base.unscaled,
        f"{name}.scale": base.scale,
        f"{name}.n_repeats": side.n_repeats,
    }


def unpack_side(name: str, state: State) -> AxisPrecision:
    """Rebuild a precision from `pack_side`'s dictionary."""
    unscaled = state[f"{name}.unscaled"]
    if sp.issparse(unscaled):
        side = AxisPrecision.from_precision(unscaled)
    else:
        side = AxisPrecision.diagonal(np.asarray(unscaled))
    n_repeats = int(state.get(f"{name}.n_repeats", 1))
    return side.scaled(float(state[f"{name}.scale"])).tile(n_repeats)


def _pack_fields(name: str, value: Any) -> dict[str, Any]:
    """Flatten a dataclass or named tuple; fields that are None are left out."""
    names = value._fields if isinstance(value, GeneralisedSVD) else [f.name for f in fields(value)]
    packed: dict[str, Any] = {}
    for field in names:
        part = getattr(value, field)
        if isinstance(part, FactorPosterior | GeneralisedSVD):
            packed |= _pack_fields(f"{name}.{field}", part)
        elif part is not None:
            packed[f"{name}.{field}"] = part
    return packed


def _unpack_fields(name: str, kind: type, state: State) -> dict[str, Any]:
    keys = {field.name: f"{name}.{field.name}" for field in fields(kind)}
    return {field: state[key] for field, key in keys.items() if key in state}
