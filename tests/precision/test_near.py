"""The compiled warm start: its bounds against dense matrices, and what it makes of a start."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from mnpca import sparse_precision
from mnpca.precision import warm
from mnpca.precision._kernels import near
from mnpca.precision._kernels.certificate import largest_gap, to_csr
from mnpca.precision._kernels.descent import descend, sweep_sparse
from mnpca.precision._kernels.warm import list_regressions, symmetric_rows
from mnpca.precision.block_descent import ComponentSolution
from mnpca.precision.blocks import Groups
from mnpca.precision.problem import make_problem

from .reference import chain_covariance, factor_covariance

P = 37  # not a multiple of the rows of a panel


def rows_of(T):
    matrix = sp.csr_array(T)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


def pair(seed, size=0.05):
    """An earlier precision, a later one with another support, and a matrix near its inverse."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(P, 3 * P)) * rng.uniform(0.5, 2.0, size=(P, 1))
    T0 = np.where(rng.random((P, P)) < 0.2, A @ A.T, 0.0)
    T0 = (T0 + T0.T) / 2 + (np.abs(T0).sum(axis=1).max() / 2) * np.eye(P)
    change = np.where(rng.random((P, P)) < 0.1, size * T0.max() * rng.normal(size=(P, P)), 0.0)
    T = np.where(rng.random((P, P)) < 0.03, 0.0, T0 + change)
    T = np.tril(T, -1) + np.tril(T, -1).T + np.diag(np.diagonal(T0 + change))
    noise = rng.normal(size=(P, P))
    return T0, T, np.linalg.inv(T) * (1 + 1e-3 * (noise + noise.T))


def in_units(T, theta):
    return T / np.sqrt(np.outer(theta, theta))


def distance(T, W, theta):
    return (T @ W - np.eye(P)) * np.sqrt(theta[None, :] / theta[:, None])


@pytest.mark.parametrize("seed", range(5))
def test_both_precisions_by_rows(seed):
    T0, T, W = pair(seed)
    theta = np.diagonal(T).copy()
    change, relative = near._change(rows_of(T0), rows_of(T), theta)
    indptr, columns, values, values_before = change
    for entries, expected in ((values, T), (values_before, T0)):
        assert_array_equal(sp.csr_array((entries, columns, indptr)).toarray(), expected)
    assert len(columns) == np.count_nonzero((T != 0) | (T0 != 0))
    sums = np.abs(in_units(T - T0, theta)).sum(axis=1)
    assert_allclose(relative, sums + sums.mean())
    moved = near._row_sums(change, W, relative, theta)
    scaled_W = W * np.sqrt(np.outer(theta, theta))
    assert_allclose(moved, np.abs(in_units(T - T0, theta)) @ np.abs(scaled_W) @ relative)
    out = np.empty((P, P))
    for room in (out, out[:1]):
        parts, spread, first = near._both_distances(change, theta, W, room)
        X, X0 = distance(T, W, theta), distance(T0, W, theta)
        assert_allclose(parts, np.sum(X**2, axis=1))
        assert_allclose(spread, np.abs(X).sum(axis=1).max())
        assert np.linalg.norm(X0, 2) <= first
        assert_allclose(first, near._norm(T0 @ W - np.eye(P), theta))
    assert_allclose(out[1:], (T @ W - np.eye(P))[1:], atol=1e-12)


@pytest.mark.parametrize("rank", [1, 3, P])
@pytest.mark.parametrize("seed", range(5))
def test_a_bound_on_the_norm_from_panels_of_rows(seed, rank):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(P, rank)) @ rng.normal(size=(rank, P))
    theta = rng.uniform(0.2, 5.0, size=P)
    scaled = X * np.sqrt(theta[None, :] / theta[:, None])
    norm = np.linalg.norm(scaled, 2)
    bound = near._norm(X, theta)
    assert norm * (1 - 1e-12) <= bound <= np.linalg.norm(scaled) * (1 + 1e-12)
    # Sharp for few dimensions.
    if rank == 1:
        assert_allclose(bound, norm)


def test_the_two_bounds_on_the_norm_of_some_rows():
    rows, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(20, 20)))
    # Of rows at right angles, that by row sums; of rows along a line, that by squares.
    for size in (1e-3, 1.0):
        assert_allclose(near._largest_square(size * rows, 16), size**2)
    line = np.outer([1.0, -2.0, 3.0], rows[0])
    assert_allclose(near._largest_square(line, 3), 14.0)
    assert_allclose(near._largest_square(line, 2), 5.0)


