"""Products along one axis of an array."""

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.noise.axis_precision import AxisPrecision


def unfold(array: FloatArray, axis: int) -> FloatArray:
    """Return the matrix whose rows are the slices along one axis."""
    moved = np.moveaxis(array, axis, 0)
    return moved.reshape(len(moved), math.prod(moved.shape[1:]))


def by_size(shape: Sequence[int]) -> list[int]:
    """Return the axes, shortest first."""
    return sorted(range(len(shape)), key=lambda axis: shape[axis])


def along(array: FloatArray, axis: int, act: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Apply a linear map of matrix rows to one axis: fold(act(unfold))."""
    moved = np.moveaxis(array, axis, 0)
    result = act(np.ascontiguousarray(unfold(array, axis)))
    return np.moveaxis(result.reshape(len(result), *moved.shape[1:]), 0, axis)


def times(array: FloatArray, matrix: FloatArray, axis: int) -> FloatArray:
    """Multiply one axis by a matrix from the left."""
    return np.moveaxis(np.tensordot(matrix, array, axes=(1, axis)), 0, axis)


def times_all(
    array: FloatArray, matrices: Sequence[FloatArray | None], *, skip: int | None = None
) -> FloatArray:
    """Multiply every axis by its matrix; None is the identity, `skip` names an axis to leave."""
    for axis, matrix in enumerate(matrices):
        if matrix is not None and axis != skip:
            array = times(array, matrix, axis)
    return array


def weighted(
    array: FloatArray, noise: Sequence[AxisPrecision], *, skip: int | None = None
) -> FloatArray:
    """Multiply every axis by its precision."""
    for axis, side in enumerate(noise):
        if axis != skip:
            array = along(array, axis, side.apply)
    return array


def whitened(array: FloatArray, noise: Sequence[AxisPrecision]) -> FloatArray:
    """Multiply every axis by its whitener: noise becomes white."""
    for axis, side in enumerate(noise):
        array = along(array, axis, side.whiten)
    return array


def weighted_by(array: FloatArray, matrices: Sequence[Any]) -> FloatArray:
    """Multiply every axis by a symmetric matrix, which may be sparse; None is the identity."""
    for axis, matrix in enumerate(matrices):
        if matrix is not None:
            array = along(array, axis, partial(operator.matmul, matrix))
    return array
