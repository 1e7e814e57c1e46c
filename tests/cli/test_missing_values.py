"""Files with empty cells on the command line."""

import csv
import json

import numpy as np

from mnpca.datasets import make_paper_small


def write(path, matrix, holes):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([f"v{j}" for j in range(matrix.shape[1])])
        for values, gaps in zip(matrix, holes, strict=True):
            rows.writerow(
                ["" if gap else repr(float(v)) for v, gap in zip(values, gaps, strict=True)]
            )


def test_a_file_with_gaps_is_fitted_completed_and_projected(run, tmp_path):
    data = make_paper_small(c=8, seed=1, n_samples=60, n_features=30, density=0.05)
    holes = np.random.default_rng(0).random(data.Y.shape) < 0.1
    write(tmp_path / "gaps.csv", data.Y, holes)
    out = tmp_path / "out"
    result = run("fit", tmp_path / "gaps.csv", "-k", 2, "--scale", "-o", out)
    assert result.code == 0, result.err
    notes = json.loads((out / "summary.json").read_text())["notes"]
    assert any(f"{holes.sum():,} missing values" in note for note in notes)
    completed, errors = (
        np.loadtxt(out / f"{name}.csv", delimiter=",", skiprows=1)[:, 1:]
        for name in ("completed", "completed_std")
    )
    assert np.allclose(completed[~holes], data.Y[~holes], rtol=1e-6)
    assert np.all(errors[holes] > 0)
    assert np.all(errors[~holes] == 0)
    means = np.nanmean(np.where(holes, np.nan, data.Y), axis=0)
    assert np.mean((completed - data.Y)[holes] ** 2) < np.mean((means - data.Y)[holes] ** 2)
    assert (out / "report.html").stat().st_size > 10_000
    scores = tmp_path / "scores.csv"
    result = run("transform", out, tmp_path / "gaps.csv", "-o", scores)
    assert result.code == 0, result.err
    first, second = (
        np.loadtxt(file, delimiter=",", skiprows=1)[:, 1:] for file in (scores, out / "scores.csv")
    )
    assert np.allclose(first, second)
