"""How the solver gets there: by the cheap way where that will do, and without detours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mnpca import sparse_precision
from mnpca.precision import block_descent, refit, refit_on_support
from mnpca.precision.interior import solve_by_interior_point, suits
from mnpca.precision.newton import QUICK, STEADY, THOROUGH, newton
from mnpca.precision.problem import make_problem

from .reference import (
    chain_covariance,
    factor_covariance,
    objective,
    optimality_error,
    penalty_matrix,
)


def forbidden(*args, **options):
    pytest.fail("a dear method where a cheap one would do")


@pytest.mark.parametrize(("tol", "most"), [(1e-4, 15), (1e-8, 40)])
@pytest.mark.parametrize("alpha", [0.1, 0.3])
@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
def test_sweeps_alone_solve_ordinary_problems(monkeypatch, make, alpha, tol, most):
    monkeypatch.setattr(block_descent, "_finish_by_newton", forbidden)
    result = sparse_precision(make(40, 80, seed=40), alpha, tol=tol)
    assert 0 <= result.duality_gap <= 40 * tol
    assert result.n_iter <= most


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_sweeps_alone_refit_a_graph(monkeypatch, tol):
    S = chain_covariance(40, 80, seed=41)
    support = sparse_precision(S, 0.25).precision
    monkeypatch.setattr(refit, "newton", forbidden)
    result = refit_on_support(S, support, tol=tol)
    assert result.duality_gap <= 40 * tol
    assert result.n_iter <= 40


def test_a_start_at_the_solution_needs_no_sweep():
    S = factor_covariance(40, 80, seed=42)
    solved = sparse_precision(S, 0.3, tol=1e-8)
    again = sparse_precision(S, 0.3, tol=1e-7, init=solved)
    assert again.n_iter == 0
    assert_allclose(again.objective, solved.objective, atol=1e-5)
    near = sparse_precision(S, 0.301, tol=1e-4, init=solved)
    assert near.n_iter <= 2
    # Units of the variables are no news.
    units = np.logspace(-3, 3, 40)
    moved = sparse_precision(
        S * np.outer(units, units), 0.3 * np.outer(units, units), tol=1e-7, init=solved
    )
    assert_allclose(moved.objective - 2 * np.log(units).sum(), solved.objective, atol=1e-4)


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
@pytest.mark.parametrize("effort", [QUICK, STEADY, THOROUGH])
def test_newton_takes_few_steps_and_none_at_the_solution(make, effort):
    S = make(30, 60, seed=43)
    problem, _ = make_problem(S, 0.2, False)
    point = newton(problem, np.diag(1 / np.diagonal(S)), 1e-6, effort=effort)
    assert point.gap <= 1e-6
    assert point.n_iter <= 15
    penalty = penalty_matrix(0.2, 30, False)
    assert_allclose(point.value, objective(S, penalty, point.T))
    best = sparse_precision(S, 0.2, tol=1e-10).objective
    assert -1e-8 <= point.value - best <= point.gap + 1e-8
    again = newton(problem, point.T, 1e-5, effort=effort)
    assert again.n_iter == 1
    assert np.array_equal(again.T, point.T)
    one = newton(problem, np.diag(1 / np.diagonal(S)), 1e-6, max_iter=1, effort=effort)
    assert one.n_iter == 1
    assert one.gap >= one.value - best - 1e-8


def test_newton_needs_a_definite_start():
    problem, _ = make_problem(np.eye(3), 0.1, False)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite start"):
        newton(problem, -np.eye(3), 1e-6)


@pytest.mark.parametrize("make", [chain_covariance, factor_covariance])
@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_an_interior_point_alone(make, alpha):
    S = make(20, 12, seed=44)
    problem, _ = make_problem(S, alpha, False)
    assert suits(problem)
    point = solve_by_interior_point(problem, 1e-7)
    penalty = penalty_matrix(alpha, 20, False)
    assert 0 <= point.gap <= 1e-7
    assert_allclose(point.value, objective(S, penalty, point.T), rtol=1e-9)
    best = sparse_precision(S, alpha, tol=1e-11).objective
    assert -1e-7 <= point.value - best <= 2e-7
    assert optimality_error(S, penalty, point.T) < 1e-2
    assert (point.T == 0).sum() > 0
    assert_allclose(point.T, point.T.T, rtol=1e-10)
