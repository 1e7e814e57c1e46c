"""The Tucker signal: a small core and one thin factor per axis, orthonormal in its metric."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from mnpca._typing import FloatArray
from mnpca.model.low_rank import fix_signs
from mnpca.noise.axis_precision import AxisPrecision

Map: TypeAlias = FloatArray | Callable[[FloatArray], FloatArray]
"""A matrix, or a linear function of the rows of a matrix."""
Bases: TypeAlias = list[FloatArray | None]


def unfold(array: FloatArray, axis: int) -> FloatArray:
    """Return the matrix whose rows are the slices along one axis."""
    turned = array.swapaxes(0, axis)
    return turned.reshape(len(turned), math.prod(turned.shape[1:]))


def by_size(shape: Sequence[int]) -> list[int]:
    """Return the axes, shortest first."""
    return sorted(range(len(shape)), key=lambda axis: shape[axis])


def along(array: FloatArray, axis: int, act: Map) -> FloatArray:
    """Apply a linear map to one axis: fold(act(unfold))."""
    turned = array.swapaxes(0, axis)
    rows = np.ascontiguousarray(unfold(array, axis))
    result = act(rows) if callable(act) else act @ rows
    return result.reshape(len(result), *turned.shape[1:]).swapaxes(0, axis)


def mapped(array: FloatArray, maps: Sequence[Map | None], *, skip: int | None = None) -> FloatArray:
    """Apply a linear map to every axis; None is the identity, `skip` names an axis to leave."""
    for axis, act in enumerate(maps):
        if act is not None and axis != skip:
            array = along(array, axis, act)
    return array


def weighted(
    array: FloatArray, noise: Sequence[AxisPrecision], *, skip: int | None = None
) -> FloatArray:
    """Multiply every axis but one by its precision."""
    return mapped(array, [side.apply for side in noise], skip=skip)


class Tucker(NamedTuple):
    """``mean + core x_1 F_1 ... x_K F_K`` with ``F_k' P_k F_k = I``.

    The unfoldings of the core have orthogonal rows, longest first, and the largest absolute entry
    of every column of a factor is positive. A factor None is the identity: an axis whose slices
    have nothing in common. The mean is the mean slice along the first axis, or None.
    """

    core: FloatArray
    factors: tuple[FloatArray | None, ...]
    mean: FloatArray | None = None

    def dense(self) -> FloatArray:
        """Return the array itself, mean included."""
        signal = mapped(self.core, self.factors)
        return signal if self.mean is None else signal + self.mean


def tucker(
    data: FloatArray,
    ranks: Sequence[int | None],
    noise: Sequence[AxisPrecision],
    *,
    center: bool = False,
    start: Tucker | None = None,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> Tucker:
    """Find the Tucker approximation in the metrics of the axes.

    Minimizes ``|(T - 1 o mean - core x_1 F_1 ... x_K F_K) x_1 P_1^(1/2) ... x_K P_K^(1/2)|^2`` by
    higher-order orthogonal iteration on the whitened array: one factor at a time becomes the
    leading left singular vectors of the array projected on the other factors. Two axes give
    generalized PCA; identity metrics give the Tucker decomposition, and with a first axis of rank
    None, which is left as it is, GLRAM, the two-sided PCA of several matrices.

    With `center` there is a mean slice along the first axis; it is the generalized least squares
    mean, which is jointly optimal with the Tucker part. The iteration starts from the leading
    singular vectors of the unfoldings and from `start`, and the better end is kept: each start has
    its own traps. It ends when the length of the core grows by less than the share `tol`.
    """
    mean = None
    if center:
        weights = noise[0].apply(np.ones((len(data), 1)))[:, 0]
        mean = np.asarray(np.tensordot(weights, data, axes=1) / weights.sum())
    white = mapped(data if mean is None else data - mean, [side.whiten for side in noise])
    starts = [_unfolded_start(white, ranks)]
    if start is not None:
        pairs = zip(start.factors, noise, strict=True)
        starts.append([f if f is None else np.linalg.qr(side.whiten(f))[0] for f, side in pairs])
    ends = [_iterate(white, bases, ranks, tol, max_iter) for bases in starts]
    _, bases = max(ends, key=lambda end: end[0])
    return _identified(white, bases, noise, mean)


def _iterate(
    white: FloatArray, bases: Bases, ranks: Sequence[int | None], tol: float, max_iter: int
) -> tuple[float, Bases]:
    """Improve one basis after the other; return the squared length of the core and the bases."""
    length = -np.inf
    # The order of the axes should not matter.
    free = [axis for axis in by_size(white.shape) if ranks[axis] is not None]
    for _ in range(max_iter):
        previous, length = length, float(np.sum(white**2))
        for axis in free:
            length, bases[axis] = best_basis(white, bases, axis, ranks[axis])
        if length - previous <= tol * length:
            break
    return length, bases


def best_basis(
    white: FloatArray, bases: Bases, axis: int, rank: int | None
) -> tuple[float, FloatArray]:
    """Return the basis of one axis that makes the core longest, the others given.

    Also the squared length of the core; the squared misfit is what is left of the data.
    """
    projected = unfold(mapped(white, _transposed(bases), skip=axis), axis)
    basis = leading(projected, rank)
    return float(np.sum((basis.T @ projected) ** 2)), basis


def leading(matrix: FloatArray, rank: int | None) -> FloatArray:
    """Return the leading left singular vectors of a matrix."""
    if matrix.shape[0] <= matrix.shape[1]:
        _, vectors = np.linalg.eigh(matrix @ matrix.T)
        return np.asarray(vectors[:, ::-1][:, :rank])
    left, _, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left[:, :rank])


def _unfolded_start(white: FloatArray, ranks: Sequence[int | None]) -> Bases:
    """Return the leading singular vectors of every unfolding, each on those before it.

    Projecting on the bases already found leaves less noise for the later axes.
    """
    bases: Bases = [None] * len(ranks)
    for axis in by_size(white.shape)[::-1]:
        rank = ranks[axis]
        if rank is not None:
            projected = mapped(white, _transposed(bases))
            bases[axis] = leading(unfold(projected, axis), rank)
    return bases


def _identified(
    white: FloatArray,
    bases: Bases,
    noise: Sequence[AxisPrecision],
    mean: FloatArray | None,
) -> Tucker:
    """Rotate the bases so that the core is all-orthogonal, fix signs, and leave the whitening."""
    core = mapped(white, _transposed(bases))
    factors: Bases = [None] * len(bases)
    back: list[Map | None] = [side.color for side in noise]
    for axis, basis in enumerate(bases):
        if basis is not None:
            rotation = leading(unfold(core, axis), basis.shape[1])
            rotation, factors[axis] = fix_signs(rotation, noise[axis].color(basis @ rotation))
            back[axis] = rotation.T
    return Tucker(mapped(core, back), tuple(factors), mean)


def _transposed(matrices: Bases) -> Bases:
    return [None if matrix is None else matrix.T for matrix in matrices]
