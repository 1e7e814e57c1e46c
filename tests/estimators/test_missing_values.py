"""Matrices with missing values through the estimators."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mnpca import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.datasets import (
    chain_precision,
    make_low_rank_matrix_normal,
    make_paper_small,
    random_sparse_precision,
)
from mnpca.metrics import psnr

N, P = 70, 45
RNG = np.random.default_rng(7)
DATA = make_low_rank_matrix_normal(
    N,
    P,
    signal=1.5 * RNG.standard_normal((N, 2)) @ RNG.standard_normal((2, P)),
    row_precision=random_sparse_precision(N, 0.03, 8, 1),
    col_precision=random_sparse_precision(P, 0.05, 8, 2),
    random_state=3,
)
MISSING = np.random.default_rng(0).random(DATA.Y.shape) < 0.2
Y = np.where(MISSING, np.nan, DATA.Y)

ESTIMATORS = {
    "mnpca": MNPCA(2, noise="graph", prior="gaussian"),
    "diagonal": MNPCA(2, noise="diagonal", prior="gaussian"),
    "likelihood": LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3, tol=1e-4),
    "wasserstein": WassersteinMNPCA(2, tol=1e-3),
}


@pytest.fixture(params=ESTIMATORS, name="name")
def _name(request):
    return request.param


# The structure of the noise is given, and need not be the right one.
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::mnpca.ModelCheckWarning"
)


def fit(estimator, X, **arguments):
    return clone(estimator).fit(X, **arguments)


@functools.cache
def fitted(name, complete=False):
    """Return a fit that no test changes."""
    return fit(ESTIMATORS[name], DATA.Y if complete else Y)


def error(filled, hidden=MISSING, truth=DATA.Y):
    return np.sqrt(np.mean((np.broadcast_to(filled, truth.shape) - truth)[hidden] ** 2))


def coverage(filled, std, hidden=MISSING, truth=DATA.Y):
    return np.mean(np.abs(filled - truth)[hidden] < 1.6449 * std[hidden])


def test_missing_cells_are_filled_near_the_level_of_the_noise(name):
    filled, std = fitted(name).impute(return_std=True)
    assert error(filled) < 1.2 * error(DATA.signal)
    assert error(filled) < 0.7 * error(np.nanmean(Y, axis=0))
    assert np.array_equal(filled[~MISSING], DATA.Y[~MISSING])
    assert np.all(std[~MISSING] == 0.0)
    assert np.all(std[MISSING] > 0.0)
    least, most = (0.85, 0.95) if name in ("mnpca", "diagonal") else (0.75, 0.97)
    assert least < coverage(filled, std) < most
    assert np.array_equal(fitted(name).missing_, MISSING)


def test_the_signal_loses_little(name):
    complete = psnr(fitted(name, complete=True).denoise(), DATA.signal)
    assert psnr(fitted(name).denoise(), DATA.signal) > complete - 2.0


def test_standard_errors_of_the_signal_are_calibrated():
    signal, std = fitted("mnpca").denoise(return_std=True)
    assert 0.85 < coverage(signal, std, np.ones_like(MISSING), DATA.signal) < 0.96


def test_a_complete_matrix_is_fitted_as_ever(name):
    model = fitted(name, complete=True)
    assert model.missing_ is None
    refuses = fit(clone(ESTIMATORS[name]).set_params(missing="error"), DATA.Y)
    assert np.array_equal(model.denoise(), refuses.denoise())
    with pytest.raises(ValueError, match="no missing values"):
        model.impute()
    assert not refuses.__sklearn_tags__().input_tags.allow_nan
    for method in (refuses.fit, refuses.transform, refuses.score_samples):
        with pytest.raises(ValueError, match="NaN"):
            method(Y)


def test_rows_with_missing_cells_are_projected_from_what_they_show(name):
    model = fitted(name)
    scores, complete = model.transform(Y), model.transform(DATA.Y)
    assert np.corrcoef(scores[:, 0], complete[:, 0])[0, 1] > 0.99
    one_missing = DATA.Y.copy()
    one_missing[0, 0] = np.nan
    assert model.transform(one_missing)[1:] == pytest.approx(complete[1:])
    assert model.score(Y) > model.score(DATA.Y)  # fewer cells, each of density below one


def test_new_rows_are_imputed_with_calibrated_errors():
    train, test = DATA.Y[:50], DATA.Y[50:]
    model = fit(ESTIMATORS["diagonal"], train)
    hidden = np.random.default_rng(5).random(test.shape) < 0.3
    filled, std = model.impute(np.where(hidden, np.nan, test), return_std=True)
    assert error(filled, hidden, test) < 0.7 * error(model.mean_, hidden, test)
    assert 0.83 < coverage(filled, std, hidden, test) < 0.96


def test_a_row_without_any_value():
    model = fitted("diagonal", complete=True)
    rows = DATA.Y[:3].copy()
    rows[1] = np.nan
    assert model.impute(rows)[1] == pytest.approx(model.mean_)
    for method in (model.transform, model.score_samples):
        with pytest.raises(ValueError, match="Row 1 of X has no observed value"):
            method(rows)


@pytest.mark.parametrize(("axis", "side"), [(0, "Row 4"), (1, "Column 4")])
def test_fits_refuse_rows_and_columns_without_any_value(name, axis, side):
    X = DATA.Y.copy()
    np.moveaxis(X, axis, 0)[4] = np.nan
    with pytest.raises(ValueError, match=f"{side} of X has no observed value"):
        clone(ESTIMATORS[name]).fit(X)


def test_blocks_and_unequal_missingness():
    hidden = np.random.default_rng(1).random(DATA.Y.shape) < np.linspace(0.0, 0.6, N)[:, None]
    hidden[:25, :15] = True
    X = np.where(hidden, np.nan, DATA.Y)
    model = fit(MNPCA(2, noise="graph", prior="gaussian"), X)
    filled, std = model.impute(return_std=True)
    assert error(filled, hidden) < 0.7 * error(np.nanmean(X, axis=0), hidden)
    assert 0.83 < coverage(filled, std, hidden) < 0.96
    # Rows that were hardly observed have larger standard errors of their signal.
    _, signal_std = model.denoise(return_std=True)
    assert signal_std[-15:].mean() > 1.1 * signal_std[25:40].mean()


def test_the_noise_network_helps():
    """Correlated in time, the neighbors of a missing cell tell more than the signal."""
    data = make_paper_small(
        c=8, seed=3, n_samples=80, n_features=40, row_precision=chain_precision(80, 0.9)
    )
    hidden = np.random.default_rng(0).random(data.Y.shape) < 0.1
    X = np.where(hidden, np.nan, data.Y)
    graph = fit(ESTIMATORS["mnpca"], X).impute()
    diagonal = fit(ESTIMATORS["diagonal"], X).impute()
    assert error(graph, hidden, data.Y) < 0.85 * error(diagonal, hidden, data.Y)


def test_networks_that_predict_better_are_taken():
    """Pairs of columns: a network, with components that are hard to tell from it."""
    rng = np.random.default_rng(4)
    X = np.repeat(rng.standard_normal((100, 4)), 2, axis=1) + 0.5 * rng.standard_normal((100, 8))
    hidden = rng.random(X.shape) < 0.2
    observed = np.where(hidden, np.nan, X)
    model = fit(MNPCA(prior="gaussian"), observed)
    assert {each["noise"][1] for each in model.predictions_} == {"diagonal", "graph"}
    best = min(model.predictions_, key=lambda each: each["error"])
    assert best["noise"][1] == "graph"
    assert best["n_components"] == model.n_components_
    assert model.predictions_[0]["n_cells"] == pytest.approx(0.3 * (~hidden).sum(), abs=3)
    assert model.noise_["columns"]["structure"] == "graph"
    diagonal = fit(MNPCA(noise="diagonal", prior="gaussian"), observed)
    assert diagonal.predictions_ is None
    assert error(model.impute(), hidden, X) < 1.02 * error(diagonal.impute(), hidden, X)
    # The rank is what stands above the noise, unless it was given.
    assert np.all(model.singular_values_ > np.sqrt(100) + np.sqrt(8))
    assert fit(MNPCA(4, noise="diagonal", prior="gaussian"), observed).n_components_ == 4


def test_no_component_and_outliers_with_missing_cells():
    empty = fit(MNPCA(0, noise="diagonal", prior="gaussian"), Y)
    assert empty.impute() == pytest.approx(np.where(MISSING, empty.mean_, Y), abs=1e-6)
    spoiled = Y.copy()
    spoiled[2, 3], spoiled[50, 10] = 80.0, -90.0
    robust = fit(MNPCA(2, noise="diagonal", prior="gaussian", robust=True), spoiled)
    assert robust.outliers_[2, 3] or MISSING[2, 3]
    assert robust.outliers_[50, 10] or MISSING[50, 10]
    assert np.isfinite(robust.impute()).all()
    assert np.array_equal(robust.impute()[~MISSING], spoiled[~MISSING])


def test_values_are_filled_in_the_type_of_the_data(name):
    frame = pd.DataFrame(Y.astype(np.float32)).add_prefix("gene ")
    model = fit(ESTIMATORS[name], frame)
    assert model.impute().dtype == model.impute(frame).dtype == np.float32
