"""Noise networks as networkx graphs with names, weights and communities; GraphML.

The examples take a fitted ``model`` for granted.
"""

import re

from mnpca.diagnostics import communities, tested_edges
from mnpca.persistence import atomic_write

# Characters that XML 1.0 cannot hold in any form.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


__all__ = ["to_networkx", "write_graphml"]


def to_networkx(model, side, *, fdr=None):
    """Return a noise network with communities.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators.
    side : {"rows", "columns"} or int
        Samples or features; the number of an axis for a `TensorMNPCA`.
    fdr : float, default=None
        False discovery rate of a network of tested edges, where the model has tests. None is the
        network that the fit uses.

    Returns
    -------
    networkx.Graph
        Nodes are positions and carry ``name`` and ``community`` (-1 without an edge); edges carry
        what `noise_graph` gives them and ``weight``, the size of the partial correlation.

    Examples
    --------
    >>> from mnpca.interop.networkx import to_networkx
    >>> graph = to_networkx(model, "columns")
    >>> graph.number_of_nodes(), sorted(graph.nodes[0])
    (40, ['community', 'name'])
    """
    graph = model.noise_graph(side) if fdr is None else model.noise_graph(side, fdr=fdr)
    edges = tested_edges(model, side, fdr)
    for node, community in enumerate(communities(edges).tolist()):
        graph.nodes[node]["community"] = community
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = abs(edge["partial_correlation"])
    return graph


def write_graphml(model, side, path, *, fdr=None):
    """Write a noise network as GraphML, for Gephi, Cytoscape, igraph and others.

    Parameters are those of `to_networkx`.

    Examples
    --------
    >>> from mnpca.interop.networkx import write_graphml
    >>> write_graphml(model, "columns", "columns.graphml")
    """
    import networkx as nx

    graph = to_networkx(model, side, fdr=fdr)
    for _, node in graph.nodes(data=True):
        node["name"] = _NOT_XML.sub("?", node["name"])
    with atomic_write(path) as stream:
        nx.write_graphml_xml(graph, stream)
