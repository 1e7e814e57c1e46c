"""Data frames as people have them: what their library marks as missing, sparse, times, polars."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.reliability.shared import make, sample

from mnpca import MNPCA
from mnpca.plots import NoiseGraphDisplay

NAMES = [f"c{j}" for j in range(10)]
X = pd.DataFrame(sample(), columns=NAMES)


MISSING = X.mask((X.index.to_numpy()[:, None] == 0) & (np.array(NAMES) == "c0"))
QUICK = MNPCA(2, noise="diagonal", prior="gaussian", max_iter=1, tol=1.0)


@pytest.fixture(scope="module")
def model():
    return make("MNPCA").fit(X)


@pytest.fixture(scope="module")
def with_missing():
    return clone(QUICK).fit(MISSING)


@pytest.mark.parametrize("dtype", ["Float64", "object", "double[pyarrow]"])
def test_missing_values_of_pandas_are_missing_everywhere(model, with_missing, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    hidden = MISSING
    nullable = hidden.astype(dtype)
    nullable.iloc[0, 0] = pd.NA
    fitted = clone(QUICK).fit(nullable)
    np.testing.assert_array_equal(fitted.components_, with_missing.components_)
    for method in ("transform", "score_samples", "impute"):
        here, there = getattr(model, method)(nullable), getattr(model, method)(hidden)
        np.testing.assert_array_equal(here, there)
    assert model.score(nullable) == model.score(hidden)


@pytest.mark.parametrize("name", ["MNPCA", "LikelihoodMNPCA", "SparsePrecision"])
def test_sparse_frames_are_read(name):
    positive = X.where(X > 0, 0.0)
    sparse = positive.astype(pd.SparseDtype("float", 0.0))
    one, other = make(name).fit(sparse), make(name).fit(positive)
    if name == "SparsePrecision":
        np.testing.assert_array_equal(one.precision_.toarray(), other.precision_.toarray())
        return
    # These stay sparse, and other sums round differently.
    for here, there in (
        (one.components_, other.components_),
        (one.transform(sparse), other.transform(positive)),
    ):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-6 * np.abs(there).max())


@pytest.mark.parametrize(
    "time",
    [
        pd.Timestamp("2020-01-01"),
        pd.Timestamp("2020-01-01", tz="UTC"),
        pd.Timedelta("1D"),
        pd.Period("2020-01"),
    ],
    ids=["time", "zone", "span", "period"],
)
def test_times_are_refused_by_name(name, time):
    with pytest.raises(ValueError, match=r"the first 'when'.*Leave such columns out"):
        make(name).fit(X.assign(when=time))


@pytest.fixture(params=["MNPCA", "LikelihoodMNPCA", "GeneralizedPCA", "SparsePrecision"])
def name(request):
    return request.param


@pytest.mark.parametrize("text", ["a", pd.Categorical(["a"] * len(X))], ids=["text", "category"])
def test_text_is_refused_by_name(text):
    frame = X.assign(kind=text, number="1.5")
    with pytest.raises(ValueError, match=r"'a' in column 'kind'\. Leave columns of text out"):
        make("MNPCA").fit(frame)
    clone(QUICK).fit(frame.drop(columns="kind"))


def test_the_network_needs_no_data(model):
    with pytest.raises(TypeError, match=r'from_estimator\(model, "columns"\)'):
        NoiseGraphDisplay.from_estimator(model, X)


@pytest.mark.parametrize("shape", [(12, 5), (5, 12)])
def test_as_many_components_as_columns_leave_no_noise(shape):
    data = sample(*shape)
    with pytest.warns(UserWarning, match="n_components=5 would leave no noise.*Use n_components=4"):
        fitted = MNPCA(5).fit(data)
    assert fitted.n_components_ == 4
    with pytest.raises(ValueError, match="Use at most 4"):
        MNPCA(6).fit(data)


def test_polars_in_and_out(name):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: X[name].to_numpy() for name in NAMES})
    ours, same = make(name).fit(frame), make(name).fit(X)
    assert list(ours.feature_names_in_) == NAMES
    if name == "SparsePrecision":
        np.testing.assert_array_equal(ours.precision_.toarray(), same.precision_.toarray())
        return
    np.testing.assert_array_equal(ours.components_, same.components_)
    scores = ours.set_output(transform="polars").transform(frame)
    assert isinstance(scores, polars.DataFrame)
    assert scores.columns == list(same.get_feature_names_out())
    np.testing.assert_array_equal(scores.to_numpy(), same.transform(X))
    assert ours.score(frame) == same.score(X)
    with pytest.raises(ValueError, match="feature names"):
        ours.transform(frame.rename({"c0": "other"}))


def test_missing_values_and_times_of_polars(model, with_missing):
    polars = pytest.importorskip("polars")
    hidden = MISSING
    columns = {name: hidden[name].tolist() for name in NAMES}
    columns["c0"][0] = None
    frame = polars.DataFrame(columns)
    fitted = clone(QUICK).fit(frame)
    np.testing.assert_array_equal(fitted.components_, with_missing.components_)
    np.testing.assert_array_equal(model.transform(frame), model.transform(hidden))
    np.testing.assert_array_equal(model.impute(frame), model.impute(hidden))
    with pytest.raises(ValueError, match="the first 'when'"):
        make("MNPCA").fit(frame.with_columns(when=polars.date(2020, 1, 1)))
    with pytest.raises(ValueError, match="'a' in column 'kind'"):
        make("MNPCA").fit(frame.with_columns(kind=polars.lit("a")))
    with pytest.raises(TypeError, match=r"LazyFrame.*pass X\.collect\(\)"):
        make("MNPCA").fit(frame.lazy())
