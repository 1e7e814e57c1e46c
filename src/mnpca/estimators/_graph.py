"""A fitted noise network as a networkx graph."""

import numpy as np
import scipy.sparse as sp


def partial_correlations(precision):
    """Return ``-P_ij / sqrt(P_ii P_jj)`` off the diagonal, as a sparse array without one."""
    scale = sp.diags_array(1.0 / np.sqrt(precision.diagonal()))
    correlation = sp.coo_array(-(scale @ precision @ scale))
    row, col = correlation.coords
    off_diagonal = (row != col) & (correlation.data != 0)
    return sp.coo_array(
        (correlation.data[off_diagonal], (row[off_diagonal], col[off_diagonal])),
        shape=precision.shape,
    )


def noise_graph(estimator, side):
    """Build the graph of one side; see ``MatrixNormalEstimator.noise_graph``."""
    import networkx as nx

    if side == "rows":
        precision = estimator.row_precision_
        names = getattr(estimator, "sample_names_in_", None)
    elif side == "columns":
        precision = estimator.col_precision_
        names = getattr(estimator, "feature_names_in_", None)
    else:
        raise ValueError(f'side must be "rows" or "columns", got {side!r}.')
    graph = nx.Graph()
    # Nodes are positions, names are attributes: names in data may repeat.
    for node in range(precision.shape[0]):
        graph.add_node(node, name=str(names[node]) if names is not None else str(node))
    entries = partial_correlations(precision)
    row, col = entries.coords
    for i, j, value in zip(row.tolist(), col.tolist(), entries.data.tolist(), strict=True):
        if i < j:
            graph.add_edge(i, j, precision=float(precision[i, j]), partial_correlation=value)
    return graph
