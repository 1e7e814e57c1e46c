"""The problem, checked, and its connected components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._components import label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import astype, is_foreign_array, like, namespace, to_numpy

# Two halves of S that differ by more than this, relative to the two scales, are not one matrix.
ASYMMETRY = 1e-6
# A relative difference of the two halves that rounding explains; of sums of p entries, times p.
ROUNDING, SUM_ROUNDING = 1e-13, 1e-15
# Below this variance the precision cannot be represented.
TINY = float(np.finfo(np.float64).tiny)


class NotCertifiedError(ValueError):
    """No solution could be certified: the problem has none, or rounding hides it.

    Examples
    --------
    >>> from mnpca import NotCertifiedError, sparse_precision
    >>> try:
    ...     _ = sparse_precision([[1.0, 1.0], [1.0, 1.0]], alpha=0.0)
    ... except NotCertifiedError:
    ...     print("no minimum")
    no minimum
    """


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
    diagonal is never read. ``diagonal`` is S_ii plus the diagonal's penalty, if it has one. The
    arrays are NumPy's or another library's.
    """

    covariance: FloatArray
    alpha: FloatArray
    diagonal: FloatArray

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.diagonal.shape[0])

    def restrict(self, index: IntArray) -> Problem:
        """Return the same problem, of NumPy's arrays, on some variables in rising order."""
        if len(index) == self.size:
            return self
        one_row = len(self.alpha) == 1
        alpha = self.alpha[:, : len(index)] if one_row else self.alpha[np.ix_(index, index)]
        return Problem(self.covariance[np.ix_(index, index)], alpha, self.diagonal[index])


@dataclass(frozen=True, eq=False)
class Point:
    """A positive definite T, W near its inverse, the objective, the gap and the iterations."""

    T: Any
    W: Any
    value: float
    gap: float
    n_iter: int


def make_problem(
    S: Any, alpha: Any, penalize_diagonal: bool, labels: IntArray | None = None
) -> tuple[Problem, IntArray]:
    """Check the input; return the problem and its components by |S_ij| > alpha_ij, if not given."""
    S = check_covariance(S)
    alpha = _check_alpha(alpha, S)
    xp = namespace(S)
    diagonal = xp.linalg.diagonal(S)
    S = _symmetric(S, xp.sqrt(xp.abs(diagonal)))
    if float(xp.min(diagonal)) < 0:
        raise ValueError(f"S has a negative diagonal entry, at {int(xp.argmin(diagonal))}.")
    penalty = alpha[0, :] if alpha.shape[0] == 1 else xp.linalg.diagonal(alpha)
    diagonal = diagonal + (penalty if penalize_diagonal else 0.0)
    if float(xp.min(diagonal)) < TINY:
        raise ValueError(
            f"S has a zero variance at {int(xp.argmin(diagonal))}, so the precision is unbounded: "
            "drop the variable, or pass alpha > 0 with penalize_diagonal=True."
        )
    problem = Problem(S, alpha, diagonal)
    return problem, _components(problem) if labels is None else labels


def check_covariance(S: Any) -> Any:
    """Return S as a square matrix of float64, C-ordered if it is NumPy's."""
    if is_foreign_array(S):
        matrix = astype(S, "float64")
    elif np.iscomplexobj(S) or np.ma.is_masked(S):
        raise ValueError("S must be a complete matrix of real numbers; it is complex or masked.")
    else:
        matrix = np.ascontiguousarray(S, dtype=np.float64)
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"S must be a square covariance matrix, got shape {shape}.")
    return matrix


def _symmetric(S: Any, scale: Any) -> Any:
    """Return S, or the mean of its halves where they differ by more than rounding, or raise.

    S r is compared with S' r for a random r (Freivalds), in units of the variables: S is symmetric
    and finite if they agree. Otherwise every pair is looked at.
    """
    xp, p = namespace(S), scale.shape[0]
    weights = like(np.random.default_rng(0).uniform(1.0, 2.0, p), scale)
    weights = weights / xp.where(scale > 0, scale, xp.ones_like(scale))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = xp.abs(S @ weights - S.T @ weights)
    if bool(xp.all(apart <= SUM_ROUNDING * p * scale)):
        return S
    matrix, scale = to_numpy(S), to_numpy(scale)
    wrong = ~np.isfinite(matrix)
    if wrong.any():
        i, j = sorted(np.argwhere(wrong)[0].tolist())
        raise ValueError(f"S must be finite; entry ({i}, {j}) is not.")
    size = np.outer(scale, scale) + np.abs(matrix)
    difference = np.abs(matrix - matrix.T)
    wrong = difference > ASYMMETRY * size
    if wrong.any():
        i, j = sorted(np.argwhere(wrong)[0].tolist())
        raise ValueError(
            f"S must be symmetric; entries ({i}, {j}) and ({j}, {i}) differ. Pass (S + S.T) / 2."
        )
    return (S + S.T) / 2 if np.any(difference > ROUNDING * size) else S


def _check_alpha(alpha: Any, S: Any) -> Any:
    """Return the penalties, in one row if alpha is a number, or raise."""
    xp, shape = namespace(S), tuple(S.shape)
    if not is_foreign_array(alpha):
        alpha = np.asarray(alpha, dtype=np.float64, order="C")
    is_number = alpha.ndim == 0
    if is_number:
        alpha = float(alpha) + xp.zeros_like(S[:1, :])
    elif tuple(alpha.shape) != shape:
        raise ValueError(
            f"alpha must be a number or have S's shape {shape}, got {tuple(alpha.shape)}."
        )
    elif not is_foreign_array(alpha):
        alpha = like(alpha, S)
    if not bool(xp.all(xp.isfinite(alpha))) or float(xp.min(alpha)) < 0:
        raise ValueError("alpha must be finite and not negative.")
    if not is_number and not bool(xp.all(alpha == alpha.T)):
        raise ValueError("alpha must be symmetric; pass (alpha + alpha.T) / 2.")
    return alpha


def _components(problem: Problem) -> IntArray:
    """Label the connected components of |S_ij| > alpha_ij, which the solution shares."""
    xp, p = namespace(problem.covariance), problem.size
    above = xp.reshape(xp.abs(problem.covariance) > problem.alpha, (-1,))
    entries = to_numpy(xp.nonzero(above)[0])
    rows = np.searchsorted(entries, p * np.arange(p + 1))
    return label_components(sp.csr_array((np.ones(len(entries)), entries % p, rows), shape=(p, p)))
