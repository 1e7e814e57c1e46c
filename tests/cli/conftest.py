"""A small data file and a command that is run in this process."""

import contextlib
import io
import shutil
from types import SimpleNamespace

import pytest
from tests.known import known_fit

from mnpca.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run ``mnpca ARGUMENTS`` in an empty folder; return its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return command


@pytest.fixture(scope="session")
def frame():
    """40 rows in three groups, 20 columns, with names and a column of labels."""
    data, frame, _ = known_fit(n=40, p=20, c=8)
    return frame.assign(group=[f"group {label}" for label in data.labels])


@pytest.fixture(scope="session")
def results(frame, tmp_path_factory):
    """The folder and the output of one fit of the data file, for tests that only read them."""
    folder, printed = tmp_path_factory.mktemp("fitted"), io.StringIO()
    frame.to_csv(folder / "data.csv")
    options = ["-k", "2", "--labels", "group", "--graphml", "-o", str(folder / "out")]
    with contextlib.redirect_stdout(printed):
        assert main(["fit", str(folder / "data.csv"), *options]) == 0
    return folder / "out", printed.getvalue()


@pytest.fixture
def out(results, tmp_path):
    """A copy of that folder in the test's own."""
    return shutil.copytree(results[0], tmp_path / "out")


@pytest.fixture
def csv(tmp_path, frame):
    frame.to_csv(tmp_path / "data.csv")
    return "data.csv"
