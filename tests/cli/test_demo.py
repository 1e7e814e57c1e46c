"""``mnpca demo``: the first thing a person tries."""

import functools
import json
import time
from pathlib import Path

import mnpca


def test_demo_beats_pca_in_under_a_minute(run):
    start = time.perf_counter()
    result = run("demo", "--json")
    assert result.code == 0, result.err
    assert time.perf_counter() - start < 60
    summary = json.loads(result.out)
    pca, ours = summary["comparison"]["PCA"], summary["comparison"]["MN-PCA"]
    assert ours["psnr"] > pca["psnr"] + 10
    assert ours["nmi"] > 90 > 50 > pca["nmi"]
    assert summary["n_components"] == 2
    assert Path(summary["report"]).is_file()


def test_demo_tells_where_the_report_is(run, tmp_path, monkeypatch):
    small = functools.partial(mnpca.datasets.make_paper_small, n_samples=60, n_features=40)
    monkeypatch.setattr("mnpca.datasets.make_paper_small", small)
    result = run("demo", "-o", "there")
    assert result.code == 0, result.err
    assert "PSNR" in result.out
    assert str(tmp_path / "there" / "report.html") in result.out.replace("\n", "")
