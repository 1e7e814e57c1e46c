"""Checkpoints that are well formed and lie are refused with one error, whatever a solver says."""

import functools
import io
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.persistence.shared import members, write_members
from tests.reliability.shared import make, sample

import mnpca
import mnpca.estimators._files as progress_module
from mnpca.persistence import ModelFileError

X = sample(14, 9)
FITS = {
    "LikelihoodMNPCA": (make("LikelihoodMNPCA"), X),
    "MNPCA": (make("MNPCA", noise="graph"), X),
    "MNPCA, rank": (make("MNPCA", n_components="auto"), X),
    "MNPCA, holes": (make("MNPCA"), np.where(np.arange(X.size).reshape(X.shape) % 11, X, np.nan)),
    "WassersteinMNPCA": (make("WassersteinMNPCA", max_iter=5), X),
    "WassersteinMNPCA, gradient": (make("WassersteinMNPCA", method="gradient", max_iter=5), X),
    "TensorMNPCA": (mnpca.TensorMNPCA(1), np.stack([X, X[::-1], X**2])),
    "DimensionFoldingPCA": (mnpca.DimensionFoldingPCA(1, 1), np.stack([X, X[::-1], X**2])),
}


def fit(name, **arguments):
    model, data = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data, **arguments)


@pytest.fixture(params=FITS)
def name(request):
    return request.param


@functools.cache
def checkpoints(name):
    """All checkpoints of a fit."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress_module, "WRITE_SHARE", 0.0)
        patch.setattr(progress_module, "LOSS_SHARE", 0.0)
        path, kept = Path(folder, "fit.ckpt"), []
        fit(name, checkpoint=path, callback=lambda _: kept.append(path.read_bytes()))
    return kept


@pytest.fixture
def checkpoint(name, tmp_path):
    """The file that a fit left in its middle."""
    kept, path = checkpoints(name), tmp_path / "fit.ckpt"
    path.write_bytes(kept[len(kept) // 2])
    return path


def state_of(document):
    """The names and values of the state; what is changed in it changes the document."""
    return dict(document["content"]["items"])["state"]["items"]


def rewrite(path, change):
    document = json.loads(members(path)["document.json"])
    change(document)
    write_members(path, members(path) | {"document.json": json.dumps(document).encode()})


def assert_refused(name, path, match="resumed from the checkpoint"):
    with pytest.raises(ModelFileError, match=match) as caught:
        fit(name, resume_from=path)
    assert str(path) in str(caught.value)


def test_a_state_without_its_entries(name, checkpoint):
    rewrite(checkpoint, lambda document: state_of(document).clear())
    assert_refused(name, checkpoint)


def test_entries_of_another_type(name, checkpoint):
    def change(document):
        for entry in state_of(document):
            if entry[0] != "step":  # of an unknown step nothing is taken, all is done again
                entry[1] = "x"

    rewrite(checkpoint, change)
    assert_refused(name, checkpoint)


@pytest.mark.parametrize("name", ["LikelihoodMNPCA"], indirect=True)
def test_a_finished_fit_whose_result_lies(name, checkpoint):
    """Nothing is computed any more: the result is what the file says."""
    checkpoint.write_bytes(checkpoints(name)[-1])

    def change(document):
        state = dict(state_of(document))
        for end in (state["inner"], *state["ends"]):
            value = dict(end["items"])["col_precision"]
            value.clear()
            value.update(type="objects", shape=[9, 9], items=[None] * 81)

    rewrite(checkpoint, change)
    assert_refused(name, checkpoint)


def npy(array):
    """The bytes of an array in a file."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_arrays_of_other_shapes(name, checkpoint):
    stored = members(checkpoint)
    for member in stored.keys() - {"document.json"}:
        array = np.load(io.BytesIO(stored[member]))
        stored[member] = npy(np.zeros((3, 2, 2), array.dtype))
    write_members(checkpoint, stored)
    assert_refused(name, checkpoint, match="resumed from the checkpoint|cannot be read")


@pytest.mark.parametrize("name", ["MNPCA"], indirect=True)
@pytest.mark.parametrize("part", ["identity", "state"])
@pytest.mark.parametrize("value", [None, 1, [], "x"])
def test_parts_that_are_no_tables(name, checkpoint, part, value):
    def change(document):
        items = document["content"]["items"]
        next(item for item in items if item[0] == part)[1] = value

    rewrite(checkpoint, change)
    assert_refused(name, checkpoint, match="does not hold the state of a fit")


@pytest.mark.parametrize("name", ["MNPCA"], indirect=True)
@pytest.mark.parametrize("part", ["class", "parameter tol", "data"])
@pytest.mark.parametrize("value", [1, [], {"type": "objects", "shape": [0], "items": []}])
def test_an_identity_that_is_none(name, checkpoint, part, value):
    def change(document):
        items = dict(document["content"]["items"])["identity"]["items"]
        next(item for item in items if item[0] == part)[1] = value

    rewrite(checkpoint, change)
    assert_refused(name, checkpoint, match="does not hold the state of a fit")


@pytest.mark.parametrize("name", ["MNPCA"], indirect=True)
def test_an_error_of_the_callback_is_its_own(name, checkpoint):
    def callback(progress):
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        fit(name, resume_from=checkpoint, callback=callback)
