"""Where the data matrix lives: the engine follows the input."""

from typing import Any

import numpy as np

from mnpca.engines.arrays import lives_elsewhere
from mnpca.engines.base import Engine

__all__ = ["Engine", "engine_for"]


def engine_for(matrix: Any) -> Engine:
    """Return the engine that computes where the matrix is.

    Parameters
    ----------
    matrix : ndarray, array of torch, CuPy or another array API library, or Engine
        An engine is returned as it is.

    Raises
    ------
    TypeError
        If no engine knows the type.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca.engines import engine_for
    >>> engine_for(np.eye(3)).times(np.ones((3, 1))).ravel()
    array([1., 1., 1.])
    """
    if isinstance(matrix, Engine):
        return matrix
    if isinstance(matrix, np.ndarray):
        from mnpca.engines.dense import DenseEngine

        return DenseEngine(matrix, matrix.dtype if matrix.dtype.kind == "f" else np.float64)
    if lives_elsewhere(matrix):
        from mnpca.engines.array_api import ArrayEngine

        return ArrayEngine(matrix)
    raise TypeError(f"No engine for a matrix of type {type(matrix).__name__}. Use a NumPy array.")
