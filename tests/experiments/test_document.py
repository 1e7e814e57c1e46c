"""The page is filled from results, and its own text stays."""

import numpy as np

from mnpca.experiments.cells import Cell, Outcome
from mnpca.experiments.document import fill, main
from mnpca.experiments.store import ResultStore

PAGE = """Text before.
<!-- results: table1 small-paper psnr -->
old
<!-- end -->
Between.
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
    store.add(Cell("small-paper", "c=8", "PCA", 1), Outcome({"psnr": 16.0}), 1.0)
    edges = {"i": np.array([0]), "j": np.array([1]), "names": np.array(["prime", "minister"])}
    terms = Cell("network-columns", "3sources", "MNPCA", 1000)
    store.add(terms, Outcome({"edges": 1.0}, arrays=edges), 1.0)
    text = fill(PAGE, store)
    assert "old" not in text
    assert "| c=8 | 16.00 / 15.71, +0.29 |" in text
    assert "Not computed yet." in text
    assert "- MNPCA, 1 edges: prime/minister" in text
    assert "Written on" in text
    assert text.startswith("Text before.")
    assert "Between." in text
    assert text.endswith("After.\n")
    assert fill(text, store) == text

    page = tmp_path / "page.md"
    page.write_text(PAGE)
    main([str(tmp_path / "results"), str(page)])
    assert page.read_text() == text
