"""``mnpca demo``: the first thing a person tries."""

import functools
import json
import time
from pathlib import Path

import mnpca


def test_demo_beats_pca_in_under_a_minute(run, monkeypatch):
    monkeypatch.setattr("mnpca.cli.demo.STEP", 6)
    start = time.process_time()
    result = run("demo", "--json")
    assert result.code == 0, result.err
    assert time.process_time() - start < 60
    summary = json.loads(result.out)
    pca, ours = summary["comparison"]["PCA"], summary["comparison"]["MN-PCA"]
    assert ours["psnr"] > pca["psnr"] + 10
    assert ours["nmi"] > 90 > 50 > pca["nmi"]
    assert summary["n_components"] == 2
    assert Path(summary["report"]).is_file()
    digits = summary["digits"]
    assert digits["n_edges"] == 60
    assert digits["touching"] > 0.8 > 0.2 > digits["touching_by_chance"]
    assert Path(digits["report"]).is_file()


def test_digits_are_those_of_the_gallery():
    from mnpca.cli.demo import digits_data

    table, places = digits_data()
    assert table.values.shape == (599, 52) == (len(table.labels), len(places))
    assert table.column_names[0] == "row 1, column 2"


def test_demo_tells_where_the_report_is(run, tmp_path, monkeypatch):
    small = functools.partial(mnpca.datasets.make_paper_small, n_samples=40, n_features=25)
    monkeypatch.setattr("mnpca.datasets.make_paper_small", small)
    monkeypatch.setattr("mnpca.cli.demo.STEP", 30)
    result = run("demo", "-o", "there")
    assert result.code == 0, result.err
    assert "PSNR" in result.out
    assert "strongest edges among pixels" in result.out.replace("\n", " ")
    assert str(tmp_path / "there" / "report.html") in result.out.replace("\n", "")
