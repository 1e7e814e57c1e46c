"""The two Wasserstein solvers: descent, stationarity, and a plain version of the paper's steps."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mnpca.model.gpca import gpca
from mnpca.model.metric import Metric
from mnpca.model.wasserstein import Spectrum, original, relaxed
from mnpca.solvers.wasserstein import Pair, fit_convex, fit_gradient, identify
from mnpca.solvers.wasserstein.convex import descend, make_problem

ALPHA = Pair(0.05, 0.05)


def sample(n, p, seed=1000, strength=2.0):
    """A rank-two signal in noise with scales of its own in every row and column."""
    rng = np.random.default_rng(seed)
    signal = strength * rng.normal(size=(n, 2)) @ rng.normal(size=(2, p))
    return signal + rng.uniform(0.3, 3, (n, 1)) * rng.uniform(0.3, 3, p) * rng.normal(size=(n, p))


def smallest_eigenvalues(precision):
    return [np.linalg.eigvalsh(side.toarray())[0] for side in precision]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    n=st.integers(3, 20),
    p=st.integers(3, 20),
    rank=st.integers(1, 2),
    seed=st.integers(0, 10_000),
    alpha=st.tuples(st.floats(0.001, 0.1), st.floats(0.001, 0.1)),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_every_accepted_step_lowers_the_objective(n, p, rank, seed, alpha, scale):
    data = scale * sample(n, p, seed)
    fit = fit_convex(data, rank, Pair(*alpha), max_iter=40)
    assert len(fit.history) > 1
    assert (np.diff(fit.history) < 0).all()
    assert min(smallest_eigenvalues(fit.precision)) > 0
    for side in fit.precision:
        assert (side != side.T).nnz == 0


@pytest.mark.parametrize("shape", [(30, 12), (14, 14), (12, 30)])
def test_the_end_is_stationary(shape):
    data = sample(*shape)
    data = data if shape[0] >= shape[1] else data.T
    problem, start, _ = make_problem(data, 2, Pair(0.05, 0.08))
    precision, _, converged = descend(problem, start, 1e-13, 20_000)
    assert converged
    gradient = problem.at(precision).gradient()
    for side, slope, alpha in zip(precision, gradient, problem.alpha, strict=True):
        zero = side == 0
        assert zero.any()
        assert (np.abs(slope[zero]) <= alpha * (1 + 1e-3)).all()
        np.testing.assert_allclose(slope[~zero], -alpha * np.sign(side[~zero]), atol=5e-3 * alpha)


def test_transposed_data_swap_the_sides():
    data = sample(20, 9)
    tall = fit_convex(data, 2, Pair(0.03, 0.06))
    wide = fit_convex(data.T, 2, Pair(0.06, 0.03))
    assert wide.history == tall.history
    for one, other in zip(wide.precision.swapped(), tall.precision, strict=True):
        np.testing.assert_allclose(one.toarray(), other.toarray())


def test_the_noise_has_mean_square_one_in_the_gauge_of_the_model():
    data = sample(14, 9)
    roots = (np.random.default_rng(q).normal(size=(q, q)) for q in data.shape)
    precisions = Pair(*(sp.csr_array(root @ root.T + np.eye(len(root))) for root in roots))
    signal, (row, col) = identify(data, 2, precisions)
    residual = data - signal.low_rank().dense()
    assert np.vdot(row @ residual, residual @ col) == pytest.approx(data.size)
    assert np.linalg.slogdet(row.toarray())[1] == pytest.approx(0, abs=1e-10)
    kept = sp.kron(row, col).toarray() / sp.kron(*precisions).toarray()
    np.testing.assert_allclose(kept, kept[0, 0])
    metrics = (Metric(14, row), Metric(9, col))
    np.testing.assert_allclose(gpca(data, 2, *metrics).right, signal.right, atol=1e-10)


@pytest.mark.parametrize("solve", [fit_convex, fit_gradient])
def test_a_signal_that_explains_everything_leaves_identities(solve):
    data = np.outer(np.arange(1.0, 7.0), [1.0, 2.0, 4.0])
    fit = solve(data, 1, ALPHA)
    assert fit.converged
    assert all((side != np.eye(side.shape[0])).sum() == 0 for side in fit.precision)
    signal, _ = identify(data, 1, fit.precision)
    np.testing.assert_allclose(signal.low_rank().dense(), data)


def plain_rounds(data, alpha, rank, discrepancy, rounds):
    """The paper's algorithm with full decompositions, inverses and float64."""
    n, p = data.shape
    factor = [np.eye(n), np.eye(p)]
    moments = [[np.zeros((size, size)), np.zeros((size, size))] for size in (n, p)]
    count, history = 0, []
    for _ in range(rounds):
        q, r = factor
        left, values, right = np.linalg.svd(q @ data @ r.T, full_matrices=False)
        signal = (left[:, :rank] * values[:rank]) @ right[:rank]
        residual = data - np.linalg.inv(q) @ signal @ np.linalg.inv(r).T
        history.append(
            Spectrum(values[rank:], None).measure(discrepancy, data.size)[0]
            + sum(a * np.abs(f.T @ f).sum() for a, f in zip(alpha, factor, strict=True))
        )
        for side in (0, 1):
            for step in range(5):
                q, r = factor
                left, values, right = np.linalg.svd(q @ residual @ r.T, full_matrices=False)
                keep = min(n, p) - rank
                left, values, right = left[:, :keep], values[:keep], right[:keep]
                _, slope = Spectrum(values, None).measure(discrepancy, data.size)
                white = (left * (2 * slope * values)) @ right  # derivative with respect to Z
                gradient = white @ r @ residual.T if side == 0 else white.T @ q @ residual
                moved = factor[side]
                gradient = gradient + 2 * alpha[side] * moved @ np.sign(moved.T @ moved)
                first, second = moments[side]
                first[:] = 0.5 * first + 0.5 * gradient
                second[:] = 0.9 * second + 0.1 * gradient**2
                t = count + step + 1
                factor[side] = moved - 1e-3 * (first / (1 - 0.5**t)) / (
                    np.sqrt(second / (1 - 0.9**t)) + 1e-8
                )
        count += 5
        a, b = (np.mean(np.diag(f.T @ f)) for f in factor)
        factor[0] = factor[0] * (a + b) / (2 * a)
    return factor, history


