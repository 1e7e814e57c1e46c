"""The noise that a Tucker fit takes for signal."""

from collections.abc import Sequence

import numpy as np

from mnpca._typing import FloatArray
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.tensor.axes import along, unfold
from mnpca.solvers.tensor.tucker import Tucker


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
    core, frame = signal.core, signal.factors[axis]
    for k, factor in enumerate(signal.factors):
        if factor is None:
            core = along(core, k, noise[k].whiten)
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
            inner += (free[k] - ranks[k]) * _seen_from(core, k, axis)
    lost += frame @ inner @ frame.T
    if signal.factors[axis] is not None:
        own = covariance - _gram(frame)
        if signal.mean is not None and axis == 0:
            own -= _mean_direction(side)
        lost += ranks[axis] * own
    return lost


def _seen_from(core: FloatArray, k: int, axis: int) -> FloatArray:
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
