"""Options that say how a file is to be read and what is to be fitted."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import mnpca
from mnpca.cli.fit import make_estimator

QUICK = ("--noise", "diagonal", "--prior", "gaussian")


def loaded(tmp_path, folder="out"):
    return mnpca.load(tmp_path / folder / "model.mnpca")


def test_noise_robust_and_seed_are_python_s(run, csv, frame, tmp_path):
    arguments = ("fit", csv, "-k", 2, "--labels", "group", "-o", "out")
    assert run(*arguments, *QUICK, "--robust", "--seed", 3).code == 0
    model = loaded(tmp_path)
    same = mnpca.MNPCA(2, noise="diagonal", prior="gaussian", robust=True, random_state=3)
    same.fit(frame.drop(columns="group"))
    np.testing.assert_allclose(model.components_, same.components_, rtol=1e-8)
    assert (model.noise, model.robust, model.random_state) == ("diagonal", True, 3)
    result = run("fit", csv, "--noise", "pink", "--labels", "group")
    assert result.code == 2
    assert "'noise'" in result.err
    result = run("fit", csv, "--noise", "graph", "--labels", "group", "--algorithm", "likelihood")
    assert "--noise belongs to the algorithm mnpca" in result.err


def test_ranks_and_pairs_of_noises_are_python_s():
    given = {"algorithm": "mnpca", "prior": None, "robust": False, "seed": 0}
    for text, rank in (("0", 0), ("3", 3), ("0.9", 0.9), ("auto", "auto")):
        options = SimpleNamespace(n_components=text, noise="diagonal, graph", **given)
        model = make_estimator(options, (9, 9))
        assert (model.n_components, model.noise) == (rank, ("diagonal", "graph"))


def test_index_drop_and_columns(run, frame, tmp_path):
    table = frame.assign(plate=7.0, patient=np.arange(100, 140))
    table.to_csv(tmp_path / "data.csv", index=False)
    arguments = ("fit", "data.csv", "-k", 1, "--index", "patient", "--overwrite", "-o", "out")
    arguments += QUICK
    assert run(*arguments, "--drop", "plate,group").code == 0
    model = loaded(tmp_path)
    assert list(model.sample_names_in_) == [str(i) for i in range(100, 140)]
    assert list(model.feature_names_in_) == [f"feature {j}" for j in range(20)]
    chosen = ("--columns", "feature 3", "--columns", "feature 1,feature 7")
    assert run(*arguments, *chosen, "--labels", "group").code == 0
    assert list(loaded(tmp_path).feature_names_in_) == ["feature 1", "feature 3", "feature 7"]
    assert run("transform", "out", "data.csv", "--index", "patient", "--drop", "group").code == 0
    scores = pd.read_csv(tmp_path / "data-scores.csv")
    assert scores["name"].tolist() == list(range(100, 140))
    for option in ("--index", "--drop", "--columns", "--labels"):
        result = run("fit", "data.csv", option, "weight")
        assert result.code == 2
        assert f"no column 'weight' for {option}; there are 'feature 0'" in result.err


def test_numbers_as_people_write_them(run, frame, tmp_path):
    values = (1000 * frame.drop(columns="group")).round(1)
    written = values.map(lambda x: f"{x:,.1f} %".translate(str.maketrans(",.", ".,")))
    written.iloc[3, 4] = "n.d."
    written.to_csv(tmp_path / "data.csv", sep=";", encoding="utf-16")
    arguments = ["fit", "data.csv", "-k", "2", "-o", "out", *QUICK]
    for option in (["--strip", "%"], ["--decimal", ",", "--strip", "."], ["--na", "n.d."]):
        result = run(*arguments)
        assert result.code == 2
        assert " ".join(option) in result.err
        arguments += option
    assert run(*arguments).code == 0
    expected = values.to_numpy(copy=True)
    expected[3, 4] = np.nan
    completed = pd.read_csv(tmp_path / "out" / "completed.csv", index_col=0).to_numpy()
    seen = ~np.isnan(expected)
    np.testing.assert_allclose(completed[seen], expected[seen])
    options = arguments[10:]
    assert run("transform", "out", "data.csv", *options).code == 0
    scores, old = (
        pd.read_csv(tmp_path / name)["component_1"]
        for name in ("data-scores.csv", "out/scores.csv")
    )
    np.testing.assert_allclose(scores, old, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("option", ["--row-covariates", "--column-covariates"])
def test_covariates_are_matched_by_name(run, csv, frame, tmp_path, option):
    values = frame.drop(columns="group")
    side, names = ("row", values.index) if option[2] == "r" else ("col", values.columns)
    rng = np.random.default_rng(0)
    known = pd.DataFrame({"age": rng.normal(size=len(names))}, index=names)
    known["batch"] = rng.choice(["one", "two", "three"], len(names))
    known.sample(frac=1, random_state=0).to_csv(tmp_path / "known.csv")
    arguments = ("fit", csv, "-k", 2, "--labels", "group", "-o", "out", "--scale", *QUICK)
    result = run(*arguments, option, "known.csv")
    assert result.code == 0, result.err
    design = np.column_stack([known["age"], known["batch"] == "three", known["batch"] == "two"])
    spread = values.to_numpy().std(axis=0)
    same = mnpca.MNPCA(2, noise="diagonal", prior="gaussian", random_state=0)
    same.fit(values / spread, **{f"{side}_covariates": design})
    model = loaded(tmp_path)
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")["component_1"]
    given = {"row_covariates": design} if side == "row" else {}
    np.testing.assert_allclose(scores, same.transform(values / spread, **given)[:, 0], atol=1e-4)
    np.testing.assert_allclose(
        model.score(values, **given) + np.log(spread).sum(),
        same.score(values / spread, **given),
        rtol=1e-4,
    )
    known.iloc[3:].to_csv(tmp_path / "few.csv")
    option = option.replace("column", "col")
    result = run(*arguments, "--overwrite", option, "few.csv")
    assert result.code == 2
    assert f"nothing about 3 of {len(names)}" in result.err
    if side == "row":
        result = run("transform", "out", csv)
        assert "pass --row-covariates" in result.err
        assert run("transform", "out", csv, option, "known.csv").code == 0
        new = pd.read_csv(tmp_path / "data-scores.csv")["component_1"]
        np.testing.assert_allclose(new, scores, rtol=1e-9)


def test_covariates_without_names_go_by_order(run, frame, tmp_path):
    frame.drop(columns="group").to_csv(tmp_path / "data.csv", index=False)
    ages = np.random.default_rng(1).normal(size=(40, 1))
    np.savetxt(tmp_path / "age.csv", ages)
    arguments = ("fit", "data.csv", "-k", 1, "--row-covariates", "age.csv")
    assert run(*arguments, *QUICK, "-o", "out").code == 0
    np.testing.assert_allclose(loaded(tmp_path).row_covariates_, ages)
    np.savetxt(tmp_path / "age.csv", ages[:7])
    result = run(*arguments)
    assert "the file has 7 rows for 40 rows" in result.err
    result = run("fit", "data.csv", "--algorithm", "wasserstein", "--row-covariates", "age.csv")
    assert result.code == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.assign(patient=np.arange(40) + 7), "--index 'patient'"),
        (lambda f: f.assign(SampleID=np.arange(40)[::-1] * 13), "--index 'SampleID'"),
        (lambda f: f.rename(index={"sample 39": "Total"}), "the last row is called 'Total'"),
    ],
)
def test_what_is_probably_no_data_is_pointed_out(run, frame, tmp_path, change, words):
    change(frame.drop(columns="group")).to_csv(tmp_path / "data.csv")
    result = run("fit", "data.csv", "-k", 1, "--json", *QUICK)
    assert result.code == 0, result.err
    assert any(words in note for note in json.loads(result.out)["notes"])


def test_genes_in_rows_are_pointed_out(run, tmp_path):
    values = np.random.default_rng(0).normal(size=(120, 6))
    genes = [f"ABC{i}" for i in range(120)]
    pd.DataFrame(values, index=genes, columns=list("uvwxyz")).to_csv(tmp_path / "genes.csv")
    result = run("fit", "genes.csv", "-k", 1, *QUICK)
    assert "pass --transpose" in result.out.replace("\n", " ")


def test_messages_count_rows_as_the_file_does(run, tmp_path):
    rows = "".join(f"{i % 7}.5,{i * i}\n" for i in range(9))
    (tmp_path / "data.csv").write_text("# a comment\n\na,b\n" + rows + "\n1,2,\n3,high\n")
    result = run("fit", "data.csv")
    assert "line 14" in result.err  # pandas' own: more cells than before
    (tmp_path / "data.csv").write_text("# a comment\n\na,b\n" + rows + "\n1,2\n3,high\n")
    assert "first 'high' in row 15" in run("fit", "data.csv").err
    (tmp_path / "data.csv").write_text("# a comment\n\na,b\n" + rows + "\n1,2\n3,inf\n")
    assert "first in row 15, column 'b'" in run("fit", "data.csv").err


def test_transform_replaces_nothing_unasked(run, csv, out, tmp_path):
    (tmp_path / "mine.csv").write_text("precious")
    result = run("transform", "out", csv, "-o", "mine.csv")
    assert result.code == 2
    assert "exists; name another with -o, or pass --overwrite" in result.err
    assert (tmp_path / "mine.csv").read_text() == "precious"
    assert run("transform", "out", csv, "-o", "mine.csv", "--overwrite").code == 0
    assert "component_1" in (tmp_path / "mine.csv").read_text()


def test_overwrite_keeps_the_files_of_others(run, csv, tmp_path):
    arguments = ("fit", csv, "-k", 2, "--labels", "group", "-o", "link", *QUICK)
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    assert run(*arguments).code == 0
    (tmp_path / "disk" / "notes.txt").write_text("mine")
    assert run(*arguments, "--overwrite").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "disk" / "scores.csv").exists()
    assert {path.name for path in tmp_path.iterdir()} == {csv, "disk", "link"}
