import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_paper_small
from mnpca.metrics import psnr
from mnpca.model.whiteness import ModelCheckWarning


@pytest.fixture(scope="module")
def data():
    return make_paper_small(c=64, seed=1000, n_samples=150, n_features=100, density=0.03)


@pytest.fixture(scope="module")
def model(data):
    return MNPCA().fit(data.Y)


def test_defaults_find_rank_and_networks(model, data):
    assert model.n_components_ == 2
    assert all(side["structure"] == "graph" for side in model.noise_.values())
    assert all(side["evidence_lost_with"]["diagonal"] > 0 for side in model.noise_.values())
    assert model.model_check_["white"]
    best = max(model.rank_path_, key=lambda step: step["evidence"])
    assert best["n_components"] == 2
    assert model.outliers_ is None
    assert len(model.objective_history_) == model.n_iter_
    assert psnr(model.denoise(), data.signal) > 13


def test_standard_errors_cover_the_signal(model, data):
    signal, std = model.denoise(return_std=True)
    assert std.shape == signal.shape
    error = np.abs(signal - data.signal) / std
    # The variational posterior is somewhat too narrow, never ridiculously so.
    assert 0.85 < np.mean(error < 2) <= 1.0


def test_units_do_not_matter(model, data):
    scaled = MNPCA().fit(1000 * data.Y)
    assert scaled.n_components_ == model.n_components_
    np.testing.assert_allclose(scaled.denoise() / 1000, model.denoise(), atol=1e-3)


def test_white_data_without_a_signal_have_no_component():
    Y = np.random.default_rng(1000).normal(size=(100, 64))
    model = MNPCA().fit(Y)
    assert model.n_components_ == 0
    assert model.components_.shape == (0, 64)
    rows = model.inverse_transform(model.transform(Y[:3]))
    np.testing.assert_allclose(rows, np.tile(model.mean_, (3, 1)))
    np.testing.assert_allclose(model.denoise(), np.broadcast_to(model.mean_, Y.shape))
    assert np.isfinite(model.score(Y))
    assert model.set_output(transform="pandas").transform(Y).shape == (100, 0)
    assert "No component stands clearly above the noise" in model.choice_


def test_robust_fit_finds_and_ignores_outliers(data):
    rng = np.random.default_rng(1000)
    where = rng.random(data.Y.shape) < 0.05
    spoilt = data.Y + where * rng.choice([-15.0, 15.0], size=data.Y.shape)
    robust = MNPCA(robust=True, prior="gaussian").fit(spoilt)
    assert robust.outliers_[where].mean() > 0.99
    assert robust.outliers_[~where].mean() < 0.01
    clean = psnr(MNPCA(2, prior="gaussian").fit(data.Y).denoise(), data.signal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plain fit is meant to fail
        plain = MNPCA(2, noise="diagonal", prior="gaussian").fit(spoilt)
    assert psnr(robust.denoise(), data.signal) > psnr(plain.denoise(), data.signal) + 3
    assert psnr(robust.denoise(), data.signal) > clean - 2


def test_diagonal_noise_on_chains_warns_and_says_what_to_do():
    rows, cols = chain_precision(96, 0.7), chain_precision(64, 0.7)
    Y = make_paper_small(
        seed=1000, n_samples=96, n_features=64, row_precision=rows, col_precision=cols
    ).Y
    with pytest.warns(ModelCheckWarning, match='noise="graph"'):
        model = MNPCA(2, noise="diagonal", prior="gaussian").fit(Y)
    assert model.model_check_["white"] is False
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelCheckWarning)
        MNPCA(2, noise="graph", prior="gaussian").fit(Y)


@pytest.mark.filterwarnings("ignore::mnpca.model.whiteness.ModelCheckWarning")
def test_a_fit_that_does_not_settle_says_what_to_change(data):
    model = MNPCA(2, noise="diagonal", prior="gaussian", max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="Use fewer components, or a larger max_iter"):
        model.fit(data.Y[:50, :40])
    assert not model.converged_


@pytest.mark.parametrize("noise", ["diagonal", "graph"])
def test_units_of_the_columns_that_differ_by_decades_do_no_harm(noise):
    data = make_paper_small(c=8, seed=0, n_samples=90, n_features=60)
    units = np.random.default_rng(0).permutation(np.logspace(-8, 8, 60))
    plain, other = (
        MNPCA(2, noise=noise, prior="gaussian").fit(Y) for Y in (data.Y, data.Y * units)
    )
    found, with_units = (
        psnr(estimate, data.signal) for estimate in (plain.denoise(), other.denoise() / units)
    )
    # Equal variances, which help where columns share a unit, are no help here.
    assert with_units > found - 0.8


