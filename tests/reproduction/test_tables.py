"""Averages, the paper's figures beside them, and how they are written."""

import io

import numpy as np
import pytest
from rich.console import Console

from reproduction.cells import Cell, Outcome
from reproduction.store import ResultStore
from reproduction.tables import averages, beside_paper, paper_figures, show


def test_the_papers_figures_are_complete():
    table1 = paper_figures("table1")
    assert len(table1) == 9 * 3 * 4
    assert not table1.duplicated(["data", "method", "metric"]).any()
    assert set(paper_figures("table3")["data"]) == {f"p={p}" for p in range(2000, 7000, 1000)}
    accuracy = paper_figures("table5").query("metric == 'accuracy'")
    assert accuracy["data"].nunique() == 18


@pytest.fixture
def ours(tmp_path):
    """Three seeds of PCA, a method with a spread of its own, one without result, the program."""
    store = ResultStore(tmp_path)
    for seed, value in enumerate((15.0, 16.0, 17.0)):
        store.add(Cell("small", "c=8", "PCA", seed), Outcome({"psnr": value}), 1.0)
    store.add(Cell("small", "c=8", "new", 0), Outcome({"psnr": 9.0, "psnr_sd": 0.5}), 1.0)
    store.add(Cell("small", "c=8", "none", 0), Outcome({"psnr": np.nan}, "no result"), 1.0)
    store.add(Cell("small", "c=8", "MN-PCA-program", 0), Outcome({"psnr": 17.0}), 1.0)
    unfinished = Cell("small", "c=16", "PCA", 0)
    return averages(store, [*store.cells("small"), unfinished], ("psnr",))


def test_averages_and_differences(ours):
    pca, new, _, program = beside_paper(ours, "table1").to_dict("records")
    assert (pca["mean"], pca["sd"], pca["n"]) == (16.0, 1.0, 3)
    assert pca["paper"] == 15.71
    assert pca["difference"] == pytest.approx(0.29)
    assert (new["mean"], new["sd"]) == (9.0, 0.5)
    assert np.isnan(new["paper"])
    assert program["paper"] == 16.79  # the figure of the paper's MN-PCA


@pytest.mark.parametrize(("width", "parts"), [(40, 3), (200, 1)])
def test_tables_fit_the_terminal(ours, width, parts):
    console = Console(width=width, file=io.StringIO())
    show(console, beside_paper(ours, "table1"), "psnr", "Title")
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    for text in ("16.00 (1.00) | 15.71, +0.29", "9.00 (0.50)", "no result", "ours (sd) | paper,"):
        assert text in printed
    assert printed.count("Title") == parts
    show(console, ours, "psnr", "Alone")
    assert "Alone: psnr; mean (sd)" in console.file.getvalue()
