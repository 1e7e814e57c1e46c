"""Signal and network at once: against the optimality conditions, and on data that show both."""

import numpy as np
import pytest

from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.precision import sparse_precision
from mnpca.solvers.mnpca import joint_start as module
from mnpca.solvers.mnpca.joint_start import joint_start, sparse_and_low_rank
from mnpca.solvers.mnpca.low_rank_step import low_rank_step

SIZE, RANK = 12, 2


@pytest.fixture
def _exact(monkeypatch):
    """A start ends early; the problem that it solves is tested at its minimum."""
    monkeypatch.setattr(module, "STEPS", 20000)
    monkeypatch.setattr(module, "TOLERANCE", 1e-10)


def planted(m, size=SIZE, seed=0):
    """Return `m` rows of a signal in noise that links items 0 and 1, 2 and 3, 4 and 5."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((m, size))
    noise[:, 1:6:2] = 0.7 * noise[:, 0:6:2] + np.sqrt(1 - 0.7**2) * noise[:, 1:6:2]
    return noise + rng.standard_normal((m, RANK)) @ rng.standard_normal((RANK, size))


def correlation(Y):
    return np.corrcoef(Y, rowvar=False)


def proximal_gradient(C, a, b, steps=10000):
    """Solve the same problem for S and L themselves, without a copy of R."""
    size = len(C)
    S, L, length = np.eye(size), np.zeros((size, size)), 0.05
    for _ in range(steps):
        gradient = C - np.linalg.inv(S - L)
        moved = S - length * gradient
        shrunk = np.sign(moved) * np.maximum(np.abs(moved) - length * a, 0.0)
        S = np.where(np.eye(size, dtype=bool), moved, shrunk)
        values, vectors = np.linalg.eigh(L + length * gradient)
        L = (vectors * np.maximum(values - length * b, 0.0)) @ vectors.T
    return S, L


@pytest.mark.usefixtures("_exact")
def test_it_is_the_minimum():
    C, a, b = correlation(planted(200, size=8)), 0.1, 0.2
    S, L = proximal_gradient(C, a, b)
    gradient = C - np.linalg.inv(S - L)
    # The optimality conditions of S, and of L on the cone of semidefinite matrices.
    linked = (S != 0) & ~np.eye(8, dtype=bool)
    np.testing.assert_allclose(np.diag(gradient), 0.0, atol=1e-7)
    np.testing.assert_allclose(gradient[linked], -a * np.sign(S[linked]), atol=1e-7)
    assert np.abs(gradient).max() <= a + 1e-7
    slack = b * np.eye(8) - gradient
    assert np.linalg.eigvalsh(slack).min() > -1e-7
    np.testing.assert_allclose(slack @ L, 0.0, atol=1e-6)
    found, rank = sparse_and_low_rank(C, a, b)
    np.testing.assert_allclose(found, S, atol=1e-6)
    assert rank == np.linalg.matrix_rank(L, tol=1e-6) > 0
    assert 0 < linked.sum() < 56  # neither part is empty or full


@pytest.mark.usefixtures("_exact")
def test_without_a_signal_it_is_the_graphical_lasso():
    C = correlation(planted(200))
    found, rank = sparse_and_low_rank(C, 0.1, 100.0)
    expected = sparse_precision(C, 0.1, penalize_diagonal=False, tol=1e-12).precision.toarray()
    assert rank == 0
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_with_large_penalties_nothing_is_left():
    found, rank = sparse_and_low_rank(correlation(planted(200)), 2.0, 100.0)
    assert rank == 0
    np.testing.assert_allclose(found, np.eye(SIZE), atol=1e-2)


def test_the_order_of_the_items_does_not_matter():
    C = correlation(planted(200))
    order = np.random.default_rng(1).permutation(SIZE)
    found, rank = sparse_and_low_rank(C, 0.1, 0.3)
    moved, moved_rank = sparse_and_low_rank(C[np.ix_(order, order)], 0.1, 0.3)
    np.testing.assert_allclose(moved, found[np.ix_(order, order)], atol=1e-9)
    assert moved_rank == rank


def started(Y, center=True):
    """Return what `joint_start` finds from white noise and one component."""
    engine = DenseEngine(Y, np.float64)
    rows, cols = (AxisPrecision.diagonal(np.ones(size)) for size in Y.shape)
    posterior = low_rank_step(engine, rows, cols, 1, center=center)
    return joint_start(engine, NoiseModel(rows, cols), posterior)


def test_planted_network_and_rank_are_found():
    noise, rank = started(planted(1000, size=20) + 3.0)
    links = np.argwhere(np.triu(noise.col.precision.toarray(), k=1))
    assert rank == RANK
    assert links.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert noise.row.is_diagonal


def test_the_shorter_axis_is_split_in_the_units_of_its_items():
    Y, scale = planted(400), np.geomspace(0.1, 10.0, SIZE)
    plain, rank = started(Y, center=False)
    turned, turned_rank = started(Y.T, center=False)
    scaled, scaled_rank = started(Y * scale, center=False)
    expected = plain.col.precision.toarray()
    assert rank == turned_rank == scaled_rank
    assert turned.col.is_diagonal
    np.testing.assert_allclose(turned.row.precision.toarray(), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        scaled.col.precision.toarray() * scale * scale[:, None], expected, rtol=1e-6, atol=1e-9
    )
