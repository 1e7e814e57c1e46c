"""The command as a process: quick to start, clean when it is ended, on any console."""

import io
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from rich.console import Console

from mnpca.cli import main
from mnpca.cli.app import COMPILING, progress_display
from mnpca.solvers.progress import Progress

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def start(*arguments, code=None, **environment):
    program = ["-m", "mnpca"] if code is None else ["-c", code]
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        # A shell in the background ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_console_without_a_character_is_no_failure(csv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / csv).read_text(encoding="utf-8").replace("group", "Größe 温度", 1)
    (tmp_path / "温度.csv").write_text(text, encoding="utf-8")
    process = start(
        "fit",
        "温度.csv",
        "-k",
        "1",
        "--noise",
        "diagonal",
        PYTHONIOENCODING="cp1252",
        PYTHONUTF8="0",
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b"")
    assert b"Results in" in out


SLOW = """
import sys, time
import mnpca.estimators
def fit(*args, **kwargs):
    print("fitting", flush=True)
    time.sleep(60)
mnpca.estimators.MNPCA.fit = fit
from mnpca.cli import main
sys.exit(main())
"""


@posix
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_ended_leaves_nothing(csv, tmp_path, monkeypatch, number, exit_code):
    monkeypatch.chdir(tmp_path)
    process = start("fit", csv, "-k", "1", "-o", "out", code=SLOW)
    assert process.stdout.readline() == b"fitting\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == exit_code
    assert err == b"mnpca: error: interrupted, nothing was written.\n"
    assert [path.name for path in tmp_path.iterdir()] == [csv]


IMPORTING = """
import builtins, signal, os, sys
from mnpca.cli import main
ordinary = builtins.__import__
def interrupted(name, *args, **kwargs):
    if name == "numpy":
        os.kill(os.getpid(), signal.SIGINT)
    return ordinary(name, *args, **kwargs)
builtins.__import__ = interrupted
sys.exit(main())
"""


@posix
def test_ctrl_c_during_the_imports_is_one_line(tmp_path):
    process = start("fit", "none.csv", code=IMPORTING)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b"mnpca: error: interrupted, nothing was written.\n"


def test_ctrl_c_before_the_command_begins_is_told(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.core.TyperGroup, "parse_args", interrupted)
    assert main(["fit", "data.csv"]) == 130
    assert capsys.readouterr().err == "mnpca: error: interrupted, nothing was written.\n"


def imported_by(code):
    report = f"import sys; {code}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("\n")[-2].split())


def test_what_is_not_needed_is_not_imported():
    """Seconds depend on the machine; what they are spent on does not."""
    heavy = {"numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"}
    assert not heavy & imported_by("import mnpca")
    assert not heavy & imported_by("import mnpca.cli; mnpca.cli.main(['fit', '--help'])")
    assert "matplotlib" not in imported_by("import mnpca; mnpca.MNPCA")


LONG = "graph noise: rank 10, graph noise from diagonal"
STAGES = [("diagonal noise", 1), ("diagonal noise", 2), ("graph noise from diagonal", 1)]


def test_progress_is_one_line_of_80_columns(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    clock = SimpleNamespace(monotonic=iter(range(0, 1000, 7)).__next__)
    monkeypatch.setattr("mnpca.cli.app.time", clock)
    shown = []
    with progress_display(console) as callback:
        for stage, iteration in [*STAGES, *((LONG, 3 + i) for i in range(2)), (2 * LONG, 1)]:
            callback(Progress(stage, iteration, -123456.789, dict, 9))
            display = next(iter(console._live_stack)).get_renderable()
            shown.append(["".join(s.text for s in line) for line in console.render_lines(display)])
    assert all(len(lines) == 1 and len(lines[0]) <= 80 for lines in shown)
    assert "diagonal noise, iteration 1, objective -1.235e+05" in shown[0][0]
    assert "iteration 2, at most 49 s left, objective -1.235e+05" in shown[1][0]
    assert f"{LONG}, iteration 4" in shown[4][0]
    with progress_display(console, silent=True) as callback:
        assert callback is None


def test_piped_progress_is_a_line_for_each_stage():
    console = Console(file=io.StringIO(), width=80)
    with progress_display(console) as callback:
        for stage, iteration in [*STAGES, *STAGES, (LONG, 1), (f"{LONG} again", 1)]:
            callback(Progress(stage, iteration, 0.5, dict, 9))
    stages = ("diagonal noise", "graph noise from diagonal", "graph noise: rank 10")
    assert console.file.getvalue().splitlines() == [f"0 s: {stage}" for stage in stages]


def test_compilation_is_shown_as_such():
    from numba import njit

    console = Console(file=io.StringIO(), width=80)
    with progress_display(console):
        njit(lambda x: x + 1)(1)
    assert console.file.getvalue().endswith(f"s: {COMPILING}\n")
