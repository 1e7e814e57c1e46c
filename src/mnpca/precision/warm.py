"""Starts from earlier results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mnpca.precision._kernels import warm as kernels
from mnpca.precision._kernels.certificate import to_csr
from mnpca.precision._kernels.near import BROKEN, CERTIFIED, solve_near
from mnpca.precision._kernels.shared import diagonal_of
from mnpca.precision._types import Array
from mnpca.precision.block_descent import (
    LAST_INNER,
    LOOSEST,
    ComponentSolution,
    sweep_and_certify,
)
from mnpca.precision.blocks import Component
from mnpca.precision.certificate import SPARSE, Certificate, move_to_feasible
from mnpca.precision.iterate import Iterate, Sparse
from mnpca.precision.problem import Problem
from mnpca.precision.result import PrecisionResult

# Progress of a sweep, in units of the gap to reach, at which a first certificate is worth its cost,
# and accuracy of the column problems in the first sweep, per unit of tol: from an earlier solution,
# and from the line through two of them, which is nearer after a sweep. The accuracy, too, where one
# sweep may do.
WARM_CERTIFICATE, LINE_CERTIFICATE = 7.0, 50.0
WARM_INNER, LINE_INNER, NEAR_INNER = 0.5, 6e-3, 1.5
# Above this progress, a first sweep from a line is followed by half a sweep.
UNSURE = 28.0
# Up to so many variables, or with a sparse precision, a certificate without factorizations is the
# cheaper one.
FEW = 150
# T W - I as a whole gives a sharper bound, which is worth its memory for few or for so many
# variables.
MANY = 1500


def restart(
    result: PrecisionResult, component: Component, problem: Problem, tol: float, max_sweeps: int
) -> ComponentSolution | None:
    """Solve a component's problem from an earlier result; None if a sweep broke down."""
    p = problem.size
    scale = min(tol, LOOSEST)
    W = np.empty((p, p))
    status, rows, theta, cost, gap, sweeps = solve_near(
        problem.covariance,
        problem.alpha,
        problem.diagonal,
        earlier(result),
        *component,
        W,
        np.empty((1 if FEW < p < MANY else p, p)),
        tol * p,
        np.array([NEAR_INNER, LAST_INNER])[:max_sweeps] * scale,
        p**2 if p <= FEW else SPARSE * p**2,
    )
    if status == BROKEN:
        return None
    precision = Sparse(*rows)
    if status == CERTIFIED:
        # Nothing goes on from here, so that no regressions are needed.
        iterate = Iterate(W, np.empty((0, 0)), theta)
        return ComponentSolution(iterate, Certificate(precision, cost, np.nan, gap, gap), sweeps)
    iterate = _with_regressions(W, theta, precision)
    left = max(max_sweeps - sweeps, 1)
    solution = sweep_and_certify(
        problem, tol, iterate, WARM_INNER, WARM_CERTIFICATE, left, near=True
    )
    return None if solution is None else replace(solution, n_iter=solution.n_iter + sweeps)


def go_on(
    last: PrecisionResult,
    before: PrecisionResult,
    t: float,
    component: Component,
    problem: Problem,
    tol: float,
    max_sweeps: int,
) -> ComponentSolution | None:
    """Solve from the line through two results, t times their distance beyond the last."""
    iterate = line(last, before, t, component, problem)
    return sweep_and_certify(
        problem, tol, iterate, LINE_INNER, LINE_CERTIFICATE, max_sweeps, near=True, unsure=UNSURE
    )


def line(
    last: PrecisionResult, before: PrecisionResult, t: float, component: Component, problem: Problem
) -> Iterate:
    """Return the point t times the distance of two results beyond the last, made feasible."""
    W, theta, precision = _look_up(last, component, problem.diagonal)
    W_before, theta_before, precision_before = _look_up(before, component, problem.diagonal)
    B = np.zeros_like(W)
    kernels.extrapolate(W, theta, *precision, (W_before, *precision_before), theta_before, t, B)
    move_to_feasible(problem, W, Sparse(*to_csr(B, theta)))
    return Iterate(W, B, theta)


def recall(result: PrecisionResult, component: Component, diagonal: Array) -> Iterate:
    """Return the iterate behind a result for a component, scaled to new variances."""
    return _with_regressions(*_look_up(result, component, diagonal))


def _with_regressions(W: Array, theta: Array, precision: Sparse) -> Iterate:
    B = np.zeros_like(W)
    kernels.fill_regressions(*precision, theta, B)
    return Iterate(W, B, theta)


def _look_up(
    result: PrecisionResult, component: Component, diagonal: Array
) -> tuple[Array, Array, Sparse]:
    """W, theta and the precision of a component, gathered from those of the result."""
    W = np.empty((len(diagonal), len(diagonal)))
    rows = kernels.recall(earlier(result), *component, diagonal, W)
    return W, diagonal_of(*rows), Sparse(*rows)


def earlier(result: PrecisionResult) -> tuple[Any, ...]:
    """Return what the compiled passes read of a result."""
    T, blocks = result.precision, result._blocks
    return (
        T.indptr.astype(np.int64, copy=False),
        T.indices.astype(np.int64, copy=False),
        T.data,
        blocks.groups.bounds,
        blocks.groups.number,
        blocks.groups.place,
        blocks.offsets,
        blocks.covariances,
    )
