"""Model files of every estimator: all of it comes back, and nothing foreign gets in."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.reliability.shared import fitted, make, report_of, sample

import mnpca
from mnpca.persistence import fingerprint
from mnpca.report import load_content, render, save_content, write_report

PINNED = Path(__file__).parent.parent / "data"


def assert_same_model(one, other):
    assert type(one) is type(other)
    assert fingerprint(one.get_params(deep=False)) == fingerprint(other.get_params(deep=False))
    a, b = fitted(one), fitted(other)
    assert a.keys() == b.keys()
    for key in a:
        assert type(a[key]) is type(b[key]), key
        assert fingerprint(a[key]) == fingerprint(b[key]), key


def frame(X):
    return pd.DataFrame(
        X,
        columns=[f"gene {j}" for j in range(X.shape[1])],
        index=[f"sample {i}" for i in range(len(X))],
    )


def test_the_output_format_comes_back(name, tmp_path):
    model = make(name)
    if not hasattr(model, "set_output"):
        pytest.skip("does not transform")
    model.set_output(transform="pandas").fit(sample()).save(tmp_path / "m")
    assert isinstance(mnpca.load(tmp_path / "m").transform(sample()), pd.DataFrame)


def test_saving_twice_gives_the_same_bytes(name, tmp_path):
    model = make(name).fit(sample())
    model.save(tmp_path / "a").save(tmp_path / "b")
    mnpca.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()


def test_a_loaded_model_can_be_fitted_again(name, tmp_path):
    make(name).fit(sample()).save(tmp_path / "m")
    X = sample(seed=1001)
    again = mnpca.load(tmp_path / "m").fit(X)
    assert_same_model(again, make(name).fit(X))


def test_an_unfitted_model_is_not_saved(name, tmp_path):
    with pytest.raises(NotFittedError):
        make(name).save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_subclass_is_not_saved_as_its_parent(tmp_path):
    class Mine(mnpca.GeneralizedPCA):
        pass

    with pytest.raises(TypeError, match="Mine has no model file"):
        Mine(n_components=1).fit(sample()).save(tmp_path / "m")


@pytest.mark.parametrize("path", sorted(PINNED.glob("*.mnpca")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_keep_loading(path):
    """`schema1-NAME.mnpca` were written by version 0.1 from sample(12, 5)."""
    model = mnpca.load(path)
    X = sample(12, 5)
    if isinstance(model, mnpca.DimensionFoldingPCA):
        X = X.reshape(3, 4, 5)
        assert model.transform(X).shape == (3, 2, 2)
    elif hasattr(model, "transform"):
        assert model.transform(X).shape == (12, 2)
    if hasattr(model, "score"):
        assert np.isfinite(model.score(X))
    assert type(model).__name__ == path.stem.removeprefix("schema1-")


def test_a_file_of_every_estimator_is_pinned():
    from mnpca.estimators._files import MODELS

    assert {path.stem for path in PINNED.glob("*.mnpca")} == {f"schema1-{m}" for m in MODELS}


def assert_same_report(model, again, X, folder):
    """The report of a loaded model, and that of its document, are those of the model."""
    notes = list(map(str, X.columns))
    document = write_report(model, X, folder / "report.html", source="a.csv", notes=notes)
    write_report(again, X, folder / "again.html", source="a.csv", notes=notes)
    html = (folder / "report.html").read_bytes()
    assert report_of(folder / "report.html") == report_of(folder / "again.html")
    save_content(document, folder / "report.json")
    assert render(load_content(folder / "report.json")).encode(errors="replace") == html


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    n=st.integers(5, 14),
    p=st.integers(3, 9),
    k=st.integers(1, 2),
    seed=st.integers(0, 2**31),
    scale=st.floats(1e-6, 1e6),
    names=st.lists(st.text(max_size=8), min_size=9, max_size=9, unique=True),
    center=st.booleans(),
)
def test_the_whole_life_of_a_model(tmp_path_factory, name, n, p, k, seed, scale, names, center):
    """Fit, transform, save, load, transform, report: on any data, with any names."""
    X = pd.DataFrame(
        scale * sample(n, p, seed), columns=names[:p], index=list("abcdefghijklmn"[:n])
    )
    params = {} if name == "SparsePrecision" else {"n_components": k, "center": center}
    folder = tmp_path_factory.mktemp("life")
    path = folder / "m"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make(name, **params).fit(X)
    again = mnpca.load(model.save(path) and path)
    assert_same_model(model, again)
    if hasattr(model, "transform"):
        scores = model.transform(X)
        assert np.isfinite(scores).all()
        assert np.array_equal(scores, again.transform(X))
        assert_same_report(model, again, X, folder)
    else:
        with pytest.raises(TypeError, match="has no components"):
            write_report(model, X, folder / "report.html")
