"""Pages are filled from results, and their own text stays."""

from pathlib import Path

import numpy as np
import pytest

from reproduction.cells import Cell, Outcome
from reproduction.document import PAGES, fill, main
from reproduction.store import ResultStore

PAGE = """Text before.
<!-- results: table1 small-paper psnr -->
old
<!-- end -->
Between.
<!-- results: table1 small-paper psnr 1 MNPCA -->
<!-- end -->
<!-- results: table3 large psnr -->
<!-- end -->
<!-- results: terms network-columns -->
<!-- end -->
<!-- results: machine -->
<!-- end -->
After.
"""


def test_blocks_are_written_and_text_stays(tmp_path):
    store = ResultStore(tmp_path / "results")
    for method in ("PCA", "MNPCA"):
        store.add(Cell("small-paper", "c=8", method, 1), Outcome({"psnr": 16.0}), 1.0)
    edges = {"i": np.array([0]), "j": np.array([1]), "names": np.array(["prime", "minister"])}
    terms = Cell("network-columns", "3sources", "MNPCA", 1000)
    store.add(terms, Outcome({"edges": 1.0}, arrays=edges), 1.0)
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    main([str(tmp_path / "results"), str(page)])
    text = page.read_text()
    assert "old" not in text
    assert "| | PCA | MNPCA |\n|---|---|---|\n| c=8 | 16.00 / 15.71, +0.29 | 16.00 |" in text
    assert "| | MNPCA |\n|---|---|\n| c=8 | 16.0 |" in text
    for expected in ("Not computed yet.", "- MNPCA, 1 edges: prime/minister", "Written on"):
        assert expected in text
    assert text.startswith("Text before.")
    assert "Between." in text
    assert text.endswith("After.\n")
    assert fill(text, store) == text


def test_a_folder_without_results_leaves_the_page_as_it_is(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none"), str(page)])
    assert "there is no results.csv" in capsys.readouterr().err
    assert page.read_text() == PAGE
    assert not (tmp_path / "none").exists()


def test_deviations_and_their_reasons(tmp_path):
    store = ResultStore(tmp_path)
    # The paper's figures: wine 95.95, german 71.02, vehicle 45.72; radar is a substitute.
    for data, value in {"wine": 95.0, "german": 76.0, "vehicle": 50.0, "radar": 1.0}.items():
        store.add(Cell("real-paper", data, "PCA", 1000), Outcome({"accuracy": value}), 1.0)
    text = fill("<!-- results: table5 real-paper accuracy deviations -->\n<!-- end -->", store)
    assert "| PCA | 3 | +2.77 | 1 | german +5.0 (coding), vehicle +4.3 (unexplained) |" in text
    assert "- *coding*: " in text
    assert "- *unexplained*: not known." in text


def test_the_pages_of_the_repository_are_filled_and_explained():
    for page in PAGES:
        text = (Path(__file__).parents[2] / page).read_text()
        assert "<!-- results: " in text
        assert "unexplained" not in text
        assert "Not computed yet" not in text
