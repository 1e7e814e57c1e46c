"""Noise networks as networkx graphs with names, weights and communities; GraphML."""

import re

from mnpca.diagnostics import communities, network_edges
from mnpca.persistence import atomic_write

# Characters that XML 1.0 cannot hold in any form.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(model, side):
    """Return a noise network with communities.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators.
    side : {"rows", "columns"} or int
        Samples or features; the number of an axis for a `TensorMNPCA`.

    Returns
    -------
    networkx.Graph
        Nodes are positions and carry ``name`` and ``community`` (-1 without an edge); edges carry
        ``precision``, ``partial_correlation`` and ``weight``, its absolute value.

    Examples
    --------
    >>> from mnpca import LikelihoodMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.interop.networkx import to_networkx
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> model = LikelihoodMNPCA(n_components=2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    >>> graph = to_networkx(model, "columns")
    >>> graph.number_of_nodes(), sorted(graph.nodes[0])
    (30, ['community', 'name'])
    """
    graph = model.noise_graph(side)
    for node, community in enumerate(communities(network_edges(model, side)).tolist()):
        graph.nodes[node]["community"] = community
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = abs(edge["partial_correlation"])
    return graph


def write_graphml(model, side, path):
    """Write a noise network as GraphML, for Gephi, Cytoscape, igraph and others."""
    import networkx as nx

    graph = to_networkx(model, side)
    for _, node in graph.nodes(data=True):
        node["name"] = _NOT_XML.sub("?", node["name"])
    with atomic_write(path) as stream:
        nx.write_graphml_xml(graph, stream)
