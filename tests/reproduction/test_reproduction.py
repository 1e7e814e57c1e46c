"""Every table and figure from its name to its files, on data small enough for a test."""

import functools
import warnings

import pytest
from sklearn.datasets import load_wine

from mnpca.datasets import make_paper_small
from reproduction import __main__ as command
from reproduction import catalog, networks, real, recovery, reproduce, timing
from reproduction.cells import Cell, Outcome

pytestmark = pytest.mark.filterwarnings("ignore:.*holds other values")

TABLES = "table1 table1-fresh table2 table2-fresh table3 table5 table5-nested noise terms"
PICTURES = "figure-scatter figure-time figure-swiss figure-precision"


def small(c, seed, **named):
    return make_paper_small(c, seed, n_samples=45, n_features=30, density=0.05, **named)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Small matrices, a few methods on wine, and wine in the place of the networks' data."""
    wine = load_wine()
    lines = [",".join([*wine.feature_names, "class"])]
    for row, label in zip(wine.data[::4], wine.target[::4], strict=True):
        lines.append(",".join(map(str, [*row, label])))
    for name in ("wine", "metabric", "3sources"):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    few_runs = functools.partial(real.paper_protocol, runs=2)
    few_starts = functools.partial(recovery.nmi, n_init=2)
    for module, name, stand_in in (
        (recovery, "make_paper_small", small),
        (recovery, "paper_draw_small", small),
        (recovery, "paper_draw_large", lambda p, seed: small(32, seed)),
        (recovery, "QUICK_CONDITIONS", (32,)),
        (recovery, "nmi", few_starts),
        (timing, "make_paper_large", lambda p, seed: small(32, seed)),
        (real, "paper_protocol", few_runs),
        (real, "QUICK_SETS", ("wine", "gse29505")),
        (real, "METHODS", ("PCA", "GPCA-SS", "LikelihoodMNPCA")),
        (real, "NESTED_METHODS", ("PCA",)),
        (networks, "QUICK_ROWS", 30),
    ):
        monkeypatch.setattr(module, name, stand_in)
    return tmp_path


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    """Look for data in a folder of the test, and forget what was found in another."""
    monkeypatch.setenv("MNPCA_DATA", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    real.why_missing.cache_clear()
    yield
    real.why_missing.cache_clear()


def run(*arguments, folder):
    return command.main([*arguments, "--quick", "--output", str(folder)])


@pytest.mark.slow
def test_everything_quick_writes_every_table_and_picture(tiny, monkeypatch, capsys):
    assert run("all", folder=tiny / "out") == 0
    text = capsys.readouterr().out
    written = {path.name for path in (tiny / "out").iterdir()}
    assert {f"{name}.csv" for name in TABLES.split()} <= written
    assert {f"{name}.png" for name in PICTURES.split()} <= written
    assert "no result" in text
    assert "left out: Data set gse29505" in text
    assert f"results: {tiny / 'out' / 'results.csv'}" in text.replace("\n", "")

    def never(cell):
        raise AssertionError(f"{cell} was finished")

    monkeypatch.setattr(reproduce, "compute", never)
    assert run("table1", folder=tiny / "out") == 0
    assert capsys.readouterr().out.count("Table 1") == text.count("Table 1") > 0


def test_wrong_input_is_told_in_a_line(tmp_path, capsys):
    assert run("terms", folder=tmp_path / "out") == 2
    assert "MNPCA_DATA" in capsys.readouterr().err
    (tmp_path / "results.csv").write_text("mine")
    assert run("table1", folder=tmp_path) == 2
    assert "name another folder" in capsys.readouterr().err
    for wrong in (["table9"], ["table1", "--jobs", "0"]):
        with pytest.raises(SystemExit, match="2"):
            command.main(wrong)


def test_failures_and_interruptions_have_exit_codes(tmp_path, monkeypatch, capsys):
    def ends(error, cell):
        raise error

    monkeypatch.setattr(reproduce, "compute", functools.partial(ends, ValueError("no luck")))
    assert run("figure-scatter", folder=tmp_path) == 1
    assert "failed: small-paper c=32 PCA 1: ValueError: no luck" in capsys.readouterr().out
    monkeypatch.setattr(reproduce, "compute", functools.partial(ends, KeyboardInterrupt()))
    assert run("figure-scatter", folder=tmp_path) == 130
    assert "run the same command again" in capsys.readouterr().err


def test_the_catalog_knows_how_to_compute_every_cell():
    for experiment in catalog.EXPERIMENTS.values():
        for quick in (False, True):
            for cell in experiment.cells(quick, not quick):
                assert cell.experiment in catalog._COMPUTE


def test_warnings_become_notes(monkeypatch):
    def warn(cell):
        warnings.warn("It is slow. Wait.", stacklevel=1)
        return Outcome({"x": 1.0}, note="no result")

    monkeypatch.setitem(catalog._COMPUTE, "toy", warn)
    assert catalog.compute(Cell("toy", "d", "m", 0)).note == "no result; It is slow"