@pytest.mark.parametrize("shape", [(12, 7), (7, 12)])
@pytest.mark.parametrize("discrepancy", [relaxed, original])
def test_gradient_method_is_the_paper_s(shape, discrepancy):
    data = sample(*shape) / 3
    alpha = Pair(0.03, 0.07)
    factor, history = plain_rounds(data, alpha, 2, discrepancy, 8)
    fit = fit_gradient(data, 2, alpha, discrepancy=discrepancy, max_iter=8)
    np.testing.assert_allclose(fit.history[:8], history, rtol=1e-3)
    for side, expected in zip(fit.precision, factor, strict=True):
        np.testing.assert_allclose(side.toarray(), expected.T @ expected, atol=4e-3)


def test_gradient_method_balances_the_sides_and_judges_its_end():
    data = sample(20, 9) / 2
    fit = fit_gradient(data, 2, ALPHA, max_iter=60, tol=1e-9)
    row, col = (np.mean(side.diagonal()) for side in fit.precision)
    assert row == pytest.approx(col, rel=1e-3)
    assert fit.history[-1] < fit.history[0]
    assert min(smallest_eigenvalues(fit.precision)) > 0
    assert not fit.converged
    assert not fit_gradient(data, 2, ALPHA, max_iter=15, tol=10).converged
    assert fit_gradient(data, 2, ALPHA, max_iter=40, tol=10).converged


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_gradient_method_refuses_other_units(scale):
    with pytest.raises(ValueError, match="Divide X by"):
        fit_gradient(scale * sample(6, 4), 1, ALPHA)
