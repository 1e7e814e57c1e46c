"""Real data: reading files, preprocessing, OpenML's place in it, and the messages."""

import numpy as np
import pytest
from sklearn.utils import Bunch

from reproduction import real_sets
from reproduction.real_sets import REAL_SETS, load_real

TEXT = "a,b,c,class\n1,10,5,x\n2,,5,x\n3,30,5,y\n5,20,5,y\n"


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MNPCA_DATA", raising=False)


def test_rows_with_missing_values_go_and_features_are_scaled(tmp_path):
    (tmp_path / "wine.csv").write_text(TEXT)
    with pytest.warns(UserWarning, match="other values"):
        data = load_real("wine", data_home=tmp_path)
    assert data.y.tolist() == ["x", "y", "y"]
    assert data.feature_names == ["a", "b"]  # c is constant
    np.testing.assert_allclose(data.X.mean(axis=0), [0, 0], atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), [1, 1], atol=1e-12)


def test_checksum_ignores_the_order_of_rows_only():
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert real_sets.checksum(X) == real_sets.checksum(X[::-1])
    changed = X.copy()
    changed[3, 1] += 0.01
    assert real_sets.checksum(X) != real_sets.checksum(changed)


@pytest.mark.parametrize(
    ("name", "features"), [("mfeat", 6 * ["animal", "legs"]), ("zoo", ["legs"])]
)
def test_openml_pieces_stand_side_by_side_without_what_is_no_feature(monkeypatch, name, features):
    asked = []

    def fetch(data_id, **_):
        asked.append(data_id)
        values = np.arange(8.0).reshape(4, 2)
        return Bunch(data=values, target=list("0011"), feature_names=["animal", "legs"])

    monkeypatch.setattr(real_sets, "fetch_openml", fetch)
    with pytest.warns(UserWarning, match="other values"):
        data = load_real(name, standardize=False)
    assert tuple(asked) == REAL_SETS[name].openml
    assert data.feature_names == features
    assert data.X.shape == (4, len(features))
    assert data.source == "openml"


def test_messages_name_the_remedy(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name must be one of"):
        load_real("iris")
    with pytest.raises(FileNotFoundError, match=r"gse29505\.csv .* MNPCA_DATA"):
        load_real("gse29505", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match="allow the download"):
        load_real("wine", data_home=tmp_path, download=False)

    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setattr(real_sets, "fetch_openml", unreachable)
    with pytest.raises(FileNotFoundError, match="OpenML cannot be reached"):
        load_real("wine")
    (tmp_path / "wine.csv").write_text("a,class\nred,x\n")
    with pytest.raises(ValueError, match="must hold numbers"):
        load_real("wine", data_home=tmp_path)
