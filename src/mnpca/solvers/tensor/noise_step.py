"""The noise given the signal: one covariance per axis, then a precision of each."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.gram import FactorGram
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import geometric_mean, noise_from_gram
from mnpca.noise.graph import Candidates
from mnpca.solvers.tensor.tucker import Map, Tucker, along, by_size, mapped, unfold, weighted

AxisNoise: TypeAlias = Literal["unit", "identity", "diagonal", "graph"]
"""Structure of an axis; "unit" is the identity itself, for slices that are replicates."""


def axis_scales(
    data: FloatArray, structures: Sequence[AxisNoise], sweeps: int = 20
) -> list[AxisPrecision]:
    """Diagonal precisions under which every slice of every axis has mean square one.

    Sinkhorn scaling of the squared entries; axes that are not to have unequal variances keep one
    number.
    """
    scales = [np.ones(size) for size in data.shape]
    for _ in range(sweeps):
        for axis in free_axes(structures):
            inverse: list[Map] = [(1.0 / scale)[None, :] for scale in scales]
            mean = mapped(data**2, inverse, skip=axis).ravel() * data.shape[axis] / data.size
            mean = np.maximum(mean, 1e-8 * mean.mean())
            if structures[axis] == "identity":
                mean = np.full_like(mean, mean.mean())
            scales[axis] = mean
    return in_gauge([AxisPrecision.diagonal(1.0 / scale) for scale in scales], structures)


def axis_noise_step(
    data: FloatArray,
    signal: Tucker,
    noise: Sequence[AxisPrecision],
    structures: Sequence[AxisNoise],
) -> list[AxisPrecision]:
    """Re-estimate every axis's precision from the residual, the others given.

    ``S_k = (unfold_k(R) (x_(j != k) P_j) unfold_k(R)' + D_k) / m_k``, R = T - signal, D_k the noise
    that the signal has absorbed and m_k the number of entries in a slice. Axes with more
    observations come first; the later ones use their new values.
    """
    residual = data - signal.dense()
    sides = list(noise)
    for axis in by_size(data.shape):
        structure = structures[axis]
        if structure == "unit":
            continue
        filtered = unfold(weighted(residual, sides, skip=axis), axis)
        total = unfold(residual, axis) @ filtered.T + absorbed_noise(signal, sides, axis)
        gram = FactorGram((total + total.T) / 2, np.eye(len(total)))
        nothing = (np.zeros(len(total)), None)
        m = data.size // len(total)
        sides[axis] = noise_from_gram(gram, nothing, m, structure, Candidates())
    return in_gauge(sides, structures)


def free_axes(structures: Sequence[AxisNoise]) -> list[int]:
    """Return the axes whose noise is estimated."""
    return [axis for axis, structure in enumerate(structures) if structure != "unit"]


def in_gauge(
    sides: Sequence[AxisPrecision], structures: Sequence[AxisNoise]
) -> list[AxisPrecision]:
    """Return the same noise with ``logdet P = 0`` on every axis but the last that is estimated."""
    free = free_axes(structures)
    scaled, scale = list(sides), 1.0
    for axis in free[:-1]:
        own = geometric_mean(sides[axis].eigenvalues)
        scaled[axis] = sides[axis].scaled(1.0 / own)
        scale *= own
    if free:
        scaled[free[-1]] = sides[free[-1]].scaled(scale)
    return scaled


def absorbed_noise(signal: Tucker, noise: Sequence[AxisPrecision], axis: int) -> FloatArray:
    """Return what the fit takes out of ``unfold(E) (x P_other) unfold(E)'``, in expectation.

    A fit absorbs the noise in the tangent space of its model. Seen from axis l, with d_k the
    sizes, r_k the ranks and F_k the factors (P_k^(-1/2) where the axis has none), that is

        prod_(j != l) r_j F_l F_l'                   by the core,
        sum_(k != l) (d_k - r_k) F_l M_(kl) F_l'     by the other factors,
        r_l (P_l^-1 - F_l F_l')                      by its own factor,

    where ``M_(kl)`` is the Gram matrix of the core's unfolding l after the rows of its unfolding
    k were made orthonormal. Added to the squares of the residual it makes them unbiased; in the
    metric P_l its trace is the number of free parameters. A mean slice takes the direction
    f = 1 / sqrt(1'P1) out of the first axis.
    """
    sizes = [float(side.size) for side in noise]
    free = list(sizes)
    side = noise[axis]
    covariance = _gram(side.color(np.eye(side.size)))
    lost: FloatArray = np.zeros_like(covariance)
    if signal.mean is not None:
        free[0] -= 1.0
        share = float(np.prod(sizes)) / sizes[0] / (1.0 if axis == 0 else sizes[axis])
        lost += share * (_mean_direction(noise[0]) if axis == 0 else covariance)
    if signal.core.size == 0:
        return lost
    frame = signal.factors[axis]
    pairs = zip(signal.factors, noise, strict=True)
    core = mapped(signal.core, [each.whiten if factor is None else None for factor, each in pairs])
    if frame is None:
        frame = side.color(np.eye(side.size))
        if signal.mean is not None and axis == 0:
            constant = side.whiten(np.ones((side.size, 1)))
            frame = frame - frame @ constant @ constant.T / np.sum(constant**2)
    ranks = [
        available if factor is None else float(factor.shape[1])
        for available, factor in zip(free, signal.factors, strict=True)
    ]
    inner = np.prod(ranks) / ranks[axis] * np.eye(frame.shape[1])
    for k in range(len(noise)):
        if k != axis and free[k] > ranks[k]:
            inner += (free[k] - ranks[k]) * _gram_from(core, k, axis)
    lost += frame @ inner @ frame.T
    if signal.factors[axis] is not None:
        own = covariance - _gram(frame)
        if signal.mean is not None and axis == 0:
            own -= _mean_direction(side)
        lost += ranks[axis] * own
    return lost


def _gram_from(core: FloatArray, k: int, axis: int) -> FloatArray:
    """Return ``M_(k axis)``: the rows of unfolding k made orthonormal, then a Gram matrix."""

    def orthonormal(rows: FloatArray) -> FloatArray:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(length, np.finfo(float).tiny))

    return _gram(unfold(along(core, k, orthonormal), axis))


def _mean_direction(side: AxisPrecision) -> FloatArray:
    """Return ``1 1' / (1'P1)``."""
    total = float(side.apply(np.ones((side.size, 1))).sum())
    return np.full((side.size, side.size), 1.0 / total)


def _gram(rows: FloatArray) -> FloatArray:
    product: FloatArray = rows @ rows.T
    return product
