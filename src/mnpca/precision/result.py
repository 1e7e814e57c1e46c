"""The outcome of a sparse precision estimation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack

from mnpca.engines import arrays
from mnpca.engines.arrays import is_foreign_array, to_numpy
from mnpca.precision._kernels.inverse import invert
from mnpca.precision._types import Array, Index
from mnpca.precision.blocks import Block, Blocks

# Up to this size threads cost LAPACK more than they save.
SMALL = 60


@dataclass(frozen=True, eq=False)
class PrecisionResult:
    """A sparse precision matrix with the certificate of its quality.

    Attributes
    ----------
    precision : scipy.sparse.csr_array of shape (p, p)
        Symmetric positive definite. For a covariance of another library than NumPy it is a dense
        array that lives where the covariance does.
    duality_gap : float
        Upper bound on ``objective`` minus the optimal value, from a feasible dual point.
    n_iter : int
        Sweeps of the slowest connected component.
    labels : ndarray of shape (p,)
        Connected component of each variable.
    """

    precision: Any
    _objective: float
    duality_gap: float
    n_iter: int
    labels: Index
    # None stands for no blocks; it is gone after __post_init__, so that the type leaves it out.
    _blocks: Blocks = field(default=None, repr=False)  # type: ignore[assignment]
    _cost: float = field(default=np.nan, repr=False)

    def __post_init__(self) -> None:
        if self._blocks is None:
            object.__setattr__(self, "_blocks", Blocks.from_list([], len(self.labels)))

    def state(self) -> dict[str, Any]:
        """Return everything as plain values, to be stored and given to `from_state`."""
        return {
            "precision": self._stored_precision(),
            "objective": self.objective,
            "duality_gap": self.duality_gap,
            "n_iter": self.n_iter,
            "labels": self.labels,
            "blocks": [(b.index, b.working_covariance, b.logdet) for b in self._blocks],
        }

    def _stored_precision(self) -> Any:
        return to_numpy(self.precision) if is_foreign_array(self.precision) else self.precision

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PrecisionResult:
        """Rebuild the result from its `state`; a warm start from it is the same to the bit."""
        values = dict(state)
        p = len(values["labels"])
        if values["precision"].shape != (p, p):
            raise ValueError("the state of a precision is damaged: sizes do not agree.")
        # Blocks stored by earlier versions have a fourth entry, which is not needed.
        blocks = Blocks.from_list([Block(*block[:3]) for block in values.pop("blocks")], p)
        return cls(_objective=values.pop("objective"), **values, _blocks=blocks)

    @cached_property
    def objective(self) -> float:
        """Value of the problem at ``precision``.

        A warm start may not need log-determinants; those are computed at first use.
        """
        if not np.isnan(self._objective):
            return self._objective
        total = float(np.log(self.precision.diagonal()[self._blocks.groups.number < 0]).sum())
        for block in self._blocks:
            logdet = block.logdet
            if np.isnan(logdet):
                logdet = log_determinant(self.precision[block.index][:, block.index].toarray())
            total += logdet
        return self._cost - total

    @cached_property
    def components(self) -> list[Index]:
        """Variables of each connected component, as index arrays."""
        order = np.argsort(self.labels, kind="stable")
        cuts = np.flatnonzero(np.diff(self.labels[order])) + 1
        return list(np.split(order, cuts))

    @cached_property
    def covariance(self) -> Array:
        """Inverse of ``precision``: a dense array, computed by component at first use."""
        if is_foreign_array(self.precision):
            dense: Array = arrays.inverse(arrays.cholesky(self.precision))
            return dense
        p = self.precision.shape[0]
        diagonal = self.precision.diagonal()
        covariance = np.zeros((p, p))
        np.fill_diagonal(covariance, 1.0 / diagonal)
        for component in self.components:
            if len(component) > 1:
                block = self.precision[component][:, component].toarray()
                covariance[np.ix_(component, component)] = inverse(block)
        return covariance


def log_determinant(lower: Array) -> float:
    """Log-determinant from the lower triangle (overwritten), or -inf if not positive definite."""
    # The C-ordered lower triangle is the Fortran-ordered upper one, so nothing is copied.
    factor, info = lapack.dpotrf(lower.T, lower=0, overwrite_a=1, clean=0)
    if info != 0:
        return -np.inf
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def inverse(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix; ``matrix`` is overwritten."""
    indefinite = np.linalg.LinAlgError("matrix is not positive definite")
    if len(matrix) <= SMALL:
        out = np.empty_like(matrix)
        if not invert(matrix, out):
            raise indefinite
        return out
    factor, info = lapack.dpotrf(matrix.T, lower=0, overwrite_a=1, clean=0)
    if info == 0:
        factor, info = lapack.dpotri(factor, lower=0, overwrite_c=1)
    if info != 0:
        raise indefinite
    upper = np.triu(factor)
    result: Array = upper + np.triu(upper, 1).T
    return result
