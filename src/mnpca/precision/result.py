"""The outcome of a sparse precision estimation, and starts from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._components import blocks, group_by_label
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import cholesky, inverse, is_foreign_array, to_numpy
from mnpca.precision._kernels import fill_dual
from mnpca.precision.certificate import Iterate
from mnpca.precision.problem import Problem


@dataclass(frozen=True, eq=False)
class PrecisionResult:
    """A sparse precision matrix with the certificate of its quality.

    Attributes
    ----------
    precision : scipy.sparse.csr_array of shape (p, p)
        Symmetric positive definite. For a covariance of another library than NumPy it is a dense
        array that lives where the covariance does.
    objective : float
        Value of the problem at ``precision``.
    duality_gap : float
        Upper bound on ``objective`` minus the optimal value, from a feasible dual point.
    n_iter : int
        Sweeps of the slowest connected component.
    labels : ndarray of shape (p,)
        Connected component of each variable.

    Examples
    --------
    >>> from mnpca import sparse_precision
    >>> result = sparse_precision([[1.0, 0.5], [0.5, 1.0]], alpha=0.1)
    >>> result.covariance.round(3).tolist()
    [[1.0, 0.4], [0.4, 1.0]]
    """

    precision: Any
    objective: float
    duality_gap: float
    n_iter: int
    labels: IntArray
    # The working covariance, which a warm start needs; None where the precision is not NumPy's.
    _working: Any = field(default=None, repr=False)

    def state(self) -> dict[str, Any]:
        """Return everything as plain values, to be stored and given to `from_state`."""
        T = self.precision
        return {
            "precision": to_numpy(T) if is_foreign_array(T) else T,
            "objective": self.objective,
            "duality_gap": self.duality_gap,
            "n_iter": self.n_iter,
            "labels": self.labels,
            "working": self._working,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PrecisionResult:
        """Rebuild the result from its `state`; a warm start from it is the same to the bit."""
        values = dict(state)
        working = values.pop("working")
        p = len(values["labels"])
        for matrix in (values["precision"], working):
            if matrix is not None and matrix.shape != (p, p):
                raise ValueError("the state of a precision is damaged: sizes do not agree.")
        return cls(**values, _working=working)

    @cached_property
    def components(self) -> list[IntArray]:
        """Variables of each connected component, as index arrays."""
        return group_by_label(self.labels)

    @cached_property
    def covariance(self) -> FloatArray:
        """Inverse of ``precision``: a dense array, computed by component at first use."""
        if is_foreign_array(self.precision):
            dense: FloatArray = inverse(cholesky(self.precision))
            return dense
        covariance = np.diag(1.0 / self.precision.diagonal())
        for items, block in blocks(self.precision):
            covariance[np.ix_(items, items)] = inverse(cholesky(block))
        return covariance

    def restrict(self, diagonal: FloatArray, index: IntArray) -> tuple[FloatArray, sp.csr_array]:
        """Return working covariance and precision of some variables, scaled to new variances."""
        T, W = self.precision, self._working
        if len(index) < len(self.labels):
            T, W = T[index][:, index], W[np.ix_(index, index)]
        scale = np.sqrt(diagonal / np.diagonal(W))
        W = W * scale
        W *= scale[:, None]
        rows = np.repeat(scale, np.diff(T.indptr))
        columns, indptr = T.indices.astype(np.int64), T.indptr.astype(np.int64)
        return W, sp.csr_array((T.data / (rows * scale[columns]), columns, indptr), T.shape)


def start_from(
    problem: Problem,
    index: IntArray,
    last: PrecisionResult,
    before: PrecisionResult | None = None,
    t: float = 0.0,
) -> Iterate:
    """Return a feasible start for the variables of one component.

    It is the iterate behind a result, or one on the line through two results: ``t`` is how far
    beyond the last one, in units of its distance from the one before.
    """
    W, T = last.restrict(problem.diagonal, index)
    theta = T.diagonal()
    rows, columns = np.repeat(np.arange(problem.size), np.diff(T.indptr)), T.indices
    coefficients = -T.data / theta[rows]
    if before is not None:
        W_before, T_before = before.restrict(problem.diagonal, index)
        W_before *= t
        W *= 1.0 + t
        W -= W_before
        theta_before = T_before.diagonal()
        then = -T_before.toarray()[rows, columns] / theta_before[rows]
        # Coefficients may shrink to zero, but neither appear nor change sign.
        ahead = coefficients + t * (coefficients - then) * (then != 0)
        coefficients = np.where(ahead * coefficients > 0, ahead, 0.0)
        theta *= (theta / theta_before) ** t
    S, alpha, diagonal = problem.covariance, problem.alpha, problem.diagonal
    fill_dual(S, alpha, diagonal, W, T.indptr, columns, T.data, True, W)
    B = np.zeros_like(W)
    B[rows, columns] = coefficients
    np.fill_diagonal(B, 0.0)
    return Iterate(W, B, theta)
