"""One point of the search: a noise, the signal under it, and how good the pair is."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.generalized_svd import GeneralisedSVD
from mnpca.solvers.mnpca.variational import FactorPosterior, Posterior
from mnpca.solvers.progress import State

#: A component less spread than this counts as noise.
LEAST_SPREAD = 0.3


@dataclass(frozen=True)
class Iterate:
    """A noise model and the posterior of the signal under it."""

    noise: NoiseModel
    posterior: Posterior

    @property
    def edge(self) -> float:
        """Return ``e = sqrt n + sqrt p``, where the singular values of pure noise end."""
        return float(np.sqrt(self.noise.row.size) + np.sqrt(self.noise.col.size))

    @property
    def live_strengths(self) -> FloatArray:
        """Return ``s / e`` of the components that look like signal.

        Their generalized singular value s stands above the edge of pure noise, and they are
        spread over many rows and columns: noise that a bad noise model mistakes for signal
        sits on a few items.
        """
        svd = self.posterior.svd
        strengths = svd.singular_values / self.edge
        spread = np.minimum(spreads(svd.left), spreads(svd.right))
        return np.asarray(strengths[(strengths > 1.0) & (spread >= LEAST_SPREAD)])

    @property
    def n_live(self) -> int:
        """Return how many components look like signal."""
        return len(self.live_strengths)

    @property
    def score(self) -> float:
        """Return the ELBO minus ``(log m + 2 log q) / 2`` for every edge."""
        n, p = self.noise.row.size, self.noise.col.size
        n_repeats = self.noise.row.n_repeats
        row_cost = (
            0.5 * (np.log(p * n_repeats) + 2 * np.log(n // n_repeats)) * self.noise.row.n_edges
        )
        col_cost = 0.5 * (np.log(n) + 2 * np.log(p)) * self.noise.col.n_edges
        return float(self.posterior.elbo - row_cost - col_cost)

    @property
    def merit(self) -> float:
        """Return the score plus a premium for every live component.

        The premium grows from ``e^2 / 5`` at the edge to twice as much at 1.5 times the edge.
        Left to the score alone, a noise model that swallows a weak component can win.
        """
        premium = 1.0 + np.minimum(2.0 * (self.live_strengths - 1.0), 1.0)
        return float(self.score + 0.2 * self.edge**2 * premium.sum())

    def pack(self, name: str) -> dict[str, Any]:
        """Return everything as a flat dictionary whose keys start with the name."""
        packed = pack_side(f"{name}.row", self.noise.row)
        packed |= pack_side(f"{name}.col", self.noise.col)
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
        return cls(noise, Posterior(**values))


def spreads(vectors: FloatArray) -> FloatArray:
    """Return ``3 (sum x^2)^2 / (q sum x^4)`` of each column: one for a Gaussian vector."""
    squares = vectors**2
    fourth = np.maximum(np.sum(squares**2, axis=0), np.finfo(float).tiny)
    return np.asarray(3.0 * np.sum(squares, axis=0) ** 2 / (len(vectors) * fourth))


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
