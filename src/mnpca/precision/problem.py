"""The problem, checked and in the form the kernels take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca.precision._kernels.blocks import take_block
from mnpca.precision._kernels.screening import screen
from mnpca.precision._types import Array, Index

# Two halves of S that differ by more than this, relative to the two scales, are not one matrix.
ASYMMETRY = 1e-6
# Below this variance the precision cannot be represented.
TINY = float(np.finfo(np.float64).tiny)


class NotCertifiedError(ValueError):
    """No solution could be certified: the problem has none, or rounding hides it."""


def not_certified(gap_per_variable: float) -> NotCertifiedError:
    """Return the error to raise when every method has ended with too large a gap."""
    return NotCertifiedError(
        f"no certified solution: the duality gap stands at {gap_per_variable:.1e} per variable. "
        "The problem is unbounded or too ill-conditioned (S singular where alpha is zero or "
        "tiny): increase alpha, add a ridge to S's diagonal, or relax tol."
    )


@dataclass(frozen=True, eq=False)
class Problem:
    """min over T of -logdet T + tr(S T) + sum_ij alpha_ij |T_ij|.

    ``alpha`` has one row when every off-diagonal entry has the same penalty, and p otherwise; its
    diagonal is never read. ``diagonal`` is S_ii plus the diagonal's penalty, if it has one.
    """

    covariance: Array
    alpha: Array
    diagonal: Array

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.diagonal.shape[0])

    def restrict(self, index: Index) -> Problem:
        """Return the same problem on some of the variables."""
        if len(index) == self.size:
            return self
        alpha = self.alpha[:, index] if len(self.alpha) == 1 else _block(self.alpha, index)
        return Problem(_block(self.covariance, index), alpha, self.diagonal[index])


def _block(matrix: Array, index: Index) -> Array:
    """Return rows and columns of a matrix, in memory of NumPy's: it comes in large pages."""
    out = np.empty((len(index), len(index)))
    take_block(matrix, index, index, out)
    return out


def check_tolerance(tol: float) -> float:
    """Return tol as a float, or raise."""
    if np.ndim(tol) != 0 or not 0 < tol < np.inf:
        raise ValueError(f"tol must be a positive number, got {tol!r}.")
    return float(tol)


def check_covariance(S: Any) -> Array:
    """Return S as a C-ordered float64 square matrix; the screening pass checks its entries."""
    if np.iscomplexobj(S) or np.ma.is_masked(S):
        raise ValueError("S must be a complete matrix of real numbers; it is complex or masked.")
    matrix: Array = np.ascontiguousarray(S, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"S must be a square covariance matrix, got shape {matrix.shape}.")
    return matrix


def _check_alpha(alpha: Any, p: int) -> Array:
    """Return the penalties, in one row if alpha is a number, or raise."""
    if np.ndim(alpha) == 0:
        number = float(alpha)
        if not 0 <= number < np.inf:
            raise ValueError("alpha must be finite and not negative.")
        return np.full((1, p), number)
    penalty: Array = np.ascontiguousarray(alpha, dtype=np.float64)
    if penalty.shape != (p, p):
        raise ValueError(f"alpha must be a number or have S's shape {(p, p)}, got {penalty.shape}.")
    if not np.all(np.isfinite(penalty)) or penalty.min() < 0:
        raise ValueError("alpha must be finite and not negative.")
    if not np.array_equal(penalty, penalty.T):
        raise ValueError("alpha must be symmetric; pass (alpha + alpha.T) / 2.")
    return penalty


def make_problem(S: Any, alpha: Any, penalize_diagonal: bool) -> tuple[Problem, Index]:
    """Check the input; return the problem and the connected components of |S_ij| > alpha_ij."""
    S = check_covariance(S)
    p = len(S)
    alpha = _check_alpha(alpha, p)
    fault, i, j, uneven, labels = screen(S, alpha, ASYMMETRY)
    if fault == 1:
        raise ValueError(f"S must be finite; entry ({i}, {j}) is not.")
    if fault == 2:
        raise ValueError(
            f"S must be symmetric; entries ({i}, {j}) and ({j}, {i}) differ. Pass (S + S.T) / 2."
        )
    if uneven > 0:
        S = (S + S.T) / 2
    diagonal = np.diagonal(S).copy()
    if diagonal.min() < 0:
        raise ValueError(f"S has a negative diagonal entry, at {int(diagonal.argmin())}.")
    if penalize_diagonal:
        diagonal += alpha[0] if len(alpha) == 1 else np.diagonal(alpha)
    if diagonal.min() < TINY:
        raise ValueError(
            f"S has a zero variance at {int(diagonal.argmin())}, so the precision is unbounded: "
            "drop the variable, or pass alpha > 0 with penalize_diagonal=True."
        )
    return Problem(S, alpha, diagonal), labels
