"""Tables as people export them: read right, or refused with a remedy that works."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("openpyxl")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
messy = pytest.importorskip("messy")
CASES = messy.cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_messy_table_ends_right(case, tmp_path):
    assert messy.outcome(case, tmp_path) is not None


def test_there_are_forty():
    assert len({case.name for case in CASES}) == len(CASES) == 40
