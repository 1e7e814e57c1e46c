"""Model files of every estimator: all of it comes back, and nothing foreign gets in."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tests.reliability.shared import assert_same_model, make, sample

import mnpca
from mnpca.estimators import __all__ as estimators

PINNED = Path(__file__).parent.parent / "data"


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
    assert {path.stem for path in PINNED.glob("*.mnpca")} == {f"schema1-{m}" for m in estimators}
