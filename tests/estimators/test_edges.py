"""Edges with an error rate, as a user asks for them."""

import builtins
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mnpca
from mnpca import MNPCA, ModelCheckWarning, SparsePrecision, compare_edges, edge_stability
from mnpca.datasets import make_low_rank_matrix_normal, make_paper_small
from mnpca.estimators._edges import side_tests

COLUMNS = [
    *("name_1", "name_2", "node_1", "node_2"),
    *("partial_correlation", "standard_error", "z", "p", "q"),
]

QUICK = {"noise": "graph", "prior": "gaussian"}


@pytest.fixture(scope="module")
def data():
    return make_paper_small(c=64, seed=5, n_samples=100, n_features=70, density=0.04)


@pytest.fixture(scope="module")
def model(data):
    frame = pd.DataFrame(
        data.Y,
        columns=[f"gene {j}" for j in range(70)],
        index=[f"sample {i}" for i in range(100)],
    )
    return MNPCA(2, **QUICK).fit(frame)


@pytest.mark.parametrize(("side", "name"), [("rows", "sample"), ("columns", "gene")])
def test_the_table(model, side, name):
    table = model.edges(side)
    assert table.columns.tolist() == COLUMNS
    assert len(table) > 10
    assert (table["q"] <= 0.05).all()
    assert table["q"].is_monotonic_increasing
    assert (table["node_1"] < table["node_2"]).all()
    assert table["name_1"].tolist() == [f"{name} {i}" for i in table["node_1"]]
    assert table["name_2"].tolist() == [f"{name} {j}" for j in table["node_2"]]
    assert (np.sign(table["z"]) == np.sign(table["partial_correlation"])).all()
    np.testing.assert_allclose(table["p"], 2 * stats.norm.sf(np.abs(table["z"])), rtol=1e-10)
    assert len(model.edges(side, fdr=0.2)) > len(table)


@pytest.mark.slow
def test_the_false_discovery_rate_of_fits():
    proportions = {0.05: [], 0.2: []}
    for seed in range(8):
        data = make_paper_small(c=64, seed=seed, n_samples=120, n_features=100, density=0.03)
        model = MNPCA(2, noise="graph", prior="gaussian").fit(data.Y)
        for side, truth in (("rows", data.row_precision), ("columns", data.col_precision)):
            for rate, found in proportions.items():
                table = model.edges(side, fdr=rate)
                true = truth.toarray()[table["node_1"], table["node_2"]] != 0
                found.append(1.0 - true.mean() if len(true) else 0.0)
    for rate, found in proportions.items():
        assert np.mean(found) < rate + 2 * np.std(found) / np.sqrt(16)


@pytest.mark.parametrize("noise", ["normal", "t3"])
def test_white_noise_has_no_edge(noise):
    squares, edges = [], 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        signal = 3 * rng.normal(size=(120, 2)) @ rng.normal(size=(2, 90))
        shape = (120, 90)
        white = rng.normal(size=shape) if noise == "normal" else rng.standard_t(3, size=shape)
        model = MNPCA(2, **QUICK).fit(signal + white)
        for side in ("rows", "columns"):
            tests = side_tests(model, side)
            edges += (tests.q <= 0.05).any()
            squares.append(np.mean(tests.z**2))
            # Kolmogorov's distance of the p-values from uniform ones.
            assert stats.kstest(tests.p, "uniform").statistic < 0.04
    assert edges <= 1  # of four networks, each with one at a rate of 5%
    assert np.mean(squares) == pytest.approx(1.0, abs=0.04)


def test_order_of_the_data_does_not_matter():
    Y = make_paper_small(c=64, seed=6, n_samples=100, n_features=70, density=0.04).Y
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(100), rng.permutation(70)
    model, shuffled = (MNPCA(2, **QUICK).fit(each) for each in (Y, Y[rows][:, columns]))
    for side, order in (("rows", rows), ("columns", columns)):
        table = shuffled.edges(side)
        pairs = table[["node_1", "node_2"]].values
        back = {
            tuple(sorted((order[i], order[j]))): z
            for (i, j), z in zip(pairs, table["z"], strict=True)
        }
        plain = model.edges(side).set_index(["node_1", "node_2"])["z"].to_dict()
        assert back == pytest.approx(plain, rel=2e-2)


def test_the_graph_of_tested_edges(model):
    table, graph = model.edges("columns", fdr=0.1), model.noise_graph("columns", fdr=0.1)
    assert graph.number_of_nodes() == 70
    assert graph.number_of_edges() == len(table)
    assert graph.graph["fdr"] == 0.1
    assert graph.nodes[7]["name"] == "gene 7"
    first = table.iloc[0]
    edge = graph.edges[first["node_1"], first["node_2"]]
    assert edge == first[["partial_correlation", "standard_error", "z", "p", "q"]].to_dict()
    # Without a rate it is the network that the fit uses.
    used = model.noise_graph("columns")
    assert used.number_of_edges() == (model.col_precision_.nnz - 70) // 2


def test_a_saved_model_keeps_its_tests(model, tmp_path):
    again = mnpca.load(model.save(tmp_path / "a.mnpca") and tmp_path / "a.mnpca")
    pd.testing.assert_frame_equal(again.edges("rows"), model.edges("rows"))


