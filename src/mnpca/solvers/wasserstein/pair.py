"""What both methods share: something for each of the two sides, and the end of a fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray

Item = TypeVar("Item")


class Pair(NamedTuple, Generic[Item]):
    """One thing for the rows and one for the columns: precisions, gradients, weights."""

    row: Item
    col: Item

    def swapped(self) -> "Pair[Item]":
        """Return the pair of the transposed problem."""
        return Pair(self.col, self.row)


Matrices: TypeAlias = Pair[FloatArray]


def each(function: Callable[..., Item], *pairs: Pair[Any]) -> Pair[Item]:
    """Apply a function to the rows' part of all pairs and to the columns' part of all."""
    row, col = (function(*items) for items in zip(*pairs, strict=True))
    return Pair(row, col)


@dataclass(frozen=True, eq=False)
class WassersteinFit:
    """The end of a descent.

    Attributes
    ----------
    precision : Pair of sparse arrays
        A and B, in the scale that the objective gives them.
    history : list of float
        Objective at the start and after every iteration.
    converged : bool
        Whether the last iterations changed it by at most the tolerance.
    """

    precision: Pair[sp.csr_array]
    history: list[float]
    converged: bool


def exact_fit(data: FloatArray, rank: int) -> WassersteinFit | None:
    """Return the fit of a signal that leaves no residual: identities, the objective being zero.

    None where there is noise.
    """
    values = np.linalg.svd(data, compute_uv=False)
    if values[rank:].max(initial=0.0) > 1e-10 * values[0]:
        return None
    return WassersteinFit(each(_identity, Pair(*data.shape)), [0.0], True)


def _identity(size: int) -> sp.csr_array:
    return sp.eye_array(size, format="csr")
