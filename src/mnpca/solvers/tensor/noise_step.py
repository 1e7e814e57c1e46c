"""The noise given the signal: one covariance per axis, then a precision of each."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.gram import FactorGram
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import noise_from_gram
from mnpca.noise.graph import Candidates, Levels
from mnpca.noise.scales import geometric_mean
from mnpca.solvers.tensor.absorbed import absorbed_noise
from mnpca.solvers.tensor.axes import by_size, unfold, weighted
from mnpca.solvers.tensor.tucker import Tucker

AxisNoise: TypeAlias = Literal["unit", "identity", "diagonal", "graph"]
"""Structure of an axis; "unit" is the identity itself, for slices that are replicates."""

#: An axis has few items and many observations: with sqrt(log q) small, an edge that entered has to
#: be clearer to stay than in a matrix.
LEVELS = Levels(1.75, 1.4)


def axis_scales(
    data: FloatArray, structures: Sequence[AxisNoise], sweeps: int = 20
) -> list[AxisPrecision]:
    """Diagonal precisions under which every slice of every axis has mean square one.

    Sinkhorn scaling of the squared entries; axes that are not to have unequal variances keep one
    number.
    """
    squares = data**2
    scales = [np.ones(size) for size in data.shape]
    for _ in range(sweeps):
        for axis, structure in enumerate(structures):
            if structure == "unit":
                continue
            scaled = squares
            for other, scale in enumerate(scales):
                if other != axis:
                    scaled = np.tensordot(1.0 / scale, scaled, axes=(0, 0 if other < axis else 1))
            mean = scaled / (data.size // data.shape[axis])
            mean = np.maximum(mean, 1e-8 * mean.mean())
            if structure == "identity":
                mean = np.full_like(mean, mean.mean())
            scales[axis] = mean
    return in_gauge([AxisPrecision.diagonal(1.0 / scale) for scale in scales], structures)


def axis_noise_step(
    data: FloatArray,
    signal: Tucker,
    noise: Sequence[AxisPrecision],
    structures: Sequence[AxisNoise],
    levels: Levels = LEVELS,
) -> list[AxisPrecision]:
    """Re-estimate every axis's precision from the residual, the others given.

    ``S_k = (unfold_k(R) (x_(j != k) P_j) unfold_k(R)' + D_k) / m_k``, R = T - signal, D_k the noise
    that the signal has absorbed and m_k the number of entries in a slice. Axes with more
    observations come first; the later ones see their new values.
    """
    residual = data - signal.dense()
    sides = list(noise)
    for axis in by_size(data.shape):
        structure = structures[axis]
        if structure == "unit":
            continue
        filtered = unfold(weighted(residual, sides, skip=axis), axis)
        total = unfold(residual, axis) @ filtered.T + absorbed_noise(signal, sides, axis)
        total = (total + total.T) / 2
        m = data.size // data.shape[axis]
        gram = FactorGram(total, np.eye(len(total)))
        nothing = (np.zeros(len(total)), None)
        sides[axis] = noise_from_gram(gram, nothing, m, structure, Candidates(), levels)
    return in_gauge(sides, structures)


def in_gauge(
    sides: Sequence[AxisPrecision], structures: Sequence[AxisNoise]
) -> list[AxisPrecision]:
    """Return the same noise with ``logdet P = 0`` on every axis but the last that is estimated."""
    free = [axis for axis, structure in enumerate(structures) if structure != "unit"]
    scaled, scale = list(sides), 1.0
    for axis in free[:-1]:
        own = geometric_mean(sides[axis].eigenvalues)
        scaled[axis] = sides[axis].scaled(1.0 / own)
        scale *= own
    if free:
        scaled[free[-1]] = sides[free[-1]].scaled(scale)
    return scaled
