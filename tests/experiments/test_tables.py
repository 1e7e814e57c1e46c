"""Averages, the paper's figures beside them, and how they are written."""

import numpy as np
import pytest

from mnpca.experiments.cells import Cell, Outcome
from mnpca.experiments.store import ResultStore
from mnpca.experiments.tables import averages, beside_paper, markdown, paper_figures


def test_the_papers_figures_are_complete():
    table1 = paper_figures("table1")
    assert len(table1) == 9 * 3 * 4
    assert not table1.duplicated(["data", "method", "metric"]).any()
    row = table1.query("data == 'c=8' and method == 'PCA' and metric == 'psnr'")
    assert row["mean"].item() == 15.71
    assert set(paper_figures("table3")["data"]) == {f"p={p}" for p in range(2000, 7000, 1000)}
    accuracy = paper_figures("table5").query("metric == 'accuracy'")
    assert accuracy["data"].nunique() == 18


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path)
    for seed, value in enumerate((15.0, 16.0, 17.0)):
        store.add(Cell("small", "c=8", "PCA", seed), Outcome({"psnr": value}), 1.0)
    store.add(Cell("small", "c=8", "new", 0), Outcome({"psnr": 9.0, "psnr_sd": 0.5}), 1.0)
    store.add(Cell("small", "c=8", "none", 0), Outcome({"psnr": np.nan}, "no result"), 1.0)
    return store


def test_averages_and_differences(store):
    both = beside_paper(averages(store, store.cells("small"), ("psnr",)), "table1")
    pca, new, _ = both.to_dict("records")
    assert (pca["mean"], pca["sd"], pca["n"]) == (16.0, 1.0, 3)
    assert pca["paper"] == 15.71
    assert pca["difference"] == pytest.approx(0.29)
    assert (new["mean"], new["sd"]) == (9.0, 0.5)
    assert np.isnan(new["paper"])


def test_cells_that_are_not_finished_are_left_out(store):
    wanted = [*store.cells("small"), Cell("small", "c=16", "PCA", 0)]
    assert set(averages(store, wanted, ("psnr",))["data"]) == {"c=8"}


def test_markdown(store):
    both = beside_paper(averages(store, store.cells("small"), ("psnr",)), "table1")
    lines = markdown(both, "psnr").splitlines()
    assert lines[0] == "| | PCA | new | none |"
    assert lines[2] == "| c=8 | 16.00 (1.00) / 15.71, +0.29 | 9.00 (0.50) | no result |"


def test_the_program_stands_beside_the_papers_figures(store):
    cell = Cell("small", "c=8", "MN-PCA-program", 0)
    store.add(cell, Outcome({"psnr": 17.0}), 1.0)
    (row,) = beside_paper(averages(store, [cell], ("psnr",)), "table1").to_dict("records")
    assert row["paper"] == 16.79