def test_without_pandas_the_table_is_an_array(model, monkeypatch):
    table = model.edges("rows")
    plain_import = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return plain_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    array = model.edges("rows")
    assert list(array.dtype.names) == COLUMNS
    np.testing.assert_array_equal(array["z"], table["z"])


def test_a_model_without_networks_lists_no_edge(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelCheckWarning)
        model = MNPCA(2, noise="diagonal").fit(data.Y)
    assert len(model.edges("rows")) == 0
    assert model.noise_graph("columns", fdr=0.05).number_of_nodes() == 70


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_several_matrices_and_missing_values_have_edges(data):
    several = MNPCA(2, **QUICK).fit(data.Y.reshape(2, 50, 70))
    assert several.noise_graph("rows", fdr=0.05).number_of_nodes() == 50
    rng = np.random.default_rng(0)
    hidden = np.where(rng.random(data.Y.shape) < 0.02, np.nan, data.Y)
    table = MNPCA(2, **QUICK).fit(hidden).edges("columns")
    true = data.col_precision.toarray()[table["node_1"], table["node_2"]] != 0
    assert len(table) > 10
    assert true.mean() > 0.8


def test_bad_arguments_are_named(model, data):
    with pytest.raises(ValueError, match='side must be "rows" or "columns"'):
        model.edges("genes")
    for fdr in (0, 1.5, "few"):
        with pytest.raises(ValueError, match="fdr must be a number above 0"):
            model.edges("rows", fdr=fdr)
    with pytest.raises(ValueError, match="no network among rows"):
        SparsePrecision(alpha=0.5).fit(data.Y).edges("rows")
    unnamed = MNPCA(2, **QUICK).fit(data.Y[:60])
    with pytest.raises(ValueError, match="same rows"):
        compare_edges(model, unnamed, "rows")
    with pytest.raises(ValueError, match="different names"):
        compare_edges(model, unnamed)
    with pytest.raises(ValueError, match="training matrix"):
        edge_stability(model, data.Y.T)
    with pytest.raises(ValueError, match="n_splits"):
        edge_stability(model, data.Y, n_splits=0)


def test_a_model_of_an_earlier_version_says_what_to_do():
    old = mnpca.load("tests/data/schema1-MNPCA.mnpca")
    with pytest.raises(ValueError, match="Fit it again"):
        old.edges("rows")
    assert old.noise_graph("rows").number_of_nodes() == len(old.low_rank_.left)


def test_data_outside_memory_have_no_tests(data, tmp_path):
    np.save(tmp_path / "data.npy", data.Y)
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    model = MNPCA(2, **QUICK).fit(mapped)
    assert model.noise_graph("rows").number_of_edges() > 0
    with pytest.raises(ValueError, match="Fit it again, to a NumPy array"):
        model.edges("rows")


def test_stability_is_the_share_of_halves(model, data):
    told = []
    table = edge_stability(model, data.Y, "columns", n_splits=2, callback=told.append)
    assert [each.iteration for each in told] == [1, 2]
    assert table.columns.tolist() == [*COLUMNS, "stability"]
    assert set(table["stability"]) <= {0.0, 0.5, 1.0}
    half = len(table) // 2
    assert table["stability"][:half].mean() > table["stability"][half:].mean()


def test_differences_of_two_groups():
    network = np.eye(40)
    for i in range(0, 20, 2):
        network[i, i + 1] = network[i + 1, i] = -0.5
    changed = network.copy()
    changed[0, 1] = changed[1, 0] = changed[2, 3] = changed[3, 2] = 0.0
    one, same, other = (
        MNPCA(1, **QUICK).fit(
            make_low_rank_matrix_normal(
                300, 40, 1, row_precision=np.eye(300), col_precision=each, random_state=seed
            ).Y
        )
        for seed, each in enumerate((network, network, changed))
    )
    assert len(compare_edges(one, same)) == 0
    table = compare_edges(one, other)
    assert set(zip(table["node_1"], table["node_2"], strict=True)) == {(0, 1), (2, 3)}
    assert (table["partial_correlation_a"] > 0.3).all()
    assert (table["difference"] < -0.3).all()
    np.testing.assert_allclose(
        table["difference"], table["partial_correlation_b"] - table["partial_correlation_a"]
    )
    white = MNPCA(1, noise="identity", prior="gaussian").fit(
        np.random.default_rng(3).normal(size=(300, 40))
    )
    with pytest.raises(ValueError, match=r'in model_b.*noise="graph"'):
        compare_edges(one, white)
    swapped = compare_edges(other, one)
    np.testing.assert_allclose(swapped["z"], -table["z"])


def test_sparse_precision_has_the_same_methods():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    model = SparsePrecision().fit(X)
    table = model.edges()
    assert set(zip(table["node_1"], table["node_2"], strict=True)) == {(0, 1), (1, 2)}
    assert model.noise_graph(fdr=0.05).number_of_edges() == 2
    assert model.noise_graph().number_of_edges() == (model.precision_.nnz - 30) // 2
    stability = edge_stability(model, X, 1, n_splits=3)
    assert (stability["stability"] == 1.0).all()
    pd.testing.assert_frame_equal(edge_stability(model, X, n_splits=3), stability)
    assert len(compare_edges(model, SparsePrecision().fit(rng.permutation(X)))) == 0
