"""Wrong inputs: one clear line, a non-zero exit, no traceback, nothing left behind."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

NUMBERS = np.random.default_rng(0).normal(size=(12, 5)).round(3)


def table(rows=NUMBERS, header="a,b,c,d,e"):
    return header + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n"


def with_cell(value, row=3, column=2):
    cells = NUMBERS.astype(object)
    cells[row, column] = value
    return table(cells)


CONSTANT = NUMBERS.copy()
CONSTANT[:, 1] = 7

#: name: (content of data.csv or None, arguments, words of the message); `tests/io` has more tables.
WRONG = {
    "no such file": (None, ["fit", "none.csv"], "no such file: 'none.csv'"),
    "a folder": (None, ["fit", "."], "is a folder"),
    "unknown ending": (None, ["fit", "data.xls"], "is not one of"),
    "a word among numbers": (with_cell("high"), ["fit", "data.csv"], "mixes numbers and text"),
    "a row without values": (
        table(header="name,a,b,c,d,e").replace("\n", "\nx,").replace("\nx,", "\n", 0) + ",,,,\n",
        ["fit", "data.csv"],
        "1 row without any value, first row 14 ('x')",
    ),
    "infinite value": (with_cell("inf"), ["fit", "data.csv"], "1 infinite values"),
    "constant column": (table(CONSTANT), ["fit", "data.csv"], "1 constant column: 'b'"),
    "all zero": (table(np.zeros((9, 5))), ["fit", "data.csv"], "constant columns"),
    "too few rows": (table(NUMBERS[:2]), ["fit", "data.csv"], "too few rows: 2"),
    "one column": ("a\n1\n2\n3\n4\n5\n", ["fit", "data.csv"], "too few columns"),
    "huge values": (table(NUMBERS * 1e200), ["fit", "data.csv"], "Rescale"),
    "rank is a word": (table(), ["fit", "data.csv", "-k", "two"], "'auto' or a whole number"),
    "rank zero": (
        table(),
        ["fit", "data.csv", "-k", "0", "--algorithm", "likelihood"],
        "between 1 and 4",
    ),
    "rank too large": (table(), ["fit", "data.csv", "-k", "5"], "between 0 and 4"),
    "share above one": (table(), ["fit", "data.csv", "-k", "1.5"], "a share between 0 and 1"),
    "unknown algorithm": (table(), ["fit", "data.csv", "--algorithm", "magic"], "magic"),
    "unknown option": (table(), ["fit", "data.csv", "--fast"], "--fast"),
    "unknown command": (None, ["learn", "data.csv"], "No such command"),
    "no data": (None, ["fit"], "Missing argument"),
    "unknown label": (table(), ["fit", "data.csv", "--labels", "z"], "no column 'z'"),
    "labels of a transposed file": (
        table(),
        ["fit", "data.csv", "--labels", "a", "--transpose"],
        "--transpose",
    ),
    "resume from nothing": (table(), ["fit", "data.csv", "--resume"], "needs --checkpoint"),
    "resume from junk": (
        table(),
        ["fit", "data.csv", "--checkpoint", "data.csv", "--resume"],
        "data.csv",
    ),
    "checkpoint over the data": (
        table(),
        ["fit", "data.csv", "--checkpoint", "data.csv"],
        "is no checkpoint, so it is not written over",
    ),
    "no unit to scale by": (
        "a,b,c\n" + "".join(f"{i * i},{i**3 % 7},{1 + i % 2}e-320\n" for i in range(9)),
        ["fit", "data.csv", "--scale"],
        "column 'c' has a standard deviation of",
    ),
    "output is a file": (table(), ["fit", "data.csv", "-o", "data.csv"], "is a file"),
    "output exists": (table(), ["fit", "data.csv", "-o", "full"], "--overwrite"),
    "output is not ours": (
        table(),
        ["fit", "data.csv", "-o", "full", "--overwrite"],
        "was not written by mnpca",
    ),
    "no model": (table(), ["transform", "none.mnpca", "data.csv"], "no model file"),
    "model is a table": (table(), ["transform", "data.csv", "data.csv"], "data.csv"),
    "report of nothing": (None, ["report", "full"], "not a folder that mnpca fit wrote"),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_line(run, tmp_path, case):
    content, arguments, words = WRONG[case]
    if content is not None:
        (tmp_path / "data.csv").write_text(content)
    (tmp_path / "data.xls").write_text("PK")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious.txt").write_text("keep me")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    result = run(*arguments)
    assert result.code not in (0, None)
    assert result.out == ""
    assert result.err.count("\n") == 1, result.err
    assert result.err.startswith("mnpca: error: ")
    assert words in result.err
    assert "Traceback" not in result.err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_model_of_other_columns(run, out, frame, tmp_path):
    frame.iloc[:, :5].to_csv(tmp_path / "few.csv")
    result = run("transform", "out", "few.csv")
    assert result.code == 2
    assert "15 columns of the model are not in the file: 'feature 5'" in result.err
    (out / "report.json").write_text(json.dumps({"schema": 1}))
    result = run("report", "out")
    assert result.code == 2
    assert "damaged" in result.err


def test_transform_does_not_replace_its_input(run, csv, out, tmp_path):
    for name in (csv, "out/model.mnpca"):
        before = (tmp_path / name).read_bytes()
        result = run("transform", "out", csv, "-o", name)
        assert result.code == 2
        assert "name another file" in result.err
        assert (tmp_path / name).read_bytes() == before


def test_debug_shows_the_traceback(run):
    result = run("fit", "none.csv", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err


def test_interrupt_leaves_nothing(run, csv, tmp_path, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("mnpca.MNPCA.fit", stop)
    result = run("fit", csv, "-k", 2, "--labels", "group", "-o", "out")
    assert result.code == 130
    assert result.err == "mnpca: error: interrupted, nothing was written.\n"
    assert {path.name for path in tmp_path.iterdir()} == {csv}


def test_interrupt_says_how_to_go_on(run, csv, tmp_path, monkeypatch):
    from mnpca.cli import fit as command

    def stop(progress):
        raise KeyboardInterrupt

    fit = command.fit_table
    monkeypatch.setattr(command, "fit_table", lambda *a, **k: fit(*a, **k | {"callback": stop}))
    arguments = ("fit", csv, "-k", 2, "--labels", "group", "-o", "out", "--checkpoint", "fit.ckpt")
    arguments += ("--noise", "diagonal", "--prior", "gaussian")
    result = run(*arguments)
    assert result.code == 130
    assert "--resume" in result.err
    assert {path.name for path in tmp_path.iterdir()} == {csv, "fit.ckpt"}
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, "--resume").code == 0


def test_a_failing_fit_leaves_nothing(run, csv, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr("mnpca.MNPCA.fit", fail)
    result = run("fit", csv, "-k", 2, "--labels", "group", "-o", "out")
    assert result.code == 1
    assert "not positive definite (run again with --debug" in result.err
    assert {path.name for path in tmp_path.iterdir()} == {csv}


@pytest.mark.parametrize("length", [240, 300])
def test_long_names_of_folders(run, csv, tmp_path, length):
    result = run("fit", csv, "-k", 2, "--labels", "group", "-o", "o" * length)
    assert result.code == 2
    assert re.fullmatch(
        "mnpca: error: a name is too long.*'oooo.*give a shorter one.\n", result.err
    )
    assert {path.name for path in tmp_path.iterdir()} == {csv}


def test_as_a_program(tmp_path):
    command = [sys.executable, "-m", "mnpca", "fit", "none.csv"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr == "mnpca: error: no such file: 'none.csv'.\n"
    assert result.stdout == ""
