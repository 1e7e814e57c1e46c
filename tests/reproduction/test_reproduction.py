"""Every table and figure from its name to its files, on data small enough for a test."""

import io
import warnings

import pytest
from rich.console import Console
from sklearn.datasets import load_wine

import reproduction.reproduce as module
from mnpca.datasets import make_paper_large, make_paper_small
from reproduction import catalog, networks, real, recovery, timing
from reproduction.__main__ import main
from reproduction.cells import Cell, Outcome
from reproduction.reproduce import reproduce

pytestmark = pytest.mark.filterwarnings("ignore:.*holds other values")

PICTURES = {"figure-scatter", "figure-time", "figure-swiss", "figure-precision"}


def small(c, seed, legacy=False, **named):
    size = {"n_samples": 45, "n_features": 30, "density": 0.05}
    return make_paper_small(c, seed, legacy, **size, **named)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Small matrices, three methods on wine, and wine in the place of the networks' data."""
    wine = load_wine()
    lines = [",".join([*wine.feature_names, "class"])]
    for row, label in zip(wine.data[::3], wine.target[::3], strict=True):
        lines.append(",".join(map(str, [*row, label])))
    for name in ("wine", "metabric", "3sources"):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("MNPCA_DATA", str(tmp_path))
    for draw in ("make_paper_small", "paper_draw_small"):
        monkeypatch.setattr(recovery, draw, small)
    monkeypatch.setattr(recovery, "paper_draw_large", lambda p, seed: small(32, seed))
    monkeypatch.setattr(timing, "make_paper_large", lambda p, seed: small(32, seed))
    monkeypatch.setattr(real, "QUICK_SETS", ("wine", "gse29505"))
    monkeypatch.setattr(real, "METHODS", ("PCA", "GPCA-SS", "LikelihoodMNPCA"))
    monkeypatch.setattr(real, "NESTED_METHODS", ("PCA", "MNPCA"))
    monkeypatch.setattr(networks, "QUICK_ROWS", 40)
    real.why_missing.cache_clear()
    yield tmp_path
    real.why_missing.cache_clear()


def quick(target, folder):
    text = io.StringIO()
    failed = reproduce(target, folder, quick=True, console=Console(file=text, width=200))
    return failed, text.getvalue()


def test_everything_quick_writes_every_table_and_picture(tiny, monkeypatch):
    failed, text = quick("all", tiny / "out")
    assert failed == {}
    written = {path.name for path in (tiny / "out").iterdir()}
    assert {f"{name}.png" for name in PICTURES} <= written
    tables = {
        "table1",
        "table1-fresh",
        "table2",
        "table2-fresh",
        "table3",
        "table5",
        "table5-nested",
        "noise",
        "terms",
    }
    assert {f"{name}.csv" for name in tables} <= written
    assert "no result" in text
    assert "left out: Data set gse29505" in text

    def never(cell):
        raise AssertionError(f"{cell} was finished")

    monkeypatch.setattr(module, "compute", never)
    failed, again = quick("all", tiny / "out")
    assert failed == {}
    assert again.count("Table 1") == text.count("Table 1") > 0


def test_a_table_without_its_data_says_what_to_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MNPCA_DATA", str(tmp_path))
    real.why_missing.cache_clear()
    assert main(["terms", "--quick", "--output", str(tmp_path / "out")]) == 2
    assert "MNPCA_DATA" in capsys.readouterr().err
    real.why_missing.cache_clear()


def test_the_command_runs_and_tells_where_results_are(tiny, capsys):
    arguments = ["figure-scatter", "--quick", "--output", str(tiny / "out")]
    assert main(arguments) == 0
    assert "figure-scatter.png" in capsys.readouterr().out.replace("\n", "")


def test_the_catalog_knows_how_to_compute_every_cell():
    for experiment in catalog.EXPERIMENTS.values():
        for everything in (False, True):
            for cell in experiment.cells(everything, not everything):
                assert cell.experiment in catalog._COMPUTE


def test_warnings_become_notes(monkeypatch):
    def warn(cell):
        warnings.warn("It is slow. Wait.", stacklevel=1)
        return Outcome({"x": 1.0}, note="no result")

    monkeypatch.setitem(catalog._COMPUTE, "toy", warn)
    assert catalog.compute(Cell("toy", "d", "m", 0)).note == "no result; It is slow"


def test_large_data_keep_the_papers_shape():
    assert make_paper_large(300, 0).Y.shape == (1000, 300)