def test_rows_in_different_units_are_fitted_in_these():
    data = make_paper_small(c=8, seed=1000, n_samples=90, n_features=60)
    units = np.random.default_rng(0).permutation(np.logspace(-2, 2, 90))[:, None]
    options = {"noise": "diagonal", "prior": "gaussian"}
    plain, model = (MNPCA(**options).fit(Y) for Y in (data.Y, data.Y * units))
    signal, error = (each / units for each in model.denoise(return_std=True))
    assert psnr(signal, data.signal) > psnr(plain.denoise(), data.signal) - 0.3
    assert 0.7 < np.sqrt(np.mean(((signal - data.signal) / error) ** 2)) < 1.4
    assert "units of their own" in model.choice_
    assert "units of their own" not in plain.choice_
    found = np.log(model.noise_["rows"]["units"][:, None] / units)
    assert found.std() < 0.5
    B, W = model.col_precision_, model.components_.T
    np.testing.assert_allclose(W.T @ (B @ W), np.eye(model.n_components_), atol=1e-6)
    # A new row has its scores in its own unit, whichever that is.
    np.testing.assert_allclose(model.transform(7 * data.Y), 7 * model.transform(data.Y))


def test_rows_with_more_noise_share_the_unit_of_the_others():
    data = make_paper_small(c=8, seed=1000, n_samples=90, n_features=60)
    levels = np.exp(np.random.default_rng(0).normal(size=(90, 1)))
    noise = levels * (data.Y - data.signal)
    model = MNPCA(noise="diagonal", prior="gaussian").fit(2 * data.signal + noise)
    assert model.noise_["rows"]["units"] is None


def test_components_are_nested_and_the_noise_does_not_depend_on_their_number(model, data):
    one = MNPCA(1).fit(data.Y)
    assert one.n_signal_ == model.n_components_ == 2
    np.testing.assert_array_equal(one.components_, model.components_[:1])
    np.testing.assert_array_equal(one.col_precision_.toarray(), model.col_precision_.toarray())
    np.testing.assert_array_equal(one.denoise(all_components=True), model.denoise())
    assert np.linalg.matrix_rank(one.denoise() - one.mean_) == 1
    more = MNPCA(4, prior="gaussian").fit(data.Y)
    assert more.n_components_ == more.n_signal_ == 4
    np.testing.assert_array_equal(more.denoise(all_components=True), more.denoise())


def test_each_side_has_the_noise_that_is_asked_for(data):
    model = MNPCA(2, noise=("identity", "graph"), prior="gaussian").fit(data.Y)
    assert model.noise_["rows"]["structure"] == "identity"
    assert model.noise_["columns"]["n_edges"] > 0
    with pytest.raises(ValueError, match="a pair of these for rows and columns"):
        MNPCA(noise=("graph", "diagonal", "graph")).fit(data.Y)


@pytest.fixture(scope="module")
def grouped():
    data = make_paper_small(c=8, seed=3, n_samples=150, n_features=100, signal_scale=1.5)
    return data, MNPCA().fit(data.Y)


def test_learned_priors_find_groups_and_a_better_signal(grouped):
    data, model = grouped
    plain = MNPCA(prior="gaussian").fit(data.Y)
    assert psnr(model.denoise(), data.signal) > psnr(plain.denoise(), data.signal) + 5.0
    assert plain.priors_["rows"] == {"family": "gaussian", "groups": None, "zero": None}
    np.testing.assert_array_equal(model.components_, plain.components_)
    groups = model.priors_["rows"]["groups"]
    assert groups.shape == (150, 3)
    np.testing.assert_allclose(groups.sum(axis=1), 1.0)
    assert adjusted_rand_score(data.labels, groups.argmax(axis=1)) > 0.95
    part = np.ptp(data.signal, axis=0) > 0
    zero = model.priors_["columns"]["zero"]
    assert zero[part].mean() < 0.1
    assert zero[~part].mean() > 0.9


def test_missing_cells_are_filled_in_under_learned_priors(grouped):
    data, _ = grouped
    missing = np.random.default_rng(0).random(data.Y.shape) < 0.05
    holed = np.where(missing, np.nan, data.Y)
    errors = {}
    for prior in ("auto", "gaussian"):
        model = MNPCA(2, noise="diagonal", prior=prior).fit(holed)
        errors[prior] = np.linalg.norm(model.denoise() - data.signal)
    assert errors["auto"] < 0.6 * errors["gaussian"]
