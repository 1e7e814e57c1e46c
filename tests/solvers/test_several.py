"""Several matrices in the likelihood algorithm: blocks, limits, equivariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnpca.datasets import make_several_matrices
from mnpca.model.objective import Penalty, objective
from mnpca.solvers.likelihood.blocks import col_step, gauge_step, row_step, signal_step
from mnpca.solvers.likelihood.fit import begin, fit_likelihood


def stacked(data):
    return data.Y.reshape(-1, data.Y.shape[2])


@settings(max_examples=20, deadline=None)
@given(
    n_matrices=st.integers(2, 5),
    shape=st.tuples(st.integers(3, 7), st.integers(3, 7)),
    alphas=st.tuples(st.floats(0.05, 0.5), st.floats(0.05, 0.5)),
    ridge=st.sampled_from([0.0, 0.1]),
    scale_free=st.booleans(),
    step=st.sampled_from(["als", "closed"]),
    start=st.sampled_from(["svd", "scales"]),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_block_lowers_the_objective(
    n_matrices, shape, alphas, ridge, scale_free, step, start, seed
):
    Y = stacked(make_several_matrices(n_matrices, *shape, 1, random_state=seed))
    penalty = Penalty(*alphas, ridge=ridge, free=True, scale_free=scale_free)
    iterate = begin(Y, 1, penalty, start, n_matrices)
    value = iterate.value(Y, penalty)
    for _ in range(2):
        for block in (
            lambda it: row_step(Y, it, penalty, tol=1e-8),
            lambda it: col_step(Y, it, penalty, tol=1e-8),
            lambda it: gauge_step(Y, it, penalty),
            lambda it: signal_step(Y, it, penalty, step),
        ):
            iterate = block(iterate)
            new = iterate.value(Y, penalty)
            assert new <= value + 1e-8 * max(1.0, abs(value))
            value = new


def test_the_objective_is_the_mean_over_the_matrices():
    data = make_several_matrices(4, 6, 5, 1, random_state=0)
    Y, penalty = stacked(data), Penalty(0.1, 0.2, ridge=0.3)
    iterate = begin(Y, 1, penalty, "svd", 4)
    iterate = col_step(Y, row_step(Y, iterate, penalty, tol=1e-8), penalty, tol=1e-8)
    precisions = iterate.row_precision, iterate.col_precision
    left, right = iterate.signal
    parts = [
        objective(Y[rows], iterate.signal._replace(left=left[rows]), *precisions, penalty)
        for rows in (slice(6 * i, 6 * i + 6) for i in range(4))
    ]
    # The loadings' ridge counts once for all matrices, not once for each.
    again = 0.3 * np.vdot(right, iterate.col_precision @ right) / (6 * 5) * (1 - 1 / 4)
    assert iterate.value(Y, penalty) == pytest.approx(np.mean(parts) - again)


def flip_flop(matrices, sweeps=100):
    """Dutilleul's algorithm, written anew: inverses of the two mean covariances in turn."""
    count, n, p = matrices.shape
    B = np.eye(p)
    for _ in range(sweeps):
        A = np.linalg.inv(sum(y @ B @ y.T for y in matrices) / (count * p))
        B = np.linalg.inv(sum(y.T @ A @ y for y in matrices) / (count * n))
    scale = np.exp(np.linalg.slogdet(A)[1] / n)
    return A / scale, B * scale


def test_a_matrix_repeated_is_fitted_as_the_matrix():
    """The objective is a mean: copies of a matrix change nothing."""
    Y = make_several_matrices(1, 10, 8, 1, random_state=3).Y[0]
    one = fit_likelihood(Y, 1, Penalty(0.2, 0.2), tol=1e-9)
    copies = fit_likelihood(np.tile(Y, (3, 1)), 1, Penalty(0.2, 0.2), tol=1e-9, n_matrices=3)
    assert copies.history[-1] == pytest.approx(one.history[-1], abs=1e-7)
    difference = copies.row_precision.toarray() - one.row_precision.toarray()
    assert np.abs(difference).max() < 1e-3
    assert np.allclose(copies.signal.dense(), np.tile(one.signal.dense(), (3, 1)), atol=1e-3)


def test_permuted_matrices_rows_and_columns():
    data = make_several_matrices(6, 9, 7, 1, random_state=4)
    rng = np.random.default_rng(0)
    a, b, c = (rng.permutation(size) for size in data.Y.shape)
    penalty = Penalty(0.1, 0.1)
    fit = fit_likelihood(stacked(data), 1, penalty, tol=1e-9, n_matrices=6)
    moved = np.ascontiguousarray(data.Y[a][:, b][:, :, c]).reshape(-1, 7)
    other = fit_likelihood(moved, 1, penalty, tol=1e-9, n_matrices=6)
    assert other.history[-1] == pytest.approx(fit.history[-1], abs=1e-7)
    expected = fit.row_precision.toarray()[np.ix_(b, b)]
    assert np.allclose(other.row_precision.toarray(), expected, atol=1e-3)
