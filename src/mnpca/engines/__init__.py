"""Where the data matrix lives: the engine follows the input."""

from typing import Any

import numpy as np

from mnpca.engines.base import Engine

__all__ = ["Engine", "engine_for"]


def engine_for(matrix: Any) -> Engine:
    """Return the engine that computes where the matrix is.

    Parameters
    ----------
    matrix : ndarray or Engine
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
    raise TypeError(f"No engine for a matrix of type {type(matrix).__name__}. Use a NumPy array.")
