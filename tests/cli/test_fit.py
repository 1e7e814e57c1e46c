"""``mnpca fit``, ``transform`` and ``report`` as a person uses them."""

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import mnpca
from mnpca.datasets import make_paper_small

QUICK = ("--noise", "diagonal", "--prior", "gaussian")
FILES = {
    ".mnpca-files",
    "scores.csv",
    "components.csv",
    "row_graph.csv",
    "col_graph.csv",
    "model.mnpca",
    "report.html",
    "report.json",
    "summary.json",
}


def test_fit_writes_everything(results, out, frame, tmp_path):
    printed = results[1]
    assert "rank 2" in printed
    assert "Results in" in printed
    assert {path.name for path in out.iterdir()} == FILES | {
        "row_graph.graphml",
        "col_graph.graphml",
    }
    model = mnpca.load(tmp_path / "out" / "model.mnpca")
    values = frame.drop(columns="group")
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores["name"].tolist() == frame.index.tolist()
    assert scores["group"].tolist() == frame["group"].tolist()
    np.testing.assert_allclose(
        scores[["component_1", "component_2"]], model.transform(values), rtol=1e-12
    )
    components = pd.read_csv(tmp_path / "out" / "components.csv", index_col="name")
    assert components.index.tolist() == values.columns.tolist()
    np.testing.assert_allclose(components.to_numpy().T, model.components_, rtol=1e-12)
    for side, name in (("rows", "row_graph"), ("columns", "col_graph")):
        edges = pd.read_csv(tmp_path / "out" / f"{name}.csv")
        graph = model.noise_graph(side, fdr=0.05)
        assert len(edges) == graph.number_of_edges()
        precision = model.row_precision_ if side == "rows" else model.col_precision_
        for edge in edges.itertuples():
            i, j = edge.position_1 - 1, edge.position_2 - 1
            for name in ("partial_correlation", "standard_error", "p", "q"):
                assert graph.edges[i, j][name] == pytest.approx(getattr(edge, name))
            assert precision[i, j] == pytest.approx(edge.precision)


def test_tables_of_edges_have_an_error_rate(run, tmp_path):
    data = make_paper_small(c=64, seed=0, n_samples=100, n_features=60, density=0.05)
    pd.DataFrame(data.Y).to_csv(tmp_path / "net.csv")
    wide = ("--fdr", 0.3, "--graphml", "--prior", "gaussian")
    assert run("fit", "net.csv", "-k", 2, "-o", "out", *wide).code == 0
    model = mnpca.load(tmp_path / "out" / "model.mnpca")
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    for side, name in (("rows", "row_graph"), ("columns", "col_graph")):
        edges = pd.read_csv(tmp_path / "out" / f"{name}.csv")
        table = model.edges(side, fdr=0.3)
        assert len(edges) == len(table) > len(model.edges(side)) > 2
        assert edges.columns[-3:].tolist() == ["standard_error", "p", "q"]
        assert edges["partial_correlation"].abs().is_monotonic_decreasing
        np.testing.assert_allclose(edges["q"].sort_values(), table["q"].sort_values())
        graph = nx.read_graphml(tmp_path / "out" / f"{name}.graphml")
        assert graph.number_of_edges() == document["networks"][side]["n_edges"] == len(table)
        assert document["networks"][side]["max_rate"] == 0.3
    report = (tmp_path / "out" / "report.html").read_text()
    assert "The false discovery rate of this network is 30%" in report
    assert "(false discovery rate 30%)" in report
    assert "--fdr must be above 0" in run("fit", "net.csv", "--fdr", 2, "-o", "none").err


def test_fit_is_the_library_s_fit(out, frame, tmp_path):
    ours = mnpca.MNPCA(2, random_state=0).fit(frame.drop(columns="group"))
    stored = mnpca.load(tmp_path / "out" / "model.mnpca")
    np.testing.assert_allclose(stored.components_, ours.components_, rtol=1e-8)


@pytest.mark.parametrize("algorithm", ["likelihood", "wasserstein"])
def test_other_algorithms(run, csv, tmp_path, algorithm):
    result = run("fit", csv, "-k", 2, "--algorithm", algorithm, "--labels", "group", "-o", "out")
    assert result.code == 0, result.err
    stored = mnpca.load(tmp_path / "out" / "model.mnpca")
    assert type(stored).__name__.lower() == f"{algorithm}mnpca"


