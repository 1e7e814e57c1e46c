"""A noise network as lists: its edges by strength, its communities, an order of its items."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mnpca._typing import IntArray
from mnpca.estimators._edges import partial_correlations, side_precision, side_tests

#: False discovery rate of the networks that the report and the exported tables show.
SHOWN_RATE = 0.05


@dataclass(frozen=True)
class Edges:
    """Edges of a network, the strongest first; each once, with ``first < second``.

    Attributes
    ----------
    first, second : integer arrays
        Positions of the two items.
    precision, partial_correlation : float arrays
        Entry of the precision matrix, and ``-P_ij / sqrt(P_ii P_jj)``.
    n_items : int
        Number of items of the network, joined or not.
    fdr : float or None
        False discovery rate of the network; None where the edges are those of the fit.
    standard_error, p, q : float arrays or None
        Of the partial correlations; None where the edges are those of the fit. An edge that was
        found by its test and is none of the fit's has the precision 0.
    """

    first: np.ndarray
    second: np.ndarray
    precision: np.ndarray
    partial_correlation: np.ndarray
    n_items: int
    fdr: float | None = None
    standard_error: np.ndarray | None = None
    p: np.ndarray | None = None
    q: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.first)

    def strongest(self, count: int) -> "Edges":
        """Return the first `count` edges."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                values[name] = value[:count]
        return Edges(**values)

    def degree(self) -> IntArray:
        """Return the number of edges of each item."""
        return np.bincount(np.concatenate([self.first, self.second]), minlength=self.n_items)


def learned_groups(model: Any, side: str) -> Any:
    """Return the group of every row or column, named by its number; None where none was learned.

    The largest group is number 1.
    """
    groups = getattr(model, "priors_", {}).get(side, {}).get("groups")
    if groups is None:
        return None
    return np.array([f"group {number + 1}" for number in np.asarray(groups).argmax(axis=1)])


def named_rows(model: Any, X: Any) -> Any:
    """Give an array the column names of the training data, which ``transform`` compares."""
    if not hasattr(model, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=model.feature_names_in_)


def network_edges(model: Any, side: Any) -> Edges:
    """Return the edges of a noise network, sorted by the size of the partial correlation."""
    precision = side_precision(model, side)
    entries = partial_correlations(precision)
    row, col = entries.coords
    upper = row < col
    row, col, value = row[upper], col[upper], entries.data[upper]
    order = np.lexsort((col, row, -np.abs(value)))
    row, col = row[order], col[order]
    # The diagonal turns a partial correlation back into the entry of the precision.
    scale = np.sqrt(precision.diagonal())
    return Edges(row, col, -value[order] * scale[row] * scale[col], value[order], len(scale))


def shown_rate(model: Any) -> float | None:
    """Return the false discovery rate of the network to show, None where there are no tests."""
    return None if getattr(model, "edge_tests_", None) is None else SHOWN_RATE


def tested_edges(model: Any, side: Any, fdr: float | None) -> Edges:
    """Return the tested edges with a false discovery rate; None gives the fit's edges.

    Tested edges too are sorted by the size of the partial correlation.
    """
    if fdr is None:
        return network_edges(model, side)
    precision, tests = side_precision(model, side), side_tests(model, side)
    kept = np.flatnonzero(tests.q <= fdr)
    size = np.abs(tests.partial_correlation[kept])
    kept = kept[np.lexsort((tests.second[kept], tests.first[kept], -size))]
    first, second = tests.first[kept], tests.second[kept]
    return Edges(
        first,
        second,
        # SciPy 1.13 has no empty selection.
        np.asarray(precision[first, second]).ravel() if len(kept) else np.zeros(0),
        tests.partial_correlation[kept],
        tests.n_items,
        fdr,
        tests.standard_error[kept],
        tests.p[kept],
        tests.q[kept],
    )


def communities(edges: Edges) -> IntArray:
    """Return the community of each item: densely joined groups, the largest numbered 0.

    Louvain's method on the sizes of the partial correlations; items without an edge get -1.
    """
    import networkx as nx

    graph = nx.Graph()
    weights = np.abs(edges.partial_correlation).tolist()
    graph.add_weighted_edges_from(
        zip(edges.first.tolist(), edges.second.tolist(), weights, strict=True)
    )
    label = np.full(edges.n_items, -1)
    groups = nx.community.louvain_communities(graph, seed=0) if len(edges) else []
    for number, group in enumerate(sorted(groups, key=lambda g: (-len(g), min(g)))):
        label[list(group)] = number
    return label


def network_order(community: IntArray, labels: Any = None) -> IntArray:
    """Return the order of items that shows blocks: by label if given, then by community."""
    last = np.where(community < 0, community.max(initial=0) + 1, community)
    if labels is None:
        return np.lexsort((np.arange(len(last)), last))
    _, label_number = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    return np.lexsort((np.arange(len(last)), last, label_number))
