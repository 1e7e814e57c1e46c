"""The few operations that the array API standard leaves to each library."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg.lapack import get_lapack_funcs

from mnpca._typing import IntArray
from mnpca.engines.threads import slices

Array: TypeAlias = Any
"""A dense array of NumPy, torch or CuPy; the operations follow the array."""

#: Numbers in a temporary on a device; larger work is done in pieces.
ROOM = 2**27


def namespace(array: Array) -> Any:
    """Return the array API namespace of an array."""
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(array)


def is_torch(array: Array) -> bool:
    """Tell whether the array is a torch tensor, without importing torch."""
    return type(array).__module__.split(".")[0] == "torch"


def is_foreign_array(array: Any) -> bool:
    """Tell whether an array belongs to a library other than NumPy, which computes on it."""
    if isinstance(array, np.ndarray | np.generic):
        return False
    library = type(array).__module__.split(".")[0]
    return library in ("torch", "cupy") or hasattr(array, "__array_namespace__")


def cholesky(matrix: Array) -> Array | None:
    """Lower Cholesky factor, or None where the matrix is not positive definite."""
    if isinstance(matrix, np.ndarray):
        (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
        factor, info = potrf(matrix, lower=True, clean=True)
        return factor if info == 0 else None
    if is_torch(matrix):
        import torch

        factor, info = torch.linalg.cholesky_ex(matrix)
        return factor if int(info) == 0 else None
    xp = namespace(matrix)
    # The standard leaves open what happens where there is no factor: NaN, or NumPy's error.
    try:
        factor = xp.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    return factor if bool(xp.all(xp.isfinite(factor))) else None


def inverse(factor: Array) -> Array:
    """Inverse of L L' from its lower Cholesky factor L."""
    if isinstance(factor, np.ndarray):
        (potri,) = get_lapack_funcs(("potri",), (factor,))
        lower, _ = potri(factor, lower=True)
        lower = np.tril(lower)
        return lower + np.tril(lower, -1).T
    if is_torch(factor):
        import torch

        return torch.cholesky_inverse(factor)
    half = namespace(factor).linalg.inv(factor)
    return half.T @ half


def logdet(factor: Array) -> float:
    """Log-determinant of L L' from its lower Cholesky factor L."""
    xp = namespace(factor)
    diagonal = xp.linalg.diagonal(factor)
    return 2.0 * float(xp.sum(xp.log(diagonal)))


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of a symmetric matrix, which may be overwritten."""
    if isinstance(matrix, np.ndarray):
        values, vectors = scipy.linalg.eigh(
            matrix, driver="evd", overwrite_a=True, check_finite=False
        )
        return values, vectors
    values, vectors = namespace(matrix).linalg.eigh(matrix)
    return values, vectors


def diagonal_matrix(values: Array) -> Array:
    """Square matrix with the given diagonal."""
    if isinstance(values, np.ndarray):
        return np.diag(values)
    xp = namespace(values)
    size = values.shape[0]
    return xp.eye(size, dtype=values.dtype, device=values.device) * values[:, None]


def to_numpy(array: Array) -> np.ndarray:
    """Copy of the array in the host's memory; a NumPy array is returned as it is."""
    if isinstance(array, np.ndarray):
        return array
    if is_torch(array):
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    return np.from_dlpack(array)


def on_host(value: Any) -> Any:
    """Return an array, or a container of such, in NumPy's float64; anything else as it is."""
    if hasattr(value, "_fields"):
        return type(value)(*(on_host(each) for each in value))
    if type(value) is dict:
        return {name: on_host(each) for name, each in value.items()}
    if type(value) is list:
        return [on_host(each) for each in value]
    return to_numpy(value).astype(np.float64) if is_foreign_array(value) else value


def like(array: Any, reference: Array, dtype: Any = None) -> Array:
    """Return a host array as one that lives where the reference does, with its type or a given one.

    It never shares memory with the host array, except where that is NumPy's own place.
    """
    dtype = dtype or reference.dtype
    if isinstance(reference, np.ndarray):
        return np.asarray(array, dtype=dtype)
    xp = namespace(reference)
    values = np.ascontiguousarray(array)
    if is_torch(reference):
        moved = xp.from_numpy(values if values.flags.writeable else values.copy())
        return moved.to(device=reference.device, dtype=dtype, copy=True)
    return xp.astype(xp.asarray(values, device=reference.device), dtype)


def astype(array: Array, name: str) -> Array:
    """Return the array with the named type, itself where it has it."""
    if isinstance(array, np.ndarray):
        return array.astype(name, copy=False)
    xp = namespace(array)
    return xp.astype(array, getattr(xp, name), copy=False)


def inner(one: Array, other: Array) -> float:
    """Return ``sum_ij x_ij y_ij``."""
    if isinstance(one, np.ndarray):
        return float(np.vdot(one, other))
    return float(namespace(one).sum(one * other))


def row_dots(one: Array, other: Array) -> Array:
    """Return ``sum_j x_ij y_ij`` of every row i."""
    if isinstance(one, np.ndarray):
        return np.einsum("ij,ij->i", one, other)
    return namespace(one).sum(one * other, axis=1)


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
        return np.asarray(sparse.astype(dense.dtype) @ dense)
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


def empty(shape: tuple[int, ...], model: Array, dtype: str | None = None) -> Array:
    """Return an array with anything in it, where the model is and of its type or a named one."""
    xp = namespace(model)
    kind = model.dtype if dtype is None else getattr(xp, dtype)
    if isinstance(model, np.ndarray):
        return np.empty(shape, kind)
    return xp.empty(shape, dtype=kind, device=model.device)