def test_automatic_rank_json_and_default_folder(run, csv, tmp_path):
    result = run("fit", csv, "--labels", "group", "--json", "--prior", "gaussian")
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    assert summary["output"] == "data-mnpca"
    assert (summary["n_rows"], summary["n_columns"]) == (40, 20)
    assert summary["n_components"] == mnpca.load(tmp_path / "data-mnpca/model.mnpca").n_components_


def test_left_out_columns_are_reported(run, csv, tmp_path):
    result = run("fit", csv, "-k", 1, "-o", "out", *QUICK)
    assert "left out: 'group'" in result.out
    assert "left out: &#39;group&#39;" in (tmp_path / "out" / "report.html").read_text()


def test_a_probable_label_is_pointed_out(run, frame, tmp_path):
    numeric = frame["group"].str[-1].astype(int)
    frame.assign(group=numeric).to_csv(tmp_path / "numeric.csv")
    assert "if it is a label, pass --labels" in run("fit", "numeric.csv", "-k", 1, *QUICK).out


def test_scale_gives_a_model_in_the_units_of_the_data(run, frame, tmp_path):
    stretched = frame.drop(columns="group")
    stretched.iloc[:, :5] *= 1000
    stretched.to_csv(tmp_path / "stretched.csv")
    scaled = ("--scale", "--prior", "gaussian")
    assert run("fit", "stretched.csv", "-k", 2, "-o", "out", *scaled).code == 0
    model = mnpca.load(tmp_path / "out" / "model.mnpca")
    unit = stretched.to_numpy().std(axis=0)
    scaled = stretched / unit
    same = mnpca.MNPCA(2, prior="gaussian", random_state=0).fit(scaled)
    np.testing.assert_allclose(model.transform(stretched), same.transform(scaled), rtol=1e-8)
    signals = zip(model.denoise(return_std=True), same.denoise(return_std=True), strict=True)
    for ours, theirs in signals:  # the signal, and its standard errors
        np.testing.assert_allclose(ours, theirs * unit, rtol=1e-8)
    gram = model.components_ @ (model.col_precision_ @ model.components_.T)
    before = same.components_ @ (same.col_precision_ @ same.components_.T)
    np.testing.assert_allclose(gram, before, atol=1e-8)


def test_transpose(run, frame, tmp_path):
    frame.drop(columns="group").T.to_csv(tmp_path / "t.csv")
    assert run("fit", "t.csv", "-k", 2, "--transpose", "-o", "out", *QUICK).code == 0
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert scores["name"].tolist() == frame.index.tolist()


def test_constant_columns_can_be_dropped(run, frame, tmp_path):
    frame.drop(columns="group").assign(same=1.0).to_csv(tmp_path / "c.csv")
    result = run("fit", "c.csv", "-k", 2, "--drop-constant", "-o", "out", *QUICK)
    assert result.code == 0, result.err
    assert "constant column left out: 'same'" in result.out


def test_repeated_and_formula_names(run, frame, tmp_path):
    odd = frame.drop(columns="group")
    odd.columns = ["=1+1", "twice", "twice", "@x", *odd.columns[4:]]
    odd.to_csv(tmp_path / "odd.csv")
    result = run("fit", "odd.csv", "-k", 2, "-o", "out", "--graphml", *QUICK)
    assert result.code == 0, result.err
    assert "'twice'" in result.out
    names = pd.read_csv(tmp_path / "out" / "components.csv")["name"].tolist()
    assert names[:4] == ["'=1+1", "twice", "twice.2", "'@x"]
    assert run("transform", "out", "odd.csv", "-o", "new.csv").code == 0


def test_graphml_can_be_read_again(out, tmp_path):
    graph = nx.read_graphml(tmp_path / "out" / "col_graph.graphml")
    model = mnpca.load(tmp_path / "out" / "model.mnpca")
    assert graph.number_of_nodes() == 20
    tested = model.noise_graph("columns", fdr=0.05)
    assert graph.number_of_edges() == tested.number_of_edges()
    assert graph.nodes["0"]["name"] == "feature 0"
    assert "community" in graph.nodes["0"]


def test_transform_matches_columns_by_name(run, out, frame, tmp_path):
    shuffled = frame.drop(columns="group").iloc[:7, ::-1].assign(extra=1.0)
    shuffled.to_csv(tmp_path / "new.csv")
    result = run("transform", "out", "new.csv")
    assert result.code == 0, result.err
    assert "left out: 'extra'" in result.out
    new = pd.read_csv(tmp_path / "new-scores.csv")
    old = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert new["name"].tolist() == old["name"].tolist()[:7]
    np.testing.assert_allclose(new["component_1"], old["component_1"][:7], rtol=1e-9)
    shown = run("transform", "out/model.mnpca", "new.csv", "--json", "--overwrite")
    assert json.loads(shown.out)["n_rows"] == 7


