"""A fitted noise network as a networkx graph."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator


def partial_correlations(precision):
    """Return ``-P_ij / sqrt(P_ii P_jj)`` off the diagonal, as a sparse array without one.

    Metrics of generalized PCA need not be precisions; those that are none are refused.
    """
    if isinstance(precision, LinearOperator) or precision.diagonal().min() <= 0:
        raise ValueError("The metric of this side is not a positive definite matrix: no network.")
    scale = 1.0 / np.sqrt(precision.diagonal())
    entries = sp.coo_array(precision)
    row, col = entries.coords
    kept = (row != col) & (entries.data != 0)
    row, col = row[kept], col[kept]
    values = -entries.data[kept] * scale[row] * scale[col]
    return sp.coo_array((values, (row, col)), shape=precision.shape)


def noise_graph(estimator, side):
    """Build the graph of one side; see ``MatrixNormalEstimator.noise_graph``."""
    if side == "rows":
        precision = estimator.row_precision_
        names = getattr(estimator, "sample_names_in_", None)
    elif side == "columns":
        precision = estimator.col_precision_
        names = getattr(estimator, "feature_names_in_", None)
    else:
        raise ValueError(f'side must be "rows" or "columns", got {side!r}.')
    return precision_graph(precision, names)


def precision_graph(precision, names=None):
    """Build the graph of a sparse precision; nodes without names are called by their numbers."""
    import networkx as nx

    graph = nx.Graph()
    # Nodes are positions, names are attributes: names in data may repeat.
    for node in range(precision.shape[0]):
        graph.add_node(node, name=str(names[node]) if names is not None else str(node))
    upper = sp.triu(partial_correlations(precision), k=1).tocoo()
    row, col = upper.coords
    values = precision[row, col] if len(row) else []  # SciPy 1.13 has no empty selection
    for i, j, partial, value in zip(row, col, upper.data, values, strict=True):
        graph.add_edge(int(i), int(j), precision=float(value), partial_correlation=float(partial))
    return graph
