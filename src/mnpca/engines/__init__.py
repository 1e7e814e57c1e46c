"""Where the data matrix lives: the engine follows the input."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import is_foreign_array
from mnpca.engines.engine import Engine
from mnpca.engines.rows import ArrayRows, Rows

__all__ = ["Engine", "engine_for", "is_dask", "reads_in_blocks"]


def engine_for(matrix: Any) -> Engine:
    """Return the engine that computes where the matrix is; an engine as it is.

    A memory-mapped array and a dask array are read in blocks of rows.
    """
    if isinstance(matrix, Engine):
        return matrix
    if sp.issparse(matrix):
        from mnpca.engines.sparse import SparseEngine

        return SparseEngine(matrix)
    return Engine(_rows(matrix))


def is_dask(array: Any) -> bool:
    """Tell whether an array is a dask array, without importing dask."""
    return type(array).__module__.startswith("dask.array")


def reads_in_blocks(matrix: Any) -> bool:
    """Tell whether a matrix is not in memory and should not be.

    A mapped file with more columns than rows is taken into memory: blocks of rows do not help
    there, and the Gram matrix of its columns would be larger than the file.
    """
    if is_dask(matrix):
        return True
    return isinstance(matrix, np.memmap) and matrix.ndim == 2 and len(matrix) >= matrix.shape[1]


def _rows(matrix: Any) -> Rows:
    """Return the rows of a matrix, as floating numbers; what they need is imported here."""
    if is_dask(matrix):
        from mnpca.engines.dask_rows import DaskRows

        return DaskRows.of(matrix if _is_floating(matrix) else matrix.astype(np.float64))
    if reads_in_blocks(matrix):
        from mnpca.engines.file_rows import FileRows, as_given

        mapped = FileRows(matrix)
        return mapped if _is_floating(matrix) else mapped.kept(as_given, None, "float64")
    if isinstance(matrix, np.ndarray):
        dtype = matrix.dtype if matrix.dtype.kind == "f" else np.float64
        return ArrayRows(np.ascontiguousarray(matrix, dtype=dtype))
    if is_foreign_array(matrix):
        from mnpca.engines.device_rows import DeviceRows

        return DeviceRows(matrix)
    raise TypeError(f"No engine for a matrix of type {type(matrix).__name__}. Use a NumPy array.")


def _is_floating(matrix: Any) -> bool:
    return matrix.dtype in (np.float32, np.float64)
