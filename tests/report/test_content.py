"""The report's document and its HTML, without a browser."""

import copy
import json
import re

import numpy as np
import pytest
import scipy.linalg
from tests.known import KnownNetworks, known_fit

from mnpca import MNPCA
from mnpca.cli.fit import learned_columns
from mnpca.datasets import make_paper_small
from mnpca.diagnostics import network_edges
from mnpca.report import collect, load_content, render, save_content, write_comparison
from mnpca.report.content import describe_labels, short
from mnpca.report.render import story


@pytest.fixture(scope="module")
def document():
    data, frame, model = known_fit()
    return collect(model, frame, labels=data.labels, source="data.csv", seconds=1.5)


def test_document_is_strict_json_and_comes_back(document, tmp_path):
    save_content(document, tmp_path / "report.json")
    again = load_content(tmp_path / "report.json")
    assert again == json.loads(json.dumps(document, allow_nan=False))
    assert render(again) == render(document)


def test_foreign_documents_are_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"schema": 99}')
    with pytest.raises(ValueError, match="schema"):
        load_content(tmp_path / "a.json")
    with pytest.raises(ValueError, match="schema"):
        render([])


def test_html_names_no_address_and_one_script_policy(document):
    html = render(document)
    outside = re.sub(r'xmlns="[^"]*"|"http://www.w3.org/2000/svg"', "", html)
    assert "http://" not in outside
    assert "https://" not in outside
    assert "default-src 'none'" in html
    assert "script-src 'sha256-" in html


def test_figures_are_the_model_s(document):
    _, frame, model = known_fit()
    np.testing.assert_allclose(
        document["scores"]["mnpca"], np.asarray(model.transform(frame)).T, rtol=1e-3
    )
    edges = model.noise_graph("rows").number_of_edges()
    assert document["networks"]["rows"]["n_edges"] == edges
    assert f"{edges:,} pairs of rows" in " ".join(document["story"])
    assert document["scree"]["kept"] == 2


def test_the_page_says_how_far_the_two_pictures_agree(document):
    document = copy.deepcopy(document)
    pictures = (np.transpose(document["scores"][name][:2]) for name in ("mnpca", "pca"))
    angle = scipy.linalg.subspace_angles(*(x - x.mean(axis=0) for x in pictures)).max()
    assert f"The two pictures correlate at {np.cos(angle):.2f} in the direction" in render(document)
    del document["scores"]["agreement"]  # a document of an earlier version
    assert "The two pictures" not in render(document)


def test_what_priors_know_stands_beside_the_loadings():
    data = make_paper_small(c=8, seed=3, n_samples=150, n_features=100, signal_scale=1.5)
    model = MNPCA(2, noise="diagonal").fit(data.Y)
    document = collect(model, data.Y, source="data.csv", seconds=1.0)
    zero = model.priors_["columns"]["zero"]
    for rows, component in zip(document["loadings"]["components"], model.components_, strict=True):
        _, largest, probability = rows[0]
        at = np.argmax(np.abs(component))
        assert largest == short(component[at])
        assert probability == short(zero[at])
    assert document["scores"]["labels"]["names"] == ["group 1", "group 2", "group 3"]
    assert learned_columns(model, "columns")["zero_probability"] == zero.tolist()


def test_labels_as_groups_values_and_too_many():
    groups = describe_labels(np.array(["b", "a", "b"]))
    assert groups == {"kind": "groups", "names": ["a", "b"], "code": [1, 0, 1]}
    assert describe_labels(np.arange(50) / 7)["kind"] == "values"
    assert describe_labels(np.array(["1", "2", "1"]))["kind"] == "groups"
    many = describe_labels(np.array([f"g{i % 30}" for i in range(100)]))
    assert len(many["names"]) == 10
    assert many["names"][-1] == "21 other groups"


def test_numbers_as_labels_keep_their_order():
    groups = describe_labels(np.array(["10", "2", "2", "1"]))
    assert groups == {"kind": "groups", "names": ["1", "2", "10"], "code": [2, 1, 1, 0]}


