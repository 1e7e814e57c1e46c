"""Networks for other programs."""

import networkx as nx
import numpy as np
from tests.known import known_fit

from mnpca.interop.networkx import to_networkx, write_graphml


def test_names_weights_and_communities():
    _, _, model = known_fit()
    graph = to_networkx(model, "columns")
    assert [graph.nodes[i]["name"] for i in range(3)] == ["feature 0", "feature 1", "feature 2"]
    precision = model.col_precision_.toarray()
    for i, j, edge in graph.edges(data=True):
        expected = -precision[i, j] / np.sqrt(precision[i, i] * precision[j, j])
        np.testing.assert_allclose(edge["partial_correlation"], expected)
        np.testing.assert_allclose(edge["weight"], abs(expected))
        assert graph.nodes[i]["community"] >= 0
    lonely = [i for i, degree in graph.degree() if degree == 0]
    assert {graph.nodes[i]["community"] for i in lonely} <= {-1}


def test_graphml_round_trip_with_names_that_xml_cannot_hold(tmp_path):
    names = ["<a & b>", "null\0byte", "emoji 🧬", "\ud800 lone"] + [f"f{j}" for j in range(36)]
    _, _, model = known_fit(column_names=names)
    write_graphml(model, "columns", tmp_path / "g.graphml")
    graph = nx.read_graphml(tmp_path / "g.graphml")
    assert [graph.nodes[str(i)]["name"] for i in range(4)] == [
        "<a & b>",
        "null?byte",
        "emoji 🧬",
        "? lone",
    ]
    assert graph.number_of_edges() == model.noise_graph("columns").number_of_edges()
