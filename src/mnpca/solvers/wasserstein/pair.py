"""What both methods share: something for each of the two sides, and the end of a fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import Array, diagonal_matrix, namespace

Item = TypeVar("Item")


class Pair(NamedTuple, Generic[Item]):
    """One thing for the rows and one for the columns: precisions, gradients, weights."""

    row: Item
    col: Item

    def swapped(self) -> "Pair[Item]":
        """Return the pair of the transposed problem."""
        return Pair(self.col, self.row)


Matrices: TypeAlias = Pair[Array]


def each(function: Callable[..., Item], *pairs: Pair[Any]) -> Pair[Item]:
    """Apply a function to the rows' part of all pairs and to the columns' part of all."""
    row, col = (function(*items) for items in zip(*pairs, strict=True))
    return Pair(row, col)


@dataclass(frozen=True, eq=False)
class WassersteinFit:
    """The end of a descent.

    Attributes
    ----------
    precision : Pair of arrays
        A and B, in the scale that the objective gives them: sparse for data in NumPy arrays,
        otherwise dense arrays that live where the data do.
    history : list of float
        Objective at the start and after every iteration.
    converged : bool
        Whether the last iterations changed it by at most the tolerance.
    """

    precision: Pair[Any]
    history: list[float]
    converged: bool


def exact_fit(data: Array, rank: int) -> WassersteinFit | None:
    """Return the fit of a signal that leaves no residual: identities, the objective being zero.

    None where there is noise.
    """
    xp = namespace(data)
    values = xp.linalg.svdvals(data)
    largest = float(values[0])
    if rank < values.shape[0] and float(values[rank]) > 1e-10 * largest:
        return None
    return WassersteinFit(Pair(_identity(data[:, 0]), _identity(data[0, :])), [0.0], True)


def _identity(like: Array) -> Any:
    if isinstance(like, np.ndarray):
        return sp.eye_array(len(like), format="csr")
    return diagonal_matrix(namespace(like).ones_like(like))
