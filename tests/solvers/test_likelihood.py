"""The likelihood algorithm: every block lowers the one objective, and where it ends."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from mnpca.datasets import (
    make_low_rank_matrix_normal,
    make_paper_small,
    make_several_matrices,
)
from mnpca.metrics import psnr
from mnpca.model.low_rank import LowRank
from mnpca.model.objective import Penalty, objective
from mnpca.model.sparse import logdet
from mnpca.precision import NotCertifiedError
from mnpca.solvers.likelihood.blocks import (
    Iterate,
    alternate_least_squares,
    check_bounded,
    closed_form,
    col_step,
    gauge_step,
    row_step,
    signal_step,
)
from mnpca.solvers.likelihood.fit import begin, fit_likelihood

TOL = 1e-8
EXACT = {"tol": 1e-9, "max_iter": 500}


@st.composite
def problems(draw):
    """A matrix, or several one under the other, whose likelihood needs a penalty."""
    n, p = draw(st.integers(3, 9)), draw(st.integers(3, 9))
    n_matrices = draw(st.sampled_from([1, 1, 3]))
    rank = draw(st.integers(1, min(n, p) - 1))
    weights = [0.05, 0.1, 0.5] if n_matrices > 1 else [0.0, 0.02, 0.1, 0.5]
    penalty = Penalty(
        *(draw(st.sampled_from(weights)) for _ in range(2)),
        diagonal=n_matrices > 1 or draw(st.booleans()),
        ridge=draw(st.sampled_from([0.0, 0.01, 0.5])),
        free=n_matrices > 1,
        scale_free=draw(st.booleans()),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**31 - 1)))
    data = rng.normal(size=(n_matrices * n, p)) * np.exp(rng.normal(size=p))
    data += 2 * rng.normal(size=(n_matrices * n, rank)) @ rng.normal(size=(rank, p))
    start, step = draw(st.sampled_from(["svd", "scales"])), draw(st.sampled_from(["als", "closed"]))
    return data, penalty, begin(data, rank, penalty, start, n_matrices), step


@settings(max_examples=40, deadline=None)
@given(problems())
def test_every_block_lowers_the_objective(problem):
    data, penalty, iterate, low_rank_step = problem
    now = iterate.value(data, penalty)
    for _ in range(3):
        for step in (
            lambda it: row_step(data, it, penalty, tol=TOL),
            lambda it: col_step(data, it, penalty, tol=TOL),
            lambda it: gauge_step(data, it, penalty),
            lambda it: signal_step(data, it, penalty, low_rank_step),
        ):
            iterate = step(iterate)
            before, now = now, iterate.value(data, penalty)
            assert now <= before + 1e-10 * max(1.0, abs(before))


@pytest.fixture(scope="module")
def data():
    return make_low_rank_matrix_normal(16, 11, 2, density=0.08, condition=8, random_state=0).Y


@pytest.mark.parametrize(
    ("ridge", "low_rank_step", "scale_free"),
    [(0.0, "als", False), (0.05, "als", True), (0.05, "closed", False), (0.0, "closed", True)],
)
def test_it_ends_where_no_block_can_improve(data, ridge, low_rank_step, scale_free):
    penalty = Penalty(0.15, 0.1, True, ridge, scale_free=scale_free)
    fit = fit_likelihood(data, 2, penalty, start="svd", low_rank_step=low_rank_step, **EXACT)
    assert fit.converged
    assert np.all(np.diff(fit.history) <= 1e-12)
    end = Iterate(fit.signal, fit.row_precision, fit.col_precision)
    assert end.value(data, penalty) == pytest.approx(fit.history[-1], abs=1e-12)
    for step in (row_step, col_step):
        better = step(data, end, penalty, tol=1e-10).value(data, penalty)
        assert better == pytest.approx(fit.history[-1], abs=1e-7)
    for low_rank in ("als", "closed"):
        better = signal_step(data, end, penalty, low_rank).value(data, penalty)
        assert better == pytest.approx(fit.history[-1], abs=1e-6)


def test_only_the_product_of_the_penalties_counts_unless_they_are_scale_free(data):
    fit = fit_likelihood(data, 2, Penalty(0.3, 0.1), start="svd", **EXACT)
    end = Iterate(fit.signal, fit.row_precision * 3, fit.col_precision / 3)
    swapped = Penalty(0.1, 0.3)
    assert end.value(data, swapped) == pytest.approx(fit.history[-1])
    for step in (row_step, col_step):
        better = step(data, end, swapped, tol=1e-10).value(data, swapped)
        assert better == pytest.approx(fit.history[-1], abs=1e-7)

    penalty, swapped = (Penalty(*side, scale_free=True) for side in ((0.3, 0.1), (0.1, 0.3)))
    fit = fit_likelihood(data, 2, penalty, start="svd", **EXACT)
    end = Iterate(fit.signal, fit.row_precision, fit.col_precision)
    better = row_step(data, end, swapped, tol=1e-10).value(data, swapped)
    assert better < end.value(data, swapped) - 1e-3
    assert logdet(end.row_precision) == pytest.approx(0, abs=1e-8)
    for factor in (0.9, 1.1):
        rescaled = replace(end, col_precision=end.col_precision * factor)
        assert rescaled.value(data, penalty) > fit.history[-1] + 1e-3
    moved = replace(end, row_precision=end.row_precision * 3, col_precision=end.col_precision / 3)
    assert moved.value(data, penalty) == pytest.approx(fit.history[-1])


def test_permuted_data_permute_the_fit_and_transposed_data_swap_the_sides():
    data = make_low_rank_matrix_normal(40, 25, 2, density=0.06, condition=8, random_state=0).Y
    part, penalty = data[:24, :16], Penalty(0.3, 0.2, scale_free=True)
    options = {"low_rank_step": "closed", "start": "svd", "tol": 1e-7, "max_iter": 1000}
    fit = fit_likelihood(part, 1, penalty, **options)
    rng = np.random.default_rng(1000)
    rows, cols = rng.permutation(24), rng.permutation(16)
    permuted = fit_likelihood(part[rows][:, cols], 1, penalty, **options)
    transposed = fit_likelihood(part.T, 1, Penalty(0.2, 0.3, scale_free=True), **options)
    assert permuted.history[-1] == pytest.approx(fit.history[-1], abs=1e-7)
    assert transposed.history[-1] == pytest.approx(fit.history[-1], abs=1e-6)
    signal = fit.signal.dense()
    np.testing.assert_allclose(permuted.signal.dense(), signal[rows][:, cols], atol=1e-3)
    np.testing.assert_allclose(transposed.signal.dense(), signal.T, atol=1e-2)
    network = fit.row_precision.toarray() / fit.row_precision.diagonal().mean()
    for side, expected in (
        (permuted.row_precision, network[rows][:, rows]),
        (transposed.col_precision, network),
    ):
        np.testing.assert_allclose(side.toarray() / side.diagonal().mean(), expected, atol=1e-2)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_low_rank_steps_solve_the_same_problem(data, ridge, monkeypatch):
    first = fit_likelihood(data, 2, Penalty(0.15, 0.1), max_iter=2, tol=1e-12)
    A, B = first.row_precision, first.col_precision
    closed = closed_form(data, 2, A, B, ridge)
    als = alternate_least_squares(data, first.signal, A, B, ridge, tol=1e-14, max_iter=5000)
    np.testing.assert_allclose(als.dense(), closed.dense(), atol=1e-5)
    # Neither can be improved by least squares in one factor.
    X, W = closed
    again = data @ (B @ W) @ np.linalg.inv(W.T @ (B @ W) + ridge * np.eye(2))
    np.testing.assert_allclose(again, X, atol=1e-8)
    again = data.T @ (A @ X) @ np.linalg.inv(X.T @ (A @ X) + ridge * np.eye(2))
    np.testing.assert_allclose(again, W, atol=1e-8)
    # Large data need products only.
    monkeypatch.setattr("mnpca.model.gpca.DENSE_LIMIT", 1)
    by_products = closed_form(data, 2, A, B, ridge)
    np.testing.assert_allclose(by_products.dense(), closed.dense(), atol=1e-7)


def test_an_unpenalized_diagonal_holds_the_scale():
    """The free problem has no minimum: B would lose its penalty as A grows without edges."""
    data = make_paper_small(8, 0, n_samples=120, n_features=80, density=0.02)
    fit = fit_likelihood(data.Y, 2, Penalty(0.3, 0.3, diagonal=False))
    assert fit.converged
    assert logdet(fit.row_precision) == pytest.approx(0, abs=1e-10)
    assert psnr(fit.signal.dense(), data.signal) > 12


def test_a_covariance_of_rounding_errors_is_made_symmetric():
    """A row precision close to singular leaves next to nothing of a residual but rounding."""
    rng = np.random.default_rng(1000)
    basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    nearly_singular = sp.csr_array((basis * np.logspace(-7, 6, 6)) @ basis.T)
    data = basis[:, :2] @ rng.normal(size=(2, 4))
    iterate = Iterate(LowRank(np.zeros((6, 0)), np.zeros((4, 0))), nearly_singular, sp.eye_array(4))
    penalty = Penalty(0.1, 0.1)
    moved = col_step(data, iterate, penalty, tol=TOL)
    assert moved.value(data, penalty) <= iterate.value(data, penalty)


def test_an_unbounded_likelihood_is_an_error_that_says_what_to_do():
    """The descent fits a column exactly, and the precision of that column grows without end."""
    Y = make_paper_small(c=8, seed=0, n_samples=15, n_features=10).Y
    with pytest.raises(NotCertifiedError, match=r"fit column 0 exactly.*penalize_diagonal=True"):
        fit_likelihood(Y, 2, Penalty(0.05, 0.05, diagonal=False))
    assert fit_likelihood(Y, 2, Penalty(0.05, 0.05), max_iter=5).history[-1] < np.inf
    larger = make_paper_small(c=8, seed=1000).Y  # rounding errors stop it short of zero
    with pytest.raises(NotCertifiedError, match="fit column"):
        fit_likelihood(larger - larger.mean(axis=0), 2, Penalty(0.05, 0.05, diagonal=False))
    Y[:, 2] = 0.0
    with pytest.raises(NotCertifiedError, match="Use penalize_diagonal=True"):
        fit_likelihood(Y, 1, Penalty(0.1, 0.1, diagonal=False))


def test_an_unbounded_likelihood_is_seen_on_the_way():
    """Before the precisions get so ill-conditioned that their solver takes minutes."""
    path = [0.27, 0.073, 0.012, 2.5e-4]  # seen with penalties of .02 on 300 x 200, in 25 seconds
    shares = [{"column": np.array([0.4, share])} for share in path]
    check_bounded(shares[-4:-1])
    with pytest.raises(NotCertifiedError, match=r"fit column 1 exactly.*penalize_diagonal=True"):
        check_bounded(shares[-3:])
    strong = [{"row": np.array([share])} for share in (0.3, 2e-6, 1e-6)]
    check_bounded(strong)


def test_scaled_start_sees_a_signal_below_the_noise():
    """Rows and columns of large variance hide the signal from the SVD, not from scaled data."""
    rng = np.random.default_rng(0)
    signal = np.outer(np.sign(rng.normal(size=80)), np.ones(60))
    noise = (
        rng.normal(size=(80, 60)) * np.exp(rng.normal(size=60)) * np.exp(rng.normal(size=(80, 1)))
    )
    errors = [
        np.mean((begin(signal + noise, 1, Penalty(0.1, 0.1), name).signal.dense() - signal) ** 2)
        for name in ("svd", "scales")
    ]
    assert errors[1] < 0.5 * errors[0]


def test_the_lower_end_is_kept():
    data = make_paper_small(96, 0, n_samples=150, n_features=100).Y
    penalty = Penalty(0.6, 0.6)
    ends = {
        name: fit_likelihood(data, 2, penalty, start=name) for name in ("best", "svd", "scales")
    }
    assert ends["best"].history == min(
        (ends["svd"].history, ends["scales"].history), key=lambda history: history[-1]
    )
    assert ends["svd"].history[-1] != ends["scales"].history[-1]


# ---- several matrices ----


def stacked(data):
    return data.Y.reshape(-1, data.Y.shape[2])


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


def test_a_matrix_repeated_is_fitted_as_the_matrix():
    """The objective is a mean: copies of a matrix change nothing."""
    Y = make_several_matrices(1, 10, 8, 1, random_state=3).Y[0]
    options = {"tol": 1e-7, "start": "svd"}
    one = fit_likelihood(Y, 1, Penalty(0.2, 0.2), **options)
    copies = fit_likelihood(np.tile(Y, (3, 1)), 1, Penalty(0.2, 0.2), n_matrices=3, **options)
    assert copies.history[-1] == pytest.approx(one.history[-1], abs=1e-6)
    np.testing.assert_allclose(
        copies.row_precision.toarray(), one.row_precision.toarray(), atol=1e-3
    )
    assert np.allclose(copies.signal.dense(), np.tile(one.signal.dense(), (3, 1)), atol=1e-3)
