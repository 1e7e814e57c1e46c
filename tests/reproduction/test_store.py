"""Results survive a kill at any byte, and nothing finished is computed twice."""

import numpy as np
import pytest

from reproduction.cells import Cell, Outcome
from reproduction.runner import run
from reproduction.store import ResultsError, ResultStore

CELLS = [Cell("toy", f"c={c}", method, seed) for c in (8, 32) for method in "ab" for seed in (0, 1)]


def toy(cell):
    if cell.method == "bad":
        raise ValueError("no luck")
    arrays = {"scores": np.eye(3)} if cell == CELLS[0] else {}
    return Outcome({"psnr": 0.1 + cell.seed, "nmi": np.nan}, 'a "note", with commas', arrays)


def filled(folder):
    store = ResultStore(folder)
    assert run(CELLS, toy, store) == {}
    return store


def test_results_come_back_as_written_and_are_not_computed_again(tmp_path):
    store = filled(tmp_path)
    again = ResultStore(tmp_path)  # what a process finds when the first one was killed
    assert len(again) == len(CELLS)
    for cell in CELLS:
        assert again.note(cell) == 'a "note", with commas'
        np.testing.assert_equal(again.metrics(cell), store.metrics(cell))
    np.testing.assert_array_equal(again.arrays(CELLS[0])["scores"], np.eye(3))

    def never(cell):
        raise AssertionError(f"{cell} was finished")

    assert run(CELLS, never, store) == run(CELLS, never, again) == {}


def test_a_kill_at_any_byte_loses_at_most_the_last_cell(tmp_path):
    whole = filled(tmp_path / "whole").path.read_bytes()
    for length in range(0, len(whole), 61):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "results.csv").write_bytes(whole[:length])
        store = ResultStore(folder)
        kept = len(store)
        # A cut inside the last row may still hold the word; only whole lines count.
        assert whole[:length].count(b",seconds,") - kept in (0, 1)
        computed = []
        run(CELLS, lambda cell, seen=computed: seen.append(cell) or toy(cell), store)
        assert len(computed) == len(CELLS) - kept
        assert len(ResultStore(folder)) == len(CELLS)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"mine", b"\xff\xfe\x00"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path, content):
    (tmp_path / "results.csv").write_bytes(content)
    with pytest.raises(ResultsError, match="holds no results of the reproduction"):
        ResultStore(tmp_path)
    assert (tmp_path / "results.csv").read_bytes() == content


def test_a_damaged_row_is_named(tmp_path):
    path = filled(tmp_path).path
    damaged = path.read_text().replace("psnr,0.1,", "psnr,0.1 dB,", 1)
    path.write_text(damaged)
    with pytest.raises(ResultsError, match=r"row 'toy,c=8,a,0,psnr,0.1 dB.*Remove the rows"):
        ResultStore(tmp_path)
    assert path.read_text() == damaged


def test_a_failing_cell_stops_no_other_and_is_tried_again(tmp_path):
    store = ResultStore(tmp_path)
    bad = Cell("toy", "c=8", "bad", 0)
    assert run([bad, *CELLS], toy, store) == {bad: "ValueError: no luck"}
    assert bad not in store
    assert len(store) == len(CELLS)
    assert run([bad], lambda cell: Outcome({"psnr": 1.0}), store) == {}


def test_workers_give_the_same_results(tmp_path):
    store = ResultStore(tmp_path)
    assert run(CELLS, toy, store, jobs=2) == {}
    assert [store.metrics(cell)["psnr"] for cell in CELLS] == [0.1, 1.1] * 4
