"""Names for the array types that annotations use."""

import os
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Precision: TypeAlias = sp.csr_array
"""A sparse symmetric positive definite matrix: a noise network."""
PathLike: TypeAlias = str | os.PathLike[str]
RandomState: TypeAlias = int | np.random.RandomState | None
"""A seed, a source of random numbers, or None."""
