"""The state of block descent on one component, and how it becomes a precision matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mnpca.precision._types import Array, Index
from mnpca.precision.problem import Problem


@dataclass(eq=False)
class Iterate:
    """Working covariance W, regressions B (by rows) and conditional precisions theta."""

    W: Array
    B: Array
    theta: Array


class Sparse(NamedTuple):
    """A symmetric matrix by its compressed rows."""

    indptr: Index
    columns: Index
    values: Array


def cold_start(problem: Problem, fill: Callable[..., None]) -> Iterate:
    """Start at a working covariance made from S, with no regressions."""
    p = problem.size
    W = np.empty((p, p))
    fill(problem.covariance, problem.alpha, problem.diagonal, W)
    return Iterate(W, np.zeros((p, p)), 1.0 / problem.diagonal)


def from_precision(T: Array, W: Array) -> Iterate:
    """Regressions of a dense precision T, with working covariance W."""
    theta = np.diagonal(T).copy()
    B = -T / theta[:, None]
    np.fill_diagonal(B, 0.0)
    return Iterate(W, B, theta)


def to_precision(iterate: Iterate) -> Array:
    """Dense symmetric precision of an iterate, with the entries that both regressions have."""
    T = -iterate.B * iterate.theta[:, None]
    T = np.where((T != 0) & (T.T != 0), 0.5 * (T + T.T), 0.0)
    np.fill_diagonal(T, iterate.theta)
    return T
