"""Real data: reading files, preprocessing, OpenML's place in it, and the messages."""

import gzip

import numpy as np
import pytest
from sklearn.utils import Bunch

from mnpca.datasets import REAL_SETS, _real, load_real


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("MNPCA_DATA", raising=False)


@pytest.fixture
def folder(tmp_path):
    text = "a,b,c,class\n1,10,5,x\n2,,5,x\n3,30,5,y\n5,20,5,y\n"
    (tmp_path / "wine.csv").write_text(text)
    with gzip.open(tmp_path / "metabric-sub489.csv.gz", "wt") as stream:
        stream.write(text)
    return tmp_path


def test_rows_with_missing_values_go_and_features_are_scaled(folder):
    with pytest.warns(UserWarning, match="other values"):
        data = load_real("wine", data_home=folder)
    assert data.X.shape == (3, 2)
    assert data.y.tolist() == ["x", "y", "y"]
    assert data.feature_names == ["a", "b"]  # c is constant
    np.testing.assert_allclose(data.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X.std(axis=0), [1, 1], atol=1e-12)


def test_unscaled_values_are_those_of_the_file(folder, monkeypatch):
    monkeypatch.setenv("MNPCA_DATA", str(folder))
    with pytest.warns(UserWarning, match="other values"):
        data = load_real("metabric", standardize=False)
    np.testing.assert_array_equal(data.X, [[1, 10, 5], [3, 30, 5], [5, 20, 5]])


def test_checksum_ignores_the_order_of_rows_only():
    X = np.random.default_rng(0).standard_normal((20, 3))
    assert _real.checksum(X) == _real.checksum(X[::-1])
    changed = X.copy()
    changed[3, 1] += 0.01
    assert _real.checksum(X) != _real.checksum(changed)


def test_openml_pieces_are_put_side_by_side(monkeypatch):
    asked = []

    def fetch(data_id, **_):
        asked.append(data_id)
        return Bunch(
            data=np.full((4, 2), float(data_id)) + np.arange(4)[:, None],
            target=np.array(["0", "0", "1", "1"]),
            feature_names=[f"f{data_id}", "other"],
        )

    monkeypatch.setattr(_real, "fetch_openml", fetch)
    with pytest.warns(UserWarning, match="other values"):
        data = load_real("mfeat", standardize=False)
    assert tuple(asked) == REAL_SETS["mfeat"].openml
    assert data.X.shape == (4, 12)
    assert data.source == "openml"


def test_openml_columns_that_are_no_features_go(monkeypatch):
    answer = Bunch(
        data=np.arange(6.0).reshape(2, 3),
        target=np.array(["a", "b"]),
        feature_names=["animal", "hair", "legs"],
    )
    monkeypatch.setattr(_real, "fetch_openml", lambda **_: answer)
    with pytest.warns(UserWarning, match="other values"):
        data = load_real("zoo", standardize=False)
    assert data.feature_names == ["hair", "legs"]


def test_messages_name_the_remedy(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="name must be one of"):
        load_real("iris")
    with pytest.raises(FileNotFoundError, match=r"gse29505\.csv .* MNPCA_DATA"):
        load_real("gse29505", data_home=tmp_path)
    with pytest.raises(FileNotFoundError, match="allow the download"):
        load_real("wine", data_home=tmp_path, download=False)

    def unreachable(**_):
        raise OSError("no route")

    monkeypatch.setattr(_real, "fetch_openml", unreachable)
    with pytest.raises(FileNotFoundError, match="OpenML cannot be reached"):
        load_real("wine")


def test_a_word_among_the_numbers_is_an_error(tmp_path):
    (tmp_path / "wine.csv").write_text("a,class\nred,x\n")
    with pytest.raises(ValueError, match="must hold numbers"):
        load_real("wine", data_home=tmp_path)
