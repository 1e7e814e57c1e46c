"""Whole lives of models of more than one complete matrix: fit, use, save, load, use again."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.reliability.shared import are_finite, digest, report_of, sample

import mnpca
from mnpca.model.whiteness import ModelCheckWarning
from mnpca.report import write_report


def holes(n, p, seed):
    X = sample(n, p, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
    X[np.arange(n), np.arange(n) % p] = 1.0  # no row or column without a value
    return X


def cube(n, p, seed):
    return np.stack([sample(n, p, seed + i) for i in range(4)])


def quick(**options):
    return mnpca.MNPCA(2, noise="graph", prior="gaussian", **options)


#: Kind: estimator, data from (rows, columns, seed), methods to compare.
KINDS = {
    "holes": (quick, holes, ("transform", "impute", "score_samples")),
    "holes, likelihood": (lambda: mnpca.LikelihoodMNPCA(1), holes, ("transform", "impute")),
    "holes, Wasserstein": (lambda: mnpca.WassersteinMNPCA(1, tol=1e-3), holes, ("impute",)),
    "several": (quick, cube, ("transform", "score_samples")),
    "tensor": (lambda: mnpca.TensorMNPCA(2), cube, ("transform",)),
    "folding": (lambda: mnpca.DimensionFoldingPCA(2, 1), cube, ("transform",)),
}


def fit(model, X):
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ModelCheckWarning)
        model.fit(X)
    assert before.tobytes() == X.tobytes(), "fit changed its input"
    return model


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    n=st.integers(6, 14), p=st.integers(4, 9), seed=st.integers(0, 2**31), scale=st.floats(-6, 6)
)
def test_the_whole_life_of_a_model(tmp_path_factory, kind, n, p, seed, scale):
    make, data, methods = KINDS[kind]
    X = 10.0**scale * data(n, p, seed)
    model = fit(make(), X)
    assert are_finite(model)
    folder = tmp_path_factory.mktemp("life")
    path = folder / "m"
    again = mnpca.load(model.save(path) and path)
    assert digest(again) == digest(model)
    for name in methods:
        found = getattr(model, name)(X)
        assert np.isfinite(found).all(), name
        assert np.array_equal(found, getattr(again, name)(X)), name
    assert np.isfinite(model.denoise()).all()
    assert np.array_equal(model.denoise(), again.denoise())
    if X.ndim == 2:
        reports = [folder / "report.html", folder / "again.html"]
        for each, report in zip((model, again), reports, strict=True):
            write_report(each, X, report)
        assert report_of(reports[0]) == report_of(reports[1])
    else:
        with pytest.raises((TypeError, ValueError), match=r"no report|one matrix"):
            write_report(model, X, folder / "report.html")


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_same_to_the_bit(kind):
    make, data, _ = KINDS[kind]
    assert digest(fit(make(), data(12, 8, 7))) == digest(fit(make(), data(12, 8, 7)))


@pytest.mark.parametrize("kind", ["holes", "several"])
def test_n_jobs_does_not_change_a_bit(kind):
    make, data, _ = KINDS[kind]
    X = data(50, 40, 7)
    one, two = (digest(fit(make(n_jobs=jobs), X)) for jobs in (1, 2))
    assert one == two
