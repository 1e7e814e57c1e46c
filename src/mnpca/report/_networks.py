"""A noise network: heat map, drawing of the strongest edges, table and search."""

import numpy as np

from mnpca.diagnostics import communities, item_names, network_order, shown_rate, tested_edges
from mnpca.plots import force_layout
from mnpca.report._numbers import short
from mnpca.report._scores import MAX_NAME, describe_labels

#: Edges drawn at most, listed at most, and the side of the heat map.
DRAWN_EDGES = 300
LISTED_EDGES = 2000
HEAT_BINS = 240
#: Names that can be searched.
MAX_ITEMS = 20_000


def network_section(model, side, labels):
    """Return one network; `labels` order its heat map and color its nodes."""
    edges = tested_edges(model, side, shown_rate(model))
    names = item_names(model, side)
    community = communities(edges)
    groups = None if labels is None else describe_labels(labels)
    if groups is not None and groups["kind"] != "groups":
        groups = None
    order = network_order(community, None if groups is None else groups["code"])
    listed = edges.strongest(LISTED_EDGES)
    return {
        "n_items": edges.n_items,
        "n_edges": len(edges),
        "fdr": edges.fdr,
        "n_isolated": int(np.sum(edges.degree() == 0)),
        "n_communities": int(community.max(initial=-1) + 1),
        "ordered_by": "community" if groups is None else "label",
        "names": [name[:MAX_NAME] for name in names[:MAX_ITEMS]],
        "named": hasattr(model, "sample_names_in_" if side == "rows" else "feature_names_in_"),
        "degree": edges.degree()[:MAX_ITEMS].tolist(),
        "edges": [
            listed.first.tolist(),
            listed.second.tolist(),
            short(listed.partial_correlation, 3),
        ],
        "q": None if listed.q is None else short(listed.q, 3),
        "heat": _heat(edges, order, groups),
        "drawing": _drawing(listed.strongest(DRAWN_EDGES), community, groups),
    }


def _heat(edges, order, groups):
    """Return the strongest partial correlation of each cell of a square grid."""
    bins = min(edges.n_items, HEAT_BINS)
    cell = np.argsort(order) * bins // edges.n_items
    first, second = cell[edges.first], cell[edges.second]
    at = np.minimum(first, second) * bins + np.maximum(first, second)
    # Edges come strongest first, so the first edge of a cell is the one to show.
    cells, strongest = np.unique(at, return_index=True)
    value = np.round(100 * edges.partial_correlation[strongest]).astype(int)
    heat = {
        "bins": bins,
        "first": (cells // bins).tolist(),
        "second": (cells % bins).tolist(),
        "percent": value.tolist(),
        "order": order.tolist() if edges.n_items <= MAX_ITEMS else [],
    }
    if groups is not None:
        heat["bands"] = np.asarray(groups["code"])[order].tolist()
        heat["band_names"] = groups["names"]
    return heat


def _drawing(edges, community, groups):
    """Return places and groups of the nodes of the strongest edges."""
    nodes, ends = np.unique(np.concatenate([edges.first, edges.second]), return_inverse=True)
    first, second = ends[: len(edges)], ends[len(edges) :]
    places = force_layout(first, second, len(nodes))
    group = community if groups is None else np.asarray(groups["code"])
    return {
        "node": nodes.tolist(),
        "x": short(places[:, 0], 3),
        "y": short(places[:, 1], 3),
        "group": group[nodes].tolist(),
        "groups": None if groups is None else groups["names"],
        "first": first.tolist(),
        "second": second.tolist(),
    }
