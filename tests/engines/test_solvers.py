"""The solvers of dense matrices on arrays of other libraries than NumPy."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mnpca import LikelihoodMNPCA, WassersteinMNPCA
from mnpca.datasets import make_paper_small
from mnpca.engines.arrays import to_numpy
from mnpca.selection.penalty import bic_path
from mnpca.solvers.wasserstein import Pair, fit_convex, fit_gradient, identify
from mnpca.solvers.wasserstein.inverse_root import gram, inverse_root, stretches

ALPHA = Pair(0.05, 0.05)


def correlation(p, n, seed, n_factors=4):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, n_factors)) @ rng.normal(size=(n_factors, p)) / 2
    return np.corrcoef((factors + rng.normal(size=(n, p))).T)


# ---- the inverse root ------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [1.5, 1e2, 1e4])
def test_inverse_root(put, condition):
    rng = np.random.default_rng(1000)
    basis, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    values = np.geomspace(1, condition, 12)
    matrix = (basis * values) @ basis.T
    share = values.min() / np.sum(values**4) ** 0.25
    found = to_numpy(inverse_root(put(matrix), stretches(share)))
    np.testing.assert_allclose(found, (basis / np.sqrt(values)) @ basis.T, atol=1e-6)


def test_inverse_root_leaves_lost_directions_alone(put):
    rng = np.random.default_rng(1001)
    residual = rng.normal(size=(30, 8))
    residual -= np.outer(residual @ np.ones(8) / 8, np.ones(8))
    values, vectors = np.linalg.eigh(residual.T @ residual)
    share = values[1] / np.sum(values**4) ** 0.25
    found = to_numpy(inverse_root(put(residual.T @ residual), stretches(share)))
    expected = (vectors[:, 1:] / np.sqrt(values[1:])) @ vectors[:, 1:].T
    np.testing.assert_allclose(residual @ found, residual @ expected, atol=1e-6)
    assert np.abs(found).max() < 100 * np.abs(expected).max()


def test_gram_by_pieces(put, monkeypatch):
    monkeypatch.setattr("mnpca.solvers.wasserstein.inverse_root.LARGE_GRAM", 10)
    factor = np.random.default_rng(1002).normal(size=(9, 13))
    np.testing.assert_allclose(to_numpy(gram(put(factor))), factor.T @ factor, atol=1e-12)


# ---- the Wasserstein solvers -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(24, 15), (15, 24)])
def test_convex_method_is_the_processor_s(put, shape):
    data = make_paper_small(32, 1000, n_samples=shape[0], n_features=shape[1]).Y
    expected = fit_convex(data, 2, ALPHA)
    found = fit_convex(put(data), 2, ALPHA)
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-8)
    signal, precision = identify(data, 2, expected.precision)
    own_signal, own_precision = identify(put(data), 2, found.precision)
    dense = signal.low_rank().dense()
    np.testing.assert_allclose(own_signal.low_rank().dense(), dense, atol=1e-6)
    for own, side in zip(own_precision, precision, strict=True):
        np.testing.assert_allclose(own.toarray(), side.toarray(), atol=1e-6)


@pytest.mark.parametrize("shape", [(24, 15), (15, 24)])
@pytest.mark.parametrize("objective", ["relaxed", "original"])
def test_gradient_method_is_the_processor_s(put, shape, objective):
    """Products in place of eigenvectors: the same objective, to the rounding of float32."""
    data = make_paper_small(8, 1000, n_samples=shape[0], n_features=shape[1]).Y
    models = [
        WassersteinMNPCA(2, objective=objective, method="gradient", max_iter=25) for _ in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected, found = models[0].fit(data), models[1].fit(put(data))
    np.testing.assert_allclose(
        found.objective_history_, expected.objective_history_, rtol=1e-3, atol=1e-3
    )


def test_gradient_method_resumes_elsewhere(put):
    data = make_paper_small(8, 1001, n_samples=14, n_features=10).Y
    states = {}

    def keep(progress):
        states[progress.iteration] = progress.state()

    whole = fit_gradient(put(data), 2, ALPHA, max_iter=12, report=keep)
    resumed = fit_gradient(put(data), 2, ALPHA, max_iter=12, resume=states[5])
    np.testing.assert_allclose(resumed.history, whole.history, rtol=1e-6)


# ---- the likelihood solver -------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"alpha_row": 0.2, "alpha_col": 0.2},
        {"alpha_row": 0.3, "alpha_col": 0.3, "ridge": 0.1},
        {"alpha_row": 0.3, "alpha_col": 0.2, "low_rank_step": "closed", "start": "svd"},
        {"alpha_row": 0.0, "alpha_col": 0.3, "center": False},
    ],
)
def test_likelihood_is_the_processor_s(put, params, monkeypatch):
    monkeypatch.setattr("mnpca.precision.solve.SMALL", 5)
    data = make_paper_small(32, 1000, n_samples=18, n_features=12).Y
    expected = LikelihoodMNPCA(2, **params).fit(data)
    found = LikelihoodMNPCA(2, **params).fit(put(data))
    assert found.objective_history_[-1] == pytest.approx(expected.objective_history_[-1], abs=1e-5)
    assert (np.diff(found.objective_history_) <= 1e-12).all()
    assert type(found.components_) is type(put(data))
    np.testing.assert_allclose(to_numpy(found.denoise()), expected.denoise(), atol=0.02)
    for side in ("row_precision_", "col_precision_"):
        np.testing.assert_allclose(
            getattr(found, side).toarray(), getattr(expected, side).toarray(), atol=0.02
        )


def test_penalties_are_chosen_elsewhere(put):
    residual = make_paper_small(32, 1003, n_samples=14, n_features=30).Y
    S, m = residual @ residual.T / residual.shape[1], residual.shape[1]
    expected, found = bic_path(S.copy(), m, tol=1e-7), bic_path(put(S), m, tol=1e-7)
    np.testing.assert_allclose(found["alpha"], expected["alpha"])
    np.testing.assert_array_equal(found["n_edges"], expected["n_edges"])
    np.testing.assert_allclose(found["bic"], expected["bic"], atol=1e-4)


def test_likelihood_resumes_elsewhere(put, tmp_path):
    data = put(make_paper_small(32, 1001, n_samples=20, n_features=14).Y)
    params = {"alpha_row": 0.2, "alpha_col": 0.2}
    whole = LikelihoodMNPCA(2, **params).fit(data)
    path = tmp_path / "checkpoint"

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.stage.endswith("scales") and progress.iteration == 2:
            raise Stop

    with pytest.raises(Stop):
        LikelihoodMNPCA(2, **params).fit(data, callback=stop, checkpoint=path)
    resumed = LikelihoodMNPCA(2, **params).fit(data, resume_from=path)
    np.testing.assert_allclose(resumed.objective_history_, whole.objective_history_, rtol=1e-9)
