"""The outcome of a sparse precision estimation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Block:
    """One connected component: its variables, and what a warm start needs."""

    index: Index
    working_covariance: Array


@dataclass(frozen=True, eq=False)
class PrecisionResult:
    """A sparse precision matrix with the certificate of its quality.

    Attributes
    ----------
    precision : scipy.sparse.csr_array of shape (p, p)
        Symmetric positive definite.
    objective : float
        Value of the problem at ``precision``.
    duality_gap : float
        Upper bound on ``objective`` minus the optimal value, from a feasible dual point.
    n_iter : int
        Sweeps of the slowest connected component.
    labels : ndarray of shape (p,)
        Connected component of each variable.
    """

    precision: Any
    objective: float
    duality_gap: float
    n_iter: int
    labels: Index
    _blocks: tuple[Block, ...] = field(default=(), repr=False)

    def state(self) -> dict[str, Any]:
        """Return everything as plain values, to be stored and given to `from_state`."""
        return {
            "precision": self.precision,
            "objective": self.objective,
            "duality_gap": self.duality_gap,
            "n_iter": self.n_iter,
            "labels": self.labels,
            "blocks": [(block.index, block.working_covariance) for block in self._blocks],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PrecisionResult:
        """Rebuild the result from its `state`; a warm start from it is the same to the bit."""
        values = dict(state)
        blocks = tuple(Block(*block) for block in values.pop("blocks"))
        return cls(**values, _blocks=blocks)

    @cached_property
    def components(self) -> list[Index]:
        """Variables of each connected component, as index arrays."""
        order = np.argsort(self.labels, kind="stable")
        cuts = np.flatnonzero(np.diff(self.labels[order])) + 1
        return list(np.split(order, cuts))

    @cached_property
    def covariance(self) -> Array:
        """Inverse of ``precision``: a dense array, computed by component at first use."""
        p = self.precision.shape[0]
        diagonal = self.precision.diagonal()
        covariance = np.zeros((p, p))
        np.fill_diagonal(covariance, 1.0 / diagonal)
        for component in self.components:
            if len(component) > 1:
                block = self.precision[component][:, component].toarray()
                covariance[np.ix_(component, component)] = inverse(block)
        return covariance


def inverse(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix; ``matrix`` is overwritten."""
    factor, info = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    if info == 0:
        factor, info = lapack.dpotri(factor, lower=0, overwrite_c=1)
    if info != 0:
        raise np.linalg.LinAlgError("matrix is not positive definite")
    upper = np.triu(factor)
    result: Array = upper + np.triu(upper, 1).T
    return result
