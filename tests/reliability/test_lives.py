"""Whole lives of models: fit, use, save, load, use again, report, on any data with any names."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tests.reliability.shared import (
    PARAMS,
    are_finite,
    assert_same_model,
    digest,
    make,
    report_of,
    sample,
)

import mnpca
from mnpca.model.whiteness import ModelCheckWarning
from mnpca.report import load_content, render, save_content, write_report


def holes(n, p, seed):
    X = sample(n, p, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
    X[np.arange(n), np.arange(n) % p] = 1.0  # no row or column without a value
    return X


def cube(n, p, seed):
    return np.stack([sample(n, p, seed + i) for i in range(4)])


def quick(**options):
    return make("MNPCA", **options)


#: Kind: estimator, data from (rows, columns, seed), methods to compare.
OTHERS = {
    "holes": (quick, holes, ("transform", "impute", "score_samples")),
    "holes, likelihood": (lambda: mnpca.LikelihoodMNPCA(1), holes, ("transform", "impute")),
    "holes, Wasserstein": (lambda: mnpca.WassersteinMNPCA(1, tol=1e-3), holes, ("impute",)),
    "several": (quick, cube, ("transform", "score_samples")),
    "tensor": (lambda: mnpca.TensorMNPCA(2), cube, ("transform",)),
    "folding": (lambda: mnpca.DimensionFoldingPCA(2, 1), cube, ("transform",)),
}
PLAIN = {
    name: (
        lambda name=name, **options: make(name, **options),
        sample,
        ("score_samples",) if name == "SparsePrecision" else ("transform", "score_samples"),
    )
    for name in PARAMS
}


def fit(model, X):
    before = np.array(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ModelCheckWarning)
        model.fit(X)
    assert before.tobytes() == np.array(X).tobytes(), "fit changed its input"
    return model


def check_life(kind, X, folder, **options):
    make_model, _, methods = (PLAIN | OTHERS)[kind]
    model = fit(make_model(**options), X)
    assert are_finite(model)
    again = mnpca.load(model.save(folder / "m") and folder / "m")
    assert_same_model(model, again)
    for name in methods:
        found = getattr(model, name)(X)
        assert np.isfinite(found).all(), name
        assert np.array_equal(found, getattr(again, name)(X)), name
    if kind != "SparsePrecision":
        assert np.isfinite(model.denoise()).all()
        assert np.array_equal(model.denoise(), again.denoise())
    if kind == "SparsePrecision" or np.ndim(X) > 2:
        with pytest.raises((TypeError, ValueError), match=r"no components|no report|one matrix"):
            write_report(model, X, folder / "report.html")
    else:
        check_report(model, again, X, folder)


def check_report(model, again, X, folder):
    """The report of a loaded model, and that of its document, are those of the model."""
    notes = list(map(str, X.columns))
    document = write_report(model, X, folder / "report.html", source="a.csv", notes=notes)
    write_report(again, X, folder / "again.html", source="a.csv", notes=notes)
    assert report_of(folder / "report.html") == report_of(folder / "again.html")
    save_content(document, folder / "report.json")
    html = render(load_content(folder / "report.json")).encode(errors="replace")
    assert html == (folder / "report.html").read_bytes()


LIFE = {
    "n": st.integers(6, 14),
    "p": st.integers(4, 9),
    "seed": st.integers(0, 2**31),
    "scale": st.floats(-6, 6),
    "names": st.lists(st.text(max_size=8), min_size=9, max_size=9, unique=True),
}
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def named(X, names):
    n, p = X.shape
    return pd.DataFrame(X, columns=names[:p], index=list("abcdefghijklmn"[:n]))


@pytest.mark.parametrize("kind", PLAIN)
@settings(max_examples=8, **QUIET)
@given(k=st.integers(1, 2), center=st.booleans(), **LIFE)
def test_models_of_a_matrix(tmp_path_factory, kind, n, p, seed, scale, names, k, center):
    options = {} if kind == "SparsePrecision" else {"n_components": k, "center": center}
    X = named(10.0**scale * sample(n, p, seed), names)
    check_life(kind, X, tmp_path_factory.mktemp("life"), **options)


@pytest.mark.parametrize("kind", OTHERS)
@settings(max_examples=3, **QUIET)
@given(**LIFE)
def test_models_of_more_than_a_complete_matrix(tmp_path_factory, kind, n, p, seed, scale, names):
    X = 10.0**scale * OTHERS[kind][1](n, p, seed)
    X = named(X, names) if X.ndim == 2 else X
    check_life(kind, X, tmp_path_factory.mktemp("life"))


@pytest.mark.parametrize("kind", OTHERS)
def test_twice_the_same_to_the_bit(kind):
    make_model, data, _ = OTHERS[kind]
    assert digest(fit(make_model(), data(12, 8, 7))) == digest(fit(make_model(), data(12, 8, 7)))


@pytest.mark.parametrize("kind", ["holes", "several"])
def test_n_jobs_does_not_change_a_bit(kind):
    make_model, data, _ = OTHERS[kind]
    X = data(50, 40, 7)
    one, two = (digest(fit(make_model(n_jobs=jobs), X)) for jobs in (1, 2))
    assert one == two