class Play:
    """What the steps of a certificate find, and which were taken."""

    def __init__(self, monkeypatch, moved, square, spread, first=0.5, trace=np.inf, norm=np.inf):
        parts = np.array([0.25, 0.75]) * square
        self.steps = []

        def step(name, found):
            return lambda *args: self.steps.append((name, args[-1])) or found

        for name, found in (
            ("_change", (None, np.array([1.0, 2.0]))),
            ("_row_sums", moved * np.array([1.0, 1.0])),
            ("distance_from_inverse", (parts, spread)),
            ("_both_distances", (parts, spread, first)),
            ("trace_of_square", trace),
            ("_norm", norm),
        ):
            monkeypatch.setattr(near, name, step(name, found))

    def certify(self, goal, room=2):
        function = getattr(near._certify, "py_func", near._certify)
        work = np.empty((room, 2))
        found = function((), (0, 0, 0), np.ones(2), np.eye(2), goal, work)
        self.rooms = [len(last) for name, last in self.steps if name == "distance_from_inverse"]
        taken = [name for name, _ in self.steps if name not in ("_change", "_row_sums")]
        return *found[:2], taken


ONE, BOTH = "distance_from_inverse", "_both_distances"


@pytest.mark.parametrize(
    ("moved", "spread", "first", "definite", "steps"),
    [
        # |T - T0| |W| and |T W - I| by row sums, T0 W - I by its norm
        (0.7, 0.25, 9.0, True, [ONE]),
        (0.7, 0.35, 0.9, True, [ONE, BOTH]),
        (0.7, 0.35, 1.0, False, [ONE, BOTH]),
        (1.0, 0.1, 0.9, True, [BOTH]),
        (1.0, 0.1, 1.0, False, [BOTH]),
    ],
)
def test_how_a_precision_is_proven_definite(monkeypatch, moved, spread, first, definite, steps):
    play = Play(monkeypatch, moved, 0.04, spread, first)
    gap, found, taken = play.certify(goal=1.0)
    assert_allclose(gap, largest_gap(0.2, spread))
    assert (found, taken) == (definite, steps)
    # There is no proof of a gap that is too large, but by what is known.
    gap, found, taken = play.certify(goal=1e-9)
    assert found == (steps == [ONE])
    # Nor where T W - I may have an eigenvalue of -1.
    play = Play(monkeypatch, 0.7, 1.0, 0.35, first)
    assert play.certify(goal=1e9)[1:] == (False, [ONE])


@pytest.mark.parametrize("room", [1, 2])
@pytest.mark.parametrize(("goal", "closer"), [(0.32, False), (0.2, True), (0.0399, False)])
def test_a_gap_is_looked_at_more_closely_where_that_may_do(monkeypatch, room, goal, closer):
    """Squares of 0.4, largest row sum 0.5: the gap is 0.309, or less with a trace and a norm."""
    play = Play(monkeypatch, 0.1, 0.4, 0.5, trace=-0.2, norm=0.3)
    gap, definite, taken = play.certify(goal, room)
    assert definite
    rough, sharp = largest_gap(np.sqrt(0.4), 0.5), largest_gap(np.sqrt(0.2), 0.3)
    assert_allclose(gap, sharp if closer else rough)
    again = [ONE] if closer and room == 1 else []
    assert taken == [ONE, *again, *(["trace_of_square", "_norm"] if closer else [])]
    assert play.rooms == [room, *([2] if again else [])]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("size", [1e-3, 0.05, 0.3])
def test_what_is_proven_is_true(seed, size):
    T0, T, W = pair(seed, size)
    theta = np.diagonal(T).copy()
    W = (W + W.T) / 2
    eigenvalues = np.linalg.eigvals(T @ W).real - 1
    gap, definite, parts = near._certify(
        rows_of(T0), rows_of(T), theta, W, np.inf, np.empty((P, P))
    )
    if theta.min() > 0:
        assert_allclose(parts, np.sum(distance(T, W, theta) ** 2, axis=1))
    if size < 0.01:
        assert definite
    if definite:
        assert np.linalg.eigvalsh(T).min() > 0
        assert np.linalg.eigvalsh(W).min() > 0
        assert np.sum(eigenvalues - np.log1p(eigenvalues)) <= gap * (1 + 1e-9)


def test_an_indefinite_precision_is_not_proven_definite():
    """However near to its inverse W is: the line to a definite matrix passes a singular one."""
    T0, T, _ = pair(0, 1e-3)
    values, vectors = np.linalg.eigh(T)
    T = T - 2 * values[0] * np.outer(vectors[:, 0], vectors[:, 0])
    assert np.diagonal(T).min() > 0 > np.linalg.eigvalsh(T)[0]
    W, theta = np.linalg.inv(T), np.diagonal(T).copy()
    gap, definite, _ = near._certify(rows_of(T0), rows_of(T), theta, W, 1.0, np.empty((P, P)))
    assert gap < 1e-10
    assert not definite


