"""Hostile and tampered model files: each is refused with a reason, and leaves nothing behind."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
hostile = pytest.importorskip("hostile_models")


@pytest.fixture(scope="module")
def good():
    return hostile.good()


@pytest.fixture(scope="module")
def fits():
    return hostile.fits()


@pytest.mark.parametrize(
    ("change", "reason"), [pytest.param(*case, id=title) for title, *case in hostile.HOSTILE]
)
def test_a_hostile_file_is_refused(good, tmp_path, change, reason):
    assert hostile.answer(change(good), reason, tmp_path) is not None


@pytest.mark.parametrize(("name", "attribute", "change", "reason"), hostile.TAMPERED)
def test_altered_numbers_are_refused(fits, tmp_path, name, attribute, change, reason):
    file = hostile.tampered(fits[name], attribute, change)
    assert hostile.answer(file, reason, tmp_path) is not None


def test_good_files_are_read(good, fits, tmp_path):
    """Otherwise the refusals would say nothing."""
    for file in (good, *(hostile.saved(model) for model in fits.values())):
        assert hostile.answer(file, "", tmp_path) is None
        assert len({title for title, *_ in hostile.HOSTILE}) == len(hostile.HOSTILE) >= 60
    assert len(hostile.TAMPERED) >= 20
