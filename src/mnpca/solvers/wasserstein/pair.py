"""What both methods share: something for each of the two sides, and the end of a fit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import Array, diagonal_matrix, inner, namespace, to_numpy
from mnpca.model.gpca import Gpca, gpca
from mnpca.model.metric import Metric
from mnpca.model.sparse import normalize_gauge

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
    """The end of a descent, with the objective at the start and after every iteration.

    A and B are in the scale that the objective gives them: sparse for data in NumPy arrays,
    otherwise dense arrays that live where the data do.
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


def identify(data: Array, rank: int, precision: Pair[Any]) -> tuple[Gpca, Pair[sp.csr_array]]:
    """Return the signal that the precisions imply, with the precisions in the model's scale.

    The objective shrinks the precisions, and asks of the whitened residual a spectrum that white
    noise does not have; neither changes the signal. B is multiplied by the number that maximizes
    the likelihood, which gives the whitened residual mean square one, in the gauge logdet A = 0.
    The outcome is thin or sparse and lives in the host's memory, wherever the data do.
    """
    n, p = data.shape
    row, col = normalize_gauge(*precision)
    signal = gpca(data, rank, Metric(n, row), Metric(p, col), solver="factor")
    total = inner(row @ data, data @ col)
    left_over = total - float(np.sum(signal.singular_values**2))
    # Where there is no noise there is no scale of it.
    root = math.sqrt(left_over / (n * p)) if left_over > 1e-12 * total else 1.0
    values, right = signal.singular_values / root, signal.right * root
    host = (side if sp.issparse(side) else to_numpy(side) for side in (row, col / root**2))
    scaled = signal._replace(singular_values=values, right=right)
    return scaled, Pair(*map(sp.csr_array, host))