def test_the_whole_of_t_w_minus_one_gives_a_sharper_gap():
    T0, T, W = pair(3, 1e-3)
    theta = np.diagonal(T).copy()
    X = distance(T, W, theta)
    _, relative = near._change(rows_of(T0), rows_of(T), theta)
    spread = np.max(np.abs(X) @ relative / relative)
    rough = largest_gap(np.linalg.norm(X), spread)
    args = rows_of(T0), rows_of(T), theta, W
    # There is no need for it, or no hope.
    square = np.linalg.norm(X) ** 2
    for goal in (1.01 * rough, 0.99 * square / near._WORTH):
        assert_allclose(near._certify(*args, goal, np.empty((P, P)))[0], rough)
    root = np.sqrt(min(np.trace(X @ X), square))
    expected = largest_gap(root, min(spread, near._norm(T @ W - np.eye(P), theta)))
    for room in (1, P):
        sharp, definite, _ = near._certify(*args, 0.99 * rough, np.empty((room, P)))
        assert_allclose(sharp, expected)
        assert definite
    assert sharp < rough


def test_the_columns_with_the_largest_parts_come_last():
    parts = np.array([1.0, 9.0, 4.0, 2.0])
    for goal, columns in ((0.0, [0, 3, 2, 1]), (5.0, [2, 1]), (1e3, [1])):
        found = near._columns_to_sweep(parts, goal)
        assert found.tolist() == columns
        # The others have a share s of the squares, and s^2 of them is to be left.
        rest = parts.sum() - parts[found].sum()
        assert rest**2 / parts.sum() <= 2 * near._LEFT * goal
    many = near._columns_to_sweep(np.ones(4000), 1000.0)
    # sqrt(2 * 50 / 4000 * 1000 * 4000) of them are left.
    assert len(many) == 4000 - int(np.sqrt(25 * 4000))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("inner", [1e-3, 1e-9])
def test_a_sweep_with_lists_is_a_sweep(shared, inner):
    """Against the sweep on a dense matrix of regressions, column by column."""
    S = factor_covariance(23, 40, seed=3)
    alpha = np.full((1 if shared else 23, 23), 0.3)
    T = sparse_precision(0.9 * S + 0.1 * np.eye(23), 0.3).precision
    theta = T.diagonal()
    W, B = np.linalg.inv(T.toarray()), -T.toarray() / theta[:, None]
    np.fill_diagonal(B, 0.0)
    np.fill_diagonal(W, np.diagonal(S))
    order = np.random.default_rng(0).permutation(23)[:17]
    lists = list_regressions(*rows_of(T), theta)
    # Without room at the end the lists grow.
    lists = (*lists[:2], *(part[: T.nnz].copy() for part in lists[2:]))
    W_lists, theta_lists = W.copy(), theta.copy()
    lists, ok = sweep_sparse(S, alpha, W_lists, lists, theta_lists, inner, order)
    assert ok
    assert descend(S, alpha, W, B, theta, 0.0, inner, inner, 1, order)[2]
    assert_allclose(W_lists, W, atol=1e-13)
    assert_allclose(theta_lists, theta)
    for found, expected in zip(symmetric_rows(lists, theta), to_csr(B, theta), strict=True):
        assert_allclose(found, expected)


def test_a_sweep_that_breaks_down_says_so():
    S = np.array([[1.0, 2.0], [2.0, 1.0]])  # indefinite
    lists = list_regressions(*rows_of(np.eye(2)), np.ones(2))
    _, ok = sweep_sparse(S, np.full((1, 2), 0.1), S.copy(), lists, np.ones(2), 1e-9, np.arange(2))
    assert not ok


# ---- starts -----------------------------------------------------------------------------------


def tell(monkeypatch):
    """Statuses and sweeps of the starts to come."""
    told, whole = [], warm.solve_near

    def solve_near(*args):
        found = whole(*args)
        told.append((found[0], found[5]))
        return found

    monkeypatch.setattr(warm, "solve_near", solve_near)
    return told


@pytest.mark.parametrize(
    ("make", "change", "expected"),
    [
        (chain_covariance, 0.0, (near.CERTIFIED, 0)),
        (chain_covariance, 0.03, (near.CERTIFIED, 1)),
        (chain_covariance, 0.9, (near.NOT_SWEPT, 0)),
        (factor_covariance, 0.0, (near.CERTIFIED, 0)),
        (factor_covariance, 0.02, (near.CERTIFIED, 1)),
        (factor_covariance, 0.9, (near.NOT_SWEPT, 0)),
    ],
)
def test_how_far_a_start_is_tells_what_becomes_of_it(monkeypatch, make, change, expected):
    told = tell(monkeypatch)
    S, other = make(40, 60, seed=30), make(40, 60, seed=31)
    init = sparse_precision(S, 0.3)
    assert len(init._blocks) == 1
    changed = (1 - change) * S + change * other
    result = sparse_precision(changed, 0.3, init=init)
    assert told[0] == expected
    assert result.duality_gap <= 1e-4 * 40


