"""Effects of known covariates through the estimators."""

import numpy as np
import pytest
from sklearn.base import clone

import mnpca
from mnpca import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.datasets import chain_precision, make_paper_small
from mnpca.report import collect, render

N, P = 50, 30
DATA = make_paper_small(
    c=8, seed=1000, n_samples=N, n_features=P, row_precision=chain_precision(N, 0.8)
)
RNG = np.random.default_rng(0)
BATCH = RNG.integers(0, 3, N)
Z = np.column_stack([np.eye(3)[BATCH], RNG.standard_normal(N)])
EFFECTS = RNG.standard_normal((4, P))
C = RNG.standard_normal((P, 1))
H = RNG.standard_normal((N, 1))
X = DATA.Y + Z @ EFFECTS + H @ C.T

ESTIMATORS = {
    "mnpca": MNPCA(2, noise="graph", center=True, prior="gaussian"),
    "likelihood": LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3, tol=1e-4),
    "wasserstein": WassersteinMNPCA(2, tol=1e-3),
}


QUICK = MNPCA(2, noise="diagonal", prior="gaussian", max_iter=1, tol=1.0)
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::mnpca.ModelCheckWarning"
)


def fit(estimator, X=X, **arguments):
    return clone(estimator).fit(X, **arguments)


@pytest.fixture(scope="module", params=ESTIMATORS, name="fitted")
def _fitted(request):
    return fit(ESTIMATORS[request.param], row_covariates=Z, col_covariates=C)


def test_coefficients_are_generalized_least_squares_under_the_fitted_noise(fitted):
    model = fitted
    rows, cols = model.row_precision_.toarray(), model.col_precision_.toarray()
    design = np.column_stack([Z - Z.mean(axis=0), np.ones(N)])
    rest = X - model.denoise()
    coef = np.linalg.lstsq(
        np.linalg.cholesky(rows).T @ design, np.linalg.cholesky(rows).T @ rest, rcond=1e-8
    )[0][:-1]
    # Indicators of all batches beside a mean: only what the coefficients predict is determined.
    centered = Z - Z.mean(axis=0)
    assert centered @ model.row_coef_ == pytest.approx(centered @ coef, abs=1e-6)
    rest = rest - centered @ coef
    weight = cols @ C
    assert model.col_coef_ == pytest.approx(rest @ weight / (C.T @ weight), abs=1e-6)


def test_effects_are_nearer_than_by_least_squares_before():
    """Neighboring rows share noise, which ordinary least squares does not know."""
    n, p = 90, 45
    rng = np.random.default_rng(0)
    known = np.eye(3)[rng.integers(0, 3, n)]
    centered, effects = known - known.mean(axis=0), rng.standard_normal((3, p))
    data = make_paper_small(
        c=8, seed=1001, n_samples=n, n_features=p, row_precision=chain_precision(n, 0.8)
    )
    matrix = data.Y + known @ effects
    before = np.linalg.pinv(centered) @ matrix
    inside = fit(ESTIMATORS["mnpca"], matrix, row_covariates=known).row_coef_
    before, inside = (np.linalg.norm(centered @ (coef - effects)) for coef in (before, inside))
    assert inside < 0.85 * before


def test_scores_and_signal_are_free_of_the_effects(fitted):
    model = fitted
    # Less their means, so that the mean row stays: MNPCA has a prior for it.
    larger = X + 5 * (Z - Z.mean(axis=0)) @ EFFECTS
    other = fit(model, larger, row_covariates=Z, col_covariates=C)
    scores = model.transform(X, row_covariates=Z)
    assert other.transform(larger, row_covariates=Z) == pytest.approx(scores, abs=1e-6)
    assert other.denoise() == pytest.approx(model.denoise(), abs=1e-6)
    # Column covariates are known loadings: their multiples change no score.
    shifted = model.transform(X + 3.0 * np.ones((N, 1)) @ C.T, row_covariates=Z)
    assert shifted == pytest.approx(scores, abs=1e-8)
    assert np.isfinite(model.score(X, row_covariates=Z))


def test_covariates_and_missing_cells_together():
    hidden = np.random.default_rng(1).random(X.shape) < 0.15
    model = fit(
        ESTIMATORS["mnpca"], np.where(hidden, np.nan, X), row_covariates=Z, col_covariates=C
    )
    filled, std = model.impute(return_std=True)
    error = np.abs(filled - X)[hidden]
    means = np.nanmean(np.where(hidden, np.nan, X), axis=0)
    assert np.sqrt(np.mean(error**2)) < 0.8 * np.sqrt(np.mean((means - X)[hidden] ** 2))
    assert 0.8 < np.mean(error < 1.6449 * std[hidden]) < 0.97
    rows = np.where(hidden, np.nan, X)[:5]
    again = model.impute(rows, row_covariates=Z[:5])
    assert np.array_equal(again[~hidden[:5]], X[:5][~hidden[:5]])
    assert model.transform(rows, row_covariates=Z[:5]).shape == (5, 2)


def test_files_and_reports_keep_them(fitted, tmp_path):
    model = fitted
    again = mnpca.load(model.save(tmp_path / "model") and tmp_path / "model")
    assert np.array_equal(
        again.transform(X, row_covariates=Z), model.transform(X, row_covariates=Z)
    )
    assert "report" in render(collect(model, X)).lower()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_wrong_covariates_are_refused(name):
    estimator = clone(ESTIMATORS[name])
    with pytest.raises(ValueError, match=f"row_covariates must have a row for each of the {N} r"):
        estimator.fit(X, row_covariates=Z[:-1])
    with pytest.raises(ValueError, match=f"col_covariates must have a row for each of the {P} col"):
        estimator.fit(X, col_covariates=C[:-1])
    with pytest.raises(ValueError, match="row_covariates contains NaN"):
        estimator.fit(X, row_covariates=np.full((N, 1), np.nan))


def test_rows_need_the_covariates_that_the_fit_had(fitted):
    with pytest.raises(ValueError, match="fitted with row_covariates"):
        fitted.transform(X)
    with pytest.raises(ValueError, match="has 3 columns"):
        fitted.transform(X, row_covariates=Z[:, :3])


def test_a_second_fit_forgets_the_covariates():
    plain = clone(QUICK).fit(X, row_covariates=Z).fit(X)
    assert plain.row_coef_ is None
    with pytest.raises(ValueError, match="fitted without"):
        plain.transform(X, row_covariates=Z)


@pytest.mark.parametrize("library", ["torch", "dask.array"])
def test_rows_outside_numpy_are_refused(fitted, library):
    rows = pytest.importorskip(library).asarray(X)
    for method in (fitted.transform, fitted.score_samples, fitted.impute):
        with pytest.raises(ValueError, match="in NumPy arrays only"):
            method(rows, row_covariates=Z)
