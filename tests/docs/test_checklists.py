"""What the page of checklists names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "checklists.md"
MAKEFILE = (ROOT / "Makefile").read_text()
NAMED = sorted(set(re.findall(r"`([^`]+)`", PAGE.read_text())))


def test_files_and_commands_exist():
    files = [name for name in NAMED if re.fullmatch(r"\.?[\w./-]*(/|\.\w+|/run|LICENSE)", name)]
    assert len(files) > 15
    for name in files:
        assert (ROOT / name).exists(), name
    for target in (name.removeprefix("make ") for name in NAMED if name.startswith("make ")):
        assert re.search(rf"^(?:[\w -]+ )?{target}\b[\w -]*:", MAKEFILE, re.MULTILINE), target


@pytest.mark.parametrize("list_", ["scikit-learn-contrib", "pyOpenSci", "JOSS", "scverse"])
def test_every_item_says_what_satisfies_it(list_):
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    section = next(text for text in sections if text.startswith(list_))
    rows = re.findall(r"^\| (?!item|-)([^|]+) \| ([^|]+) \|$", section, re.MULTILINE)
    assert len(rows) >= 7
    for item, what in rows:
        points_at_something = "`" in what or "](" in what
        assert points_at_something or re.search(r"\bnot?\b|\d", what), item