def test_more_sweeps_follow_where_those_of_the_start_do_not_do(monkeypatch):
    told = tell(monkeypatch)
    S, other = factor_covariance(40, 60, seed=30), factor_covariance(40, 60, seed=31)
    init = sparse_precision(S, 0.2)
    changed = 0.97 * S + 0.03 * other
    assert sparse_precision(changed, 0.2, init=init).n_iter == 2
    # A proof that fails is the same as a gap that is too large.
    monkeypatch.setattr(warm, "NEAR_INNER", 300.0)
    monkeypatch.setattr(warm, "LAST_INNER", 300.0)
    result = sparse_precision(changed, 0.2, init=init)
    assert told == [(near.CERTIFIED, 2), (near.SWEPT, 2)]
    assert result.n_iter > 2
    assert result.duality_gap <= 1e-4 * 40
    # No more sweeps than are allowed.
    sparse_precision(changed, 0.2, init=init, max_iter=1)
    assert told[-1] == (near.SWEPT, 1)


def test_a_start_that_breaks_down_is_given_up(monkeypatch):
    S = factor_covariance(10, 30, seed=4)
    init = sparse_precision(S, 0.1)
    broken = (near.BROKEN, (), np.ones(10), 0.0, np.inf, 1)
    monkeypatch.setattr(warm, "solve_near", lambda *args: broken)
    problem, labels = make_problem(S, 0.1, False)
    assert warm.restart(init, Groups.of(labels)[0], problem, 1e-4, 100) is None
    assert_allclose(sparse_precision(S, 0.1, init=init).objective, init.objective, rtol=1e-3)


@pytest.mark.parametrize(("few", "share", "expected"), [(0, 0.0, 0), (0, 1.0, 1), (50, 0.0, 1)])
def test_sweeps_of_a_start_are_for_few_variables_or_a_sparse_precision(
    monkeypatch, few, share, expected
):
    told = tell(monkeypatch)
    monkeypatch.setattr(warm, "FEW", few)
    monkeypatch.setattr(warm, "MANY", 1)
    monkeypatch.setattr(warm, "SPARSE", share)
    S, other = factor_covariance(40, 60, seed=30), factor_covariance(40, 60, seed=31)
    init = sparse_precision(S, 0.3)
    result = sparse_precision(0.98 * S + 0.02 * other, 0.3, init=init)
    assert told == [(near.CERTIFIED, 1) if expected else (near.NOT_SWEPT, 0)]
    assert result.duality_gap <= 1e-4 * 40


@pytest.mark.parametrize(("few", "many", "room"), [(50, 99, 40), (10, 30, 40), (10, 41, 1)])
def test_room_for_the_whole_product(monkeypatch, few, many, room):
    rooms = []
    monkeypatch.setattr(warm, "FEW", few)
    monkeypatch.setattr(warm, "MANY", many)
    whole = warm.solve_near
    monkeypatch.setattr(
        warm, "solve_near", lambda *args: rooms.append(args[8].shape) or whole(*args)
    )
    S = factor_covariance(40, 60, seed=30)
    sparse_precision(1.01 * S, 0.3, init=sparse_precision(S, 0.3))
    assert rooms == [(room, 40)]


def test_a_restart_and_a_line_are_swept_as_their_distance_asks(monkeypatch):
    asked = []

    def sweep(problem, tol, iterate, inner, first, most, **options):
        asked.append((inner, first, most, options))
        return ComponentSolution(iterate, None, 5)

    monkeypatch.setattr(warm, "sweep_and_certify", sweep)
    S = factor_covariance(10, 30, seed=4)
    last, before = sparse_precision(S, 0.1), sparse_precision(S, 0.12)
    problem, labels = make_problem(S, 0.05, False)
    far = make_problem(factor_covariance(10, 30, seed=5), 0.05, False)[0]
    component = Groups.of(labels)[0]
    assert warm.restart(last, component, far, 1e-4, 100).n_iter == 5
    assert warm.go_on(last, before, 0.5, component, problem, 1e-4, 100).n_iter == 5
    assert asked == [
        (0.5, 7.0, 100, {"near": True}),
        (6e-3, 50.0, 100, {"near": True, "unsure": 28.0}),
    ]
