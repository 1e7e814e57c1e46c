"""What block descent tries, in which order and how exactly; its sweeps and certificates played."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mnpca.precision import block_descent
from mnpca.precision._kernels.descent import descend, fill_mixed, fill_soft, random_order
from mnpca.precision.block_descent import (
    ComponentSolution,
    _finish_by_newton,
    from_newton,
    solve_component,
    sweep_and_certify,
)
from mnpca.precision.certificate import Certificate
from mnpca.precision.iterate import Iterate, from_precision
from mnpca.precision.newton import NewtonPoint, newton
from mnpca.precision.problem import NotCertifiedError, Problem, make_problem

from .reference import factor_covariance, objective, penalty_matrix

P = 6
EVERYTHING = random_order(P).tolist()


@pytest.fixture
def problem():
    return make_problem(factor_covariance(P, 30, seed=100), 0.1, False)[0]


def start_at(problem):
    return Iterate(problem.covariance.copy(), np.zeros((P, P)), np.ones(P))


def proof(gap, estimate=None, dual=-np.inf, definite=False):
    return Certificate(None, 1.0, 0.0, gap, gap if estimate is None else estimate, definite, dual)


# ---- the order of methods ---------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("attempted", [False, True])
def test_starts_are_tried_in_turn(monkeypatch, problem, attempted, tol):
    """Every attempt breaks down, so that all of them are seen."""
    tried, limits, scale = [], [], min(tol, 1e-4)

    def sweep(problem, tol, iterate, inner, first, max_sweeps):
        tried.append((iterate, inner, first))
        limits.append(max_sweeps)

    def attempt(*args):
        assert tried == []
        assert args == (problem, tol, 20)

    monkeypatch.setattr(block_descent, "sweep_and_certify", sweep)
    monkeypatch.setattr(block_descent, "_finish_by_newton", lambda *args: args)
    finished = solve_component(problem, tol, 77, attempt if attempted else None)
    assert finished == (problem, pytest.approx(P * tol), None)
    # Accuracies are per unit of the tolerance.
    assert_allclose([inner for _, inner, _ in tried], [10, 10, min(1e-9 / scale, 3e-3)])
    assert [first for _, _, first in tried] == [50, 50, 50]
    # The interior-point method takes over early where it suits.
    assert limits == [20, 20, 20]
    for (cold, _, _), fill in zip(tried, (fill_soft, fill_mixed, fill_mixed), strict=True):
        W = np.empty((P, P))
        fill(problem.covariance, problem.alpha, problem.diagonal, W)
        assert_array_equal(cold.W, W)
    monkeypatch.setattr(block_descent, "suits", lambda problem: False)
    solve_component(problem, tol, 77)
    assert limits[-3:] == [77, 77, 77]


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [(14, 1000, [20, 20, 20]), (30, 1000, [90, 90, 60]), (30, 50, [50, 50, 50])],
)
def test_how_long_sweeps_go_on_where_the_interior_point_method_suits(
    monkeypatch, size, most, expected
):
    limits = []
    monkeypatch.setattr(
        block_descent, "sweep_and_certify", lambda *args: limits.append(args[5]) and None
    )
    monkeypatch.setattr(block_descent, "_finish_by_newton", lambda *args: None)
    S = factor_covariance(size, 2 * size, seed=8)
    solve_component(make_problem(S, 0.1, False)[0], 1e-4, most)
    assert limits == expected


@pytest.mark.parametrize(("gap", "enough"), [(1e-4 * P, True), (6.1e-4, False)])
def test_newton_s_method_where_sweeps_end_with_too_large_a_gap(monkeypatch, problem, gap, enough):
    swept = ComponentSolution(start_at(problem), proof(gap), 5)
    tried = []
    monkeypatch.setattr(block_descent, "sweep_and_certify", lambda *args: tried.append(1) or swept)
    monkeypatch.setattr(block_descent, "_finish_by_newton", lambda *args: args[2])
    assert solve_component(problem, 1e-4) is swept
    assert len(tried) == 1
    monkeypatch.setattr(block_descent, "_finish_by_newton", lambda *args: "newton")
    assert (solve_component(problem, 1e-4) is swept) == enough


def test_an_attempt_that_succeeds_is_the_solution(problem):
    solution = ComponentSolution(start_at(problem), proof(1e-9), 5)
    assert solve_component(problem, 1e-4, 77, lambda *args: solution) is solution


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("interior", [False, True])
@pytest.mark.parametrize("gaps", [(1e-4, None), (2e-4, 1e-4), (2e-4, 2e-4)])
def test_second_order_methods_in_turn(monkeypatch, problem, small, interior, gaps):
    solved = newton(problem, np.diag(1 / problem.diagonal), 1e-10)
    tried = []

    def outcome(name, gap):
        tried.append(name)
        return NewtonPoint(solved.T, solved.W, solved.value, gap, 3)

    monkeypatch.setattr(block_descent, "suits", lambda problem: small)
    monkeypatch.setattr(
        block_descent,
        "solve_by_interior_point",
        lambda problem, goal: outcome("interior", goal) if interior else None,
    )
    monkeypatch.setattr(block_descent, "newton", lambda *args: outcome("newton", gaps[0]))
    monkeypatch.setattr(block_descent, "newton_along_path", lambda *args: outcome("path", gaps[1]))
    iterate = from_precision(solved.T, solved.W)
    swept = ComponentSolution(iterate, proof(1.0), 5)
    if small and interior:
        expected = ["interior"]
    else:
        expected = ["newton"] if gaps[0] <= 1e-4 else ["newton", "path"]
    if expected[-1] == "path" and gaps[1] > 1e-4:
        with pytest.raises(NotCertifiedError, match=r"stands at 3\.3e-05 per variable"):
            _finish_by_newton(problem, 1e-4, swept)
    else:
        assert _finish_by_newton(problem, 1e-4, swept).certificate.gap == 1e-4
    assert tried == expected


@pytest.mark.parametrize("known", [False, True])
def test_newton_s_method_needs_a_definite_iterate(monkeypatch, problem, known):
    """Without an iterate, or from an indefinite one, the path is followed at once."""
    solved = newton(problem, np.diag(1 / problem.diagonal), 1e-10)
    monkeypatch.setattr(block_descent, "suits", lambda problem: False)
    monkeypatch.setattr(block_descent, "newton", lambda *args: pytest.fail("from where?"))
    monkeypatch.setattr(block_descent, "newton_along_path", lambda *args: solved)
    indefinite = solved.T - 2 * np.linalg.eigvalsh(solved.T)[0] * np.eye(P)
    swept = ComponentSolution(from_precision(indefinite, solved.W), proof(1.0), 5)
    solution = _finish_by_newton(problem, 1e-4, swept if known else None)
    assert_array_equal(solution.iterate.W, solved.W)


def test_a_point_of_newton_s_method_as_a_solution(problem):
    point = newton(problem, np.diag(1 / problem.diagonal), 1e-10)
    solution = from_newton(point)
    found = solution.certificate
    assert solution.n_iter == point.n_iter
    assert solution.iterate.W is point.W
    assert_allclose(found.logdet, np.linalg.slogdet(point.T)[1])
    assert_allclose(found.objective, point.value)
    penalty = penalty_matrix(0.1, P, False)
    assert_allclose(found.cost, np.sum((problem.covariance + penalty * np.sign(point.T)) * point.T))
    assert found.gap == found.estimate == point.gap
    assert not found.definite


def test_no_penalty_is_the_inverse():
    S = factor_covariance(P, 30, seed=101)
    problem = Problem(S, np.zeros((1, P)), np.diagonal(S) + 0.5)
    solution = solve_component(problem, 1e-9)
    expected = np.linalg.inv(S + 0.5 * np.eye(P))
    assert_allclose(block_descent.to_precision(solution.iterate), expected, atol=1e-12)
    assert solution.n_iter == 1
    found = solution.certificate
    assert found.gap < 1e-10
    assert_allclose(found.dual, found.objective)
    assert_allclose(found.objective, objective(S + 0.5 * np.eye(P), 0.0, expected))


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
def test_a_pair_has_a_closed_form(monkeypatch, sign, matrix, diagonal):
    S = np.array([[2.0, sign * 0.9], [sign * 0.9, 1.0]])
    penalty = np.array([[0.3, 0.2], [0.2, 0.1]])
    problem, _ = make_problem(S, penalty if matrix else 0.2, diagonal)
    solution = solve_component(problem, 1e-4)
    W = np.diag(problem.diagonal) + sign * 0.7 * np.array([[0, 1], [1, 0]])
    assert_allclose(solution.iterate.W, W)
    found = solution.certificate
    T = block_descent.to_precision(solution.iterate)
    assert_allclose(T, np.linalg.inv(W))
    assert_allclose(found.precision.values, T.reshape(-1))
    assert found.precision.indptr.tolist() == [0, 2, 4]
    assert found.precision.columns.tolist() == [0, 1, 0, 1]
    assert_allclose([found.cost, found.logdet], [2.0, np.linalg.slogdet(T)[1]])
    assert (found.gap, solution.n_iter) == (0.0, 1)
    # The same as by sweeps.
    monkeypatch.setattr(block_descent, "_solve_pair", lambda problem: None)
    swept = solve_component(problem, 1e-12)
    assert_allclose(block_descent.to_precision(swept.iterate), T, rtol=1e-5)


@pytest.mark.parametrize("s", [0.05, 1.0, -1.0 + 1e-15])
def test_a_pair_that_is_none_or_is_singular_is_left_to_the_others(s):
    S = np.array([[1.0, s], [s, 1.0]])
    assert block_descent._solve_pair(make_problem(S, 0.1 * (s == 0.05), False)[0]) is None


@pytest.mark.parametrize("inflation", [0.9, 1.1])
def test_no_penalty_and_too_much_inflation(monkeypatch, inflation):
    S = factor_covariance(P, 30, seed=101)
    ratio = np.max(np.diagonal(np.linalg.inv(S)) * np.diagonal(S))
    monkeypatch.setattr(block_descent, "MAX_INFLATION", inflation * ratio)
    problem = Problem(S, np.zeros((1, P)), np.diagonal(S).copy())
    if inflation > 1:
        assert solve_component(problem, 1e-4).n_iter == 1
    else:
        with pytest.raises(NotCertifiedError, match="alpha = 0 needs a non-singular S"):
            solve_component(problem, 1e-4)


# ---- sweeps and certificates, played ----------------------------------------------------------


class Play:
    """Answers for the sweeps and the certificates; what they were asked is kept."""

    def __init__(self, monkeypatch, progress=1.0, sweeps=1, kept=True, ok=True):
        self.progress, self.sweeps, self.kept, self.ok = progress, sweeps, kept, ok
        self.asked, self.certified, self.proofs = [], [], []
        monkeypatch.setattr(block_descent, "descend", self.descend)
        monkeypatch.setattr(block_descent, "certify", self.certify)

    def descend(self, S, alpha, W, B, theta, target, inner, inner_last, most, columns):
        self.asked.append((target, inner, inner_last, most, columns.tolist()))
        return min(self.sweeps, most), self.progress, self.ok, self.kept

    def certify(self, problem, iterate, goal, definite, dual, work):
        self.certified.append((goal, definite, dual))
        return self.proofs.pop(0) if self.proofs else proof(1.0)

    def column(self, k):
        return [row[k] for row in self.asked]


def run(problem, tol=1e-4, inner=10.0, most=1000, **options):
    return sweep_and_certify(problem, tol, start_at(problem), inner, 50.0, most, **options)


def test_sweeps_between_certificates_double_up_to_a_limit(monkeypatch, problem):
    play = Play(monkeypatch, sweeps=10**6)
    solution = run(problem, most=10**5)
    assert play.column(3) == [20, 20, 40, 80, 160, 200, 200, 200, 200, 200]
    assert play.column(4) == [EVERYTHING] * 10
    assert len(play.certified) == 10
    assert solution.n_iter == 1320
    assert solution.certificate.gap == 1.0
    play = Play(monkeypatch, sweeps=10**6)
    assert run(problem, most=50).n_iter == 50
    assert play.column(3) == [20, 20, 10]
    assert len(play.certified) == 3


def test_a_certificate_that_passes_ends_the_sweeps(monkeypatch, problem):
    play = Play(monkeypatch, sweeps=7)
    play.proofs = [proof(6.1e-4), passing := proof(1e-4 * P)]
    solution = run(problem)
    assert solution.certificate is passing
    assert solution.n_iter == 14
    assert_allclose([goal for goal, _, _ in play.certified], 6e-4)


def test_sweeps_that_break_down_are_no_solution(monkeypatch, problem):
    play = Play(monkeypatch, ok=False)
    assert run(problem) is None
    assert len(play.asked) == 1
    assert play.certified == []


@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_sweeps_become_as_exact_as_the_gap_asks(monkeypatch, problem, tol):
    scale, goal = min(tol, 1e-4), tol * P
    progress = 10 * goal
    play = Play(monkeypatch, progress=progress)
    play.proofs = [proof(np.inf, 5 * goal), proof(np.inf), proof(81 * goal), proof(80 * goal)]
    run(problem, tol=tol, inner=2.0)
    targets, inner, last = (np.array(play.column(k)) for k in range(3))
    assert_allclose(targets[0], 50 * scale * P)
    assert_allclose(targets[1], progress * (0.8 / 5) ** 1.5)
    assert_allclose(targets[2], 0.1 * progress)
    assert_allclose(targets[3], progress * (0.8 / 81) ** 1.5)
    assert_allclose(inner, [2 * scale, *last[1:]])
    # Column problems are solved better where the gap is far above what a sweep gains.
    assert_allclose(last[:2], 3e-3 * scale)
    assert_allclose(last[2:5] / last[1:4], [0.03, 0.03, 1.0])


def test_the_accuracy_of_column_problems_has_a_floor_and_is_never_worse_than_asked(
    monkeypatch, problem
):
    play = Play(monkeypatch, progress=1e-9)
    run(problem, inner=1e-4)
    assert_allclose(play.column(2)[0], 1e-8)
    assert play.column(2)[-1] == 1e-14


def test_what_is_known_is_handed_on(monkeypatch, problem):
    """The best dual objective, and whether W is definite."""
    play = Play(monkeypatch)
    play.proofs = [proof(1.0, dual=3.0, definite=True), proof(1.0, dual=2.0), proof(1.0)]
    run(problem)
    assert [dual for _, _, dual in play.certified][:4] == [-np.inf, 3.0, 3.0, 3.0]
    assert [definite for _, definite, _ in play.certified][:4] == [False, True, False, False]
    play = Play(monkeypatch, kept=False)
    play.proofs = [proof(1.0, definite=True)]
    run(problem)
    assert play.certified[1][1] is False


def test_near_a_solution_certificates_follow_single_sweeps(monkeypatch, problem):
    play = Play(monkeypatch, progress=1e-5, sweeps=10**6)
    run(problem, near=True, most=10**5)
    assert play.column(3) == [20, 1, 1, 1, 1, 24, 48, 96, 192, 200]
    assert play.column(4) == [EVERYTHING] * 10


def test_an_unsure_start_gets_half_a_sweep_more(monkeypatch, problem):
    """Once, before the first certificate, and if there is room for more."""
    unsure = 28 * 1e-4 * P
    for progress, certificates in ((0.99 * unsure, 10), (1.01 * unsure, 9)):
        play = Play(monkeypatch, progress=progress)
        run(problem, near=True, unsure=28.0)
        # The columns that the first sweep visits first.
        assert play.column(4)[1] == (EVERYTHING if certificates == 10 else EVERYTHING[:3])
        assert play.column(4)[::2] == [EVERYTHING] * 5
        assert len(play.certified) == certificates
        assert play.column(3)[1] == 1
        assert play.column(1)[1] == play.column(2)[1]
    play = Play(monkeypatch, progress=1.01 * unsure)
    run(problem, near=True)
    assert play.column(4) == [EVERYTHING] * 10
    play = Play(monkeypatch, progress=1.01 * unsure)
    solution = run(problem, near=True, unsure=28.0, most=1)
    assert len(play.certified) == solution.n_iter == 1
    play = Play(monkeypatch, progress=1.01 * unsure, sweeps=2)
    run(problem, near=True, unsure=28.0)
    assert play.column(4) == [EVERYTHING] * 10


def test_a_first_sweep_visits_columns_in_the_given_order():
    p = 9
    order = random_order(p)
    assert sorted(order.tolist()) == list(range(p))
    assert order.tolist() != list(range(p))
    S = factor_covariance(p, 30, seed=102)
    W, B, theta = S.copy(), np.zeros((p, p)), 1 / np.diagonal(S)
    descend(S, np.full((1, p), 0.1), W, B, theta, 0.0, 1e-8, 1e-8, 1, order)
    # A column visited later has the fit to W as it is now.
    stale = np.array([np.abs(W[j] - B[j] @ W)[np.arange(p) != j].max() for j in range(p)])
    assert stale[order[-1]] < 1e-7
    assert stale.argmax() in order[:5]
