"""Expectation and maximization around any solver of complete matrices: fit, complete, fit again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from mnpca._typing import FloatArray, Precision
from mnpca.model.conditional import noise_variances
from mnpca.model.gpca import Gpca, identify
from mnpca.model.low_rank import LowRank
from mnpca.model.metric import Metric
from mnpca.model.sparse_data import centered
from mnpca.solvers.likelihood.blocks import closed_form
from mnpca.solvers.missing.incomplete import (
    Completion,
    Expectation,
    Incomplete,
    Outcome,
    relative_change,
)
from mnpca.solvers.progress import Report, State, inner_state, nested

#: Fits of completed matrices.
FITS = 2
#: Low-rank steps after each fit, at most, and the change of the signal at which they end.
SIGNAL_STEPS = 20
SIGNAL_TOL = 1e-3


@dataclass(frozen=True)
class Solution:
    """What a solver makes of a complete, centered matrix."""

    row_precision: Precision
    col_precision: Precision
    signal: Gpca
    history: Sequence[float]
    converged: bool


Solve: TypeAlias = Callable[[FloatArray, Report, State | None], Solution]


@dataclass(frozen=True)
class IncompleteFit:
    """A fit, and a complete matrix without effects whose noise has the fitted covariances."""

    solution: Solution
    mean: FloatArray
    signal: Gpca
    outcome: Outcome
    data: FloatArray


def fit_incomplete(
    problem: Incomplete,
    guess: FloatArray,
    rank: int,
    solve: Solve,
    *,
    center: bool,
    ridge: float = 0.0,
    report: Report,
    resume: State | None = None,
) -> IncompleteFit:
    """Fit, let the signal settle on the expected matrix, draw the missing noise, fit again.

    The first fit is of `guess`, a completed matrix.
    """
    number, data, inner = 0, guess, inner_state(resume)
    if resume is not None:
        number, data = int(resume["fit"]), resume["data"]
    while True:
        told = nested(report, partial(dict, fit=number, data=data))
        solution = solve(centered(data, center)[0], told, inner)
        inner = None
        expectation = problem.under(solution.row_precision, solution.col_precision)
        mean, signal, completion = _settle(expectation, data, rank, center, ridge)
        data = expectation.for_noise(completion, np.random.default_rng([0, number]))
        number += 1
        if number == FITS:
            break
    row, col = expectation.precisions
    parts = identify(*signal, Metric(len(data), row), Metric(len(mean), col))
    outcome = expectation.outcome(completion, _signal_variance(expectation, parts))
    return IncompleteFit(solution, mean, parts, outcome, data)


def _settle(
    expectation: Expectation, data: FloatArray, rank: int, center: bool, ridge: float
) -> tuple[FloatArray, LowRank, Completion]:
    """Alternate the low-rank step and the expected matrix under one noise model."""
    cells, total = None, np.zeros_like(data)
    for _ in range(SIGNAL_STEPS):
        rest, mean = centered(data, center)
        signal = closed_form(rest, rank, *expectation.precisions, ridge)
        old, total = total, signal.dense() + mean
        completion = expectation.complete(total, cells)
        cells, data = completion.cells, expectation.for_signal(completion)
        if relative_change(total, old) <= SIGNAL_TOL:
            break
    return mean, signal, completion


def _signal_variance(expectation: Expectation, signal: Gpca) -> LowRank:
    """Return the variance of every entry of the signal, to first order.

    With U'AU = V'BV = I the scores of row i have covariance ``(inv A)_ii I`` and the loadings of
    column j ``(inv B)_jj D^-2``, so that ``var(u_i' D v_j)`` is
    ``(inv A)_ii |v_j|^2 + (inv B)_jj |u_i|^2``.
    Each term is divided by the share of the row (column) that was observed.
    """
    observed = ~expectation.problem.missing
    row, col = map(noise_variances, expectation.precisions)
    left = np.column_stack([row / observed.mean(axis=1), np.sum(signal.left**2, axis=1)])
    right = np.column_stack([np.sum(signal.right**2, axis=1), col / observed.mean(axis=0)])
    return LowRank(left, right)