@pytest.mark.parametrize("gap", ["", None, np.nan])
def test_a_gap_among_numeric_labels(gap):
    ages = describe_labels(np.array([gap, *np.linspace(20, 80, 30)], dtype=object))
    assert ages["kind"] == "values"
    assert ages["values"][:2] == [None, 20]
    groups = describe_labels(np.array([1.0, gap, 0.0], dtype=object))
    assert groups == {"kind": "groups", "names": ["0", "1", ""], "code": [1, 2, 0]}


def test_labels_of_another_length():
    _, frame, model = known_fit()
    with pytest.raises(ValueError, match="labels must be 60 values"):
        collect(model, frame, labels=["a", "b"])
    with pytest.raises(ValueError, match="column_labels must be 40 values, one per column"):
        collect(model, frame, column_labels=["a", "b"])


def test_scores_do_not_count_what_was_filled_in():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 20)) * 2 + rng.normal(size=(40, 20))
    X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = MNPCA(2, noise="diagonal").fit(X)
    shown = collect(model, X)["scores"]["mnpca"]
    np.testing.assert_allclose(shown, model.transform(X).T, rtol=1e-3)


@pytest.mark.parametrize(("rows", "columns"), [(0, 1), (3, 0), (1, 2)])
def test_words_for_few_edges(document, rows, columns):
    few = copy.deepcopy(document)
    few["networks"]["rows"]["n_edges"], few["networks"]["columns"]["n_edges"] = rows, columns
    words = " ".join(story(few))
    for count, side in ((rows, "rows"), (columns, "columns")):
        expected = f"{count} pair{'s' * (count > 1)} of {side}"
        assert (f"along {expected}" in words or f"and {expected}" in words) == (count > 0)


def test_short_numbers():
    assert short([1.23456, 0, -9876543.0, np.nan, 1e-300]) == [1.235, 0, -9877000.0, None, 1e-300]


def test_scaled_columns_scale_pca():
    _, frame, model = known_fit()
    frame = frame.copy()
    frame.iloc[:, 0] *= 1000
    plain = collect(model, frame)["scores"]["pca"][0]
    scaled = collect(model, frame, scaled=True)["scores"]["pca"][0]
    assert abs(np.corrcoef(plain, frame.iloc[:, 0])[0, 1]) > 0.999
    assert abs(np.corrcoef(scaled, frame.iloc[:, 0])[0, 1]) < 0.9


def test_comparison_goes_by_names_and_finds_the_lost_edge(tmp_path):
    """The other fit has its columns and components the other way round, and lacks an edge."""
    data, frame, model = known_fit()
    edges = network_edges(model, "columns")
    i, j = edges.first[-1], edges.second[-1]
    B = data.col_precision.toarray()
    B[i, j] = B[j, i] = 0.0
    other = KnownNetworks(2, data.row_precision, B[::-1, ::-1]).fit(frame.iloc[:, ::-1])
    other.components_ = -other.components_[::-1]
    found = write_comparison(model, other, tmp_path / "a.html", names=("all", "<b>fewer</b>"))
    pairs = [(pair["first"], pair["second"], pair["verdict"]) for pair in found["components"]]
    assert pairs == [(1, 2, "same"), (2, 1, "same")]
    columns, rows = found["networks"]["columns"], found["networks"]["rows"]
    assert (columns["n_lost"], columns["n_gained"]) == (1, 0)
    assert set(columns["lost"][0][:2]) == {frame.columns[i], frame.columns[j]}
    assert (rows["n_lost"], rows["n_gained"]) == (0, 0)
    assert rows["n_common"] == len(network_edges(model, "rows"))
    assert "&lt;b&gt;fewer" in (tmp_path / "a.html").read_text()
    strangers = known_fit(column_names=[f"other {k}" for k in range(40)])[2]
    with pytest.raises(ValueError, match="no column in common"):
        write_comparison(model, strangers, tmp_path / "b.html")
