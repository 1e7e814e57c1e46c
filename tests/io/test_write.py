"""Exported cells are safe, and a folder appears whole or not at all."""

import csv
import subprocess
import sys

import pytest

from mnpca.io import DataError, _output, new_folder, safe_cell, write_csv


@pytest.mark.parametrize(
    "name", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tq", "\r=1", "\n=1", "=2", "＝1"]
)
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


def write_results(out, text, *names, overwrite=False):
    with new_folder(out, overwrite=overwrite) as folder:
        for name in ("summary.json", *names):
            (folder / name).write_text(text)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.name[0] != "."}


def test_only_our_own_folders_are_replaced(tmp_path):
    out = tmp_path / "out"
    write_results(out, "1")
    with pytest.raises(DataError, match="exists"):
        write_results(out, "2")
    write_results(out, "2", overwrite=True)
    assert contents(out) == {"summary.json": "2"}
    (out / _output.MANIFEST).unlink()
    with pytest.raises(DataError, match="not written by mnpca"):
        write_results(out, "3", overwrite=True)
    with pytest.raises(DataError, match="is a file"):
        write_results(out / "summary.json", "3")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_others_put_into_a_folder_stays(tmp_path):
    out = tmp_path / "out"
    write_results(out, "1", "completed.csv")
    (out / "notes.txt").write_text("mine")
    (out / "figures").mkdir()
    write_results(out, "2", overwrite=True)
    assert {path.name for path in out.iterdir()} == {
        "summary.json", "notes.txt", "figures", _output.MANIFEST
    }  # fmt: skip
    assert (out / "notes.txt").read_text() == "mine"
    (out / "completed.csv").write_text("mine")
    with pytest.raises(DataError, match=r"completed.csv' was not written by mnpca"):
        write_results(out, "3", "completed.csv", overwrite=True)
    assert (out / "completed.csv").read_text() == "mine"
    assert (out / "summary.json").read_text() == "2"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_keeps_pointing_at_the_folder(tmp_path, exists):
    disk, link = tmp_path / "disk", tmp_path / "link"
    if exists:
        write_results(disk, "1")
    link.symlink_to(disk)
    write_results(link, "2", overwrite=True)
    assert link.is_symlink()
    assert contents(disk) == {"summary.json": "2"}
    assert sorted(tmp_path.iterdir()) == [disk, link]


on_posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and locks of POSIX")


#: For each moment a child that is killed after so many files got their place, 0 before the first.
KILLED = """
import os, signal, sys
from pathlib import Path
from mnpca.io import new_folder
rename, moves = Path.rename, 0
def kill_after(number):
    if moves == number:
        os.kill(os.getpid(), signal.SIGKILL)
def counted_rename(self, target):
    global moves
    rename(self, target)
    moves += 1
    kill_after(number)
for number in map(int, sys.argv[2:]):
    if os.fork():
        os.wait()
        continue
    Path.rename = counted_rename
    with new_folder(Path(sys.argv[1]) / str(number), overwrite=True) as folder:
        (folder / "summary.json").write_text("new")
        (folder / "new.csv").write_text("new")
        kill_after(number)
"""


@on_posix
def test_the_next_run_clears_up_after_a_killed_one(tmp_path):
    moments = range(7)
    for moment in moments:
        write_results(tmp_path / str(moment), "old", "old.csv")
        (tmp_path / str(moment) / "notes.txt").write_text("mine")
    subprocess.run([sys.executable, "-c", KILLED, tmp_path, *map(str, moments)], check=True)
    assert len(list(tmp_path.glob(".*"))) >= len(moments) - 1  # what they left
    (tmp_path / ".1-notours1").mkdir()
    for moment in moments:
        with pytest.raises(DataError, match="exists"), new_folder(tmp_path / str(moment)):
            pass
        kept = contents(tmp_path / str(moment))
        assert kept.pop("notes.txt") == "mine"
        old = {"summary.json": "old", "old.csv": "old"}
        assert kept == (old if moment < 6 else {"summary.json": "new", "new.csv": "new"})
    assert {path.name for path in tmp_path.iterdir()} == {*map(str, moments), ".1-notours1"}


@on_posix
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_writer_of_a_folder_is_refused_and_the_first_is_left_alone(tmp_path, overwrite):
    out = tmp_path / "out"
    with new_folder(out, overwrite=True) as first:
        refused = pytest.raises(DataError, match="another run is about to write")
        with refused, new_folder(out, overwrite=overwrite):
            pass
        with new_folder(tmp_path / "other") as third:
            (third / "summary.json").write_text("third")
        assert first.exists()
        (first / "summary.json").write_text("first")
    assert (out / "summary.json").read_text() == "first"
    assert sorted(tmp_path.iterdir()) == [tmp_path / "other", out]


WRITERS = """
import os, sys, time
from mnpca.io import DataError, new_folder
if all(os.fork() for _ in range(3)):
    for _ in range(3):
        assert os.wait()[1] == 0
    sys.exit()
said = "wrote"
try:
    with new_folder(sys.argv[1], overwrite=True) as folder:
        (folder / "summary.json").write_text("x")
        time.sleep(0.5)
except DataError as error:
    said = error
os.write(1, f"{said}\\n".encode())  # in one piece
"""


@on_posix
def test_writers_that_begin_together_do_not_disturb_each_other(tmp_path):
    command = [sys.executable, "-c", WRITERS, str(tmp_path / "out")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 3
    assert "wrote" in said
    assert all(line == "wrote" or "another run" in line for line in said)
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_what_appeared_meanwhile_is_not_replaced(tmp_path):
    out = tmp_path / "out"

    def attempt():
        with new_folder(out):
            out.mkdir()
            (out / "precious").write_text("x")

    with pytest.raises(DataError, match="exists"):
        attempt()
    assert (out / "precious").read_text() == "x"
    assert list(tmp_path.iterdir()) == [out]


@on_posix
def test_file_systems_that_cannot_hold_folders(tmp_path, monkeypatch):
    """Network file systems answer so; the result is written all the same."""

    def refuse(*args):
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(_output.fcntl, "flock", refuse)
    with new_folder(tmp_path / "out", overwrite=True) as first:
        with new_folder(tmp_path / "out") as second:
            (second / "summary.json").write_text("second")
        (first / "summary.json").write_text("first")
    assert (tmp_path / "out" / "summary.json").read_text() == "first"


@on_posix
def test_a_folder_that_somebody_else_holds_is_waited_for_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(_output, "PATIENCE", 2)
    with _output._locked(tmp_path) as held:
        assert held
        with new_folder(tmp_path / "out") as folder:
            (folder / "summary.json").write_text("x")
    assert (tmp_path / "out" / "summary.json").exists()
