"""Exported cells are safe, and a folder appears whole or not at all."""

import csv
import signal
import subprocess
import sys

import pytest

from mnpca.io import DataError, new_folder, safe_cell, write_csv


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tq", "\r=1", "=2"])
def test_formulas_are_defused(name):
    assert safe_cell(name) == "'" + name


@pytest.mark.parametrize("name", ["-1.5", "+3e4", "gene", "", "a=b", "-inf"])
def test_plain_text_and_numbers_stay(name):
    assert safe_cell(name) == name


def test_csv_round_trip_with_awkward_names(tmp_path):
    rows = [['say "hi", ok', -1.5, 3], ["line\nbreak", 0.1, 4], ["=x", 1e-300, 5], ["\ud800", 0, 0]]
    write_csv(tmp_path / "a.csv", ["name", "=v", "n"], rows)
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as stream:
        read = list(csv.reader(stream))
    assert read[0] == ["name", "'=v", "n"]
    assert [row[0] for row in read[1:]] == ['say "hi", ok', "line\nbreak", "'=x", "?"]
    assert [float(row[1]) for row in read[1:]] == [-1.5, 0.1, 1e-300, 0]


def test_a_failed_block_leaves_nothing(tmp_path):
    def attempt():
        with new_folder(tmp_path / "out") as folder:
            (folder / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        attempt()
    assert list(tmp_path.iterdir()) == []


def test_only_our_own_folders_are_replaced(tmp_path):
    out = tmp_path / "out"
    with new_folder(out) as folder:
        (folder / "summary.json").write_text("1")
    with pytest.raises(DataError, match="exists"), new_folder(out):
        pass
    with new_folder(out, overwrite=True) as folder:
        (folder / "summary.json").write_text("2")
    assert (out / "summary.json").read_text() == "2"
    (out / "summary.json").rename(out / "other")
    with pytest.raises(DataError, match="not written by mnpca"), new_folder(out, overwrite=True):
        pass
    with pytest.raises(DataError, match="is a file"), new_folder(out / "other"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from mnpca.io import new_folder
if sys.argv[2] == "replacing":
    rename = Path.rename
    def stop_after_first(self, target):
        rename(self, target)
        os.kill(os.getpid(), signal.SIGKILL)
    Path.rename = stop_after_first
with new_folder(sys.argv[1], overwrite=True) as folder:
    (folder / "summary.json").write_text("new")
    if sys.argv[2] == "writing":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL on Windows")
@pytest.mark.parametrize("moment", ["writing", "replacing"])
def test_the_next_run_clears_up_after_a_killed_one(tmp_path, moment):
    out = tmp_path / "out"
    with new_folder(out) as folder:
        (folder / "summary.json").write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(out), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    bystander = tmp_path / ".out-notours1"
    bystander.mkdir()
    with pytest.raises(DataError, match="exists"), new_folder(out):
        pass
    assert (out / "summary.json").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"out", bystander.name}


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked on Windows")
def test_a_running_writer_is_left_alone(tmp_path):
    out = tmp_path / "out"
    with new_folder(out, overwrite=True) as first:
        with new_folder(out) as second:
            assert first.exists()
            (second / "summary.json").write_text("second")
        assert first.exists()
        (first / "summary.json").write_text("first")
    assert (out / "summary.json").read_text() == "first"
    assert list(tmp_path.iterdir()) == [out]