def test_report_is_rendered_again(run, out):
    page = out / "report.html"
    before = page.read_text()
    page.unlink()
    assert run("report", "out").code == 0
    assert page.read_text() == before
    assert json.loads(run("report", "out", "--json").out)["report"].endswith("report.html")


def test_labels_of_columns_reach_the_report(run, csv, frame, tmp_path):
    features = [name for name in frame if name != "group"]
    rows = [f"{name};{'even' if j % 2 == 0 else 'odd'}" for j, name in enumerate(features[1:])]
    (tmp_path / "kinds.csv").write_text("\n".join(["name;kind", *rows]))
    (tmp_path / "other.csv").write_text("name,kind\nnobody,even\n")
    fit = ("fit", csv, "-k", 2, "--labels", "group", "-o", "out", "--noise", "graph")
    fit += ("--prior", "gaussian")
    refused = run(*fit, "--column-labels", "other.csv")
    assert refused.code == 2
    assert "names no column of the data; it needs two columns" in refused.err
    assert run(*fit, "--column-labels", "kinds.csv").code == 0
    network = json.loads((tmp_path / "out" / "report.json").read_text())["networks"]["columns"]
    assert network["drawing"]["groups"] == ["", "even", "odd"]
    assert network["ordered_by"] == "label"


def test_two_fits_are_compared(run, csv, out, tmp_path):
    assert run("fit", csv, "-k", 3, "--labels", "group", "-o", "rank3", *QUICK).code == 0
    shown = run("report", "out", "rank3", "--json")
    assert shown.code == 0
    page = tmp_path / "rank3" / "comparison.html"
    assert json.loads(shown.out)["report"].endswith("comparison.html")
    assert "out and rank3" in page.read_text()
    assert "no counterpart" in page.read_text()
    refused = run("report", "out", "nowhere")
    assert refused.code == 2
    assert "not a folder that mnpca fit wrote" in refused.err


def test_overwrite_and_checkpoint(run, csv, tmp_path):
    arguments = ("fit", csv, "-k", 2, "--labels", "group", "-o", "out", "--checkpoint", "c.ckpt")
    arguments += QUICK
    assert run(*arguments).code == 0
    first = pd.read_csv(tmp_path / "out" / "scores.csv")
    assert (tmp_path / "c.ckpt").exists()
    result = run(*arguments, "--overwrite", "--resume")
    assert result.code == 0, result.err
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out" / "scores.csv"), first)


def test_a_file_with_gaps_is_fitted_completed_and_projected(run, tmp_path):
    data = make_paper_small(c=8, seed=1, n_samples=60, n_features=30, density=0.05).Y
    missing = np.random.default_rng(0).random(data.shape) < 0.1
    gaps = pd.DataFrame(np.where(missing, np.nan, data)).add_prefix("v")
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    result = run("fit", "gaps.csv", "-k", 2, "--scale", "-o", "out", "--prior", "gaussian")
    assert result.code == 0, result.err
    notes = json.loads((tmp_path / "out" / "summary.json").read_text())["notes"]
    assert any(f"{missing.sum():,} missing values" in note for note in notes)
    completed, errors = (
        pd.read_csv(tmp_path / "out" / f"{name}.csv", index_col=0).to_numpy()
        for name in ("completed", "completed_std")
    )
    np.testing.assert_allclose(completed[~missing], data[~missing])
    assert np.all((errors > 0) == missing)
    means = gaps.mean().to_numpy()
    assert np.mean((completed - data)[missing] ** 2) < np.mean((means - data)[missing] ** 2)
    assert run("transform", "out", "gaps.csv", "-o", "scores.csv").code == 0
    first, second = (
        pd.read_csv(tmp_path / name)["component_1"] for name in ("scores.csv", "out/scores.csv")
    )
    np.testing.assert_allclose(first, second)


def test_version_and_help(run):
    assert run("--version").out.strip() == f"mnpca {mnpca.__version__}"
    result = run("--help")
    assert result.code == 0
    for command in ("fit", "transform", "report", "demo"):
        assert command in result.out
    bare = run()
    assert (bare.code, bare.out, bare.err) == (0, result.out, "")
