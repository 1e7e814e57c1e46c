"""Operations on a matrix outside NumPy that the array API standard has no name for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import IntArray
from mnpca.engines.arrays import Array, is_torch, like, namespace
from mnpca.engines.threads import slices

#: Numbers in a temporary on the device; larger work is done in pieces.
ROOM = 2**27


def indices(values: IntArray, model: Array) -> Array:
    """Return integers that index `model`."""
    return like(np.asarray(values, np.int64), model, namespace(model).int64)


def on_accelerator(array: Array) -> bool:
    """Tell whether an array is outside the host's memory."""
    if isinstance(array, np.ndarray):
        return False
    if is_torch(array):
        return bool(array.device.type != "cpu")
    return type(array).__module__.split(".")[0] == "cupy"


@contextmanager
def rough_products(array: Array) -> Iterator[bool]:
    """Multiply matrices in TF32 inside the block where the device can; tell whether it does.

    TF32 keeps ten bits of each factor and is several times faster: enough to see which products
    are worth a closer look.
    """
    if not (is_torch(array) and array.device.type == "cuda" and array.dtype.itemsize == 4):
        yield False
        return
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield True
    finally:
        torch.set_float32_matmul_precision(before)


def pieces(size: int, width: int) -> list[slice]:
    """Cut `size` rows of the given width into pieces that fit the room."""
    return slices(size, max(1, ROOM // max(width, 1)))


def sparse_times(sparse: sp.csr_array, dense: Array) -> Array:
    """Return ``S D`` for a sparse S on the host, where D lives.

    Row by row of S the d-th nonzeros of many rows are taken together: as many products of whole
    rows of D as a row of S has nonzeros. The order of summation is fixed.
    """
    if isinstance(dense, np.ndarray):
        return np.asarray(sparse @ dense)
    sparse = sp.csr_array(sparse)
    out = empty((sparse.shape[0], dense.shape[1]), dense)
    for part in pieces(sparse.shape[0], dense.shape[1]):
        out[part, :] = _sparse_rows_times(sparse, part, dense)
    return out


def _sparse_rows_times(sparse: sp.csr_array, part: slice, dense: Array) -> Array:
    """Return some rows of ``S D``; those with most nonzeros are in front while they are summed."""
    xp = namespace(dense)
    first = sparse.indptr[part]
    degree = sparse.indptr[part.start + 1 : part.stop + 1] - first
    order = np.argsort(-degree, kind="stable")
    total = empty((len(degree), dense.shape[1]), dense)
    total[:, :] = 0
    counts = np.cumsum(np.bincount(degree)[::-1])[::-1][1:]
    for d, count in enumerate(counts):
        place = first[order[:count]] + d
        weights = like(sparse.data[place], dense)
        rows = xp.take(dense, indices(sparse.indices[place], dense), axis=0)
        total[:count, :] += weights[:, None] * rows
    return xp.take(total, indices(np.argsort(order), dense), axis=0)


def empty(shape: tuple[int, ...], model: Array, dtype: Any = None) -> Array:
    """Return an array with anything in it, where the model lives and of its type or a given one."""
    xp = namespace(model)
    if isinstance(model, np.ndarray):
        return np.empty(shape, dtype or model.dtype)
    return xp.empty(shape, dtype=dtype or model.dtype, device=model.device)
