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
#: The slider goes up to this false discovery rate.
MAX_RATE = 0.2


def network_section(model, side, labels):
    """Return one network; `labels` order its heat map and color its nodes.

    Its figures are those of the rate that the report shows. The list of edges goes beyond it.
    """
    rate = shown_rate(model)
    edges = tested_edges(model, side, rate)
    offered = edges if rate is None else tested_edges(model, side, MAX_RATE)
    size = np.abs(offered.partial_correlation)
    listed = np.argsort(-size) if rate is None else np.lexsort((-size, offered.q))
    listed = listed[:LISTED_EDGES]
    names = item_names(model, side)
    community = communities(edges)
    groups = None if labels is None else describe_labels(labels)
    if groups is not None and groups["kind"] != "groups":
        groups = None
    return {
        "n_items": edges.n_items,
        "n_edges": len(edges),
        "n_offered": len(offered),
        "fdr": edges.fdr,
        "max_rate": MAX_RATE,
        "n_isolated": int(np.sum(edges.degree() == 0)),
        "n_communities": int(community.max(initial=-1) + 1),
        "ordered_by": "community" if groups is None else "label",
        "within": None if groups is None else _within(edges, np.asarray(groups["code"])),
        "names": [name[:MAX_NAME] for name in names[:MAX_ITEMS]],
        "named": hasattr(model, "sample_names_in_" if side == "rows" else "feature_names_in_"),
        "degree": edges.degree()[:MAX_ITEMS].tolist(),
        "edges": [
            offered.first[listed].tolist(),
            offered.second[listed].tolist(),
            short(offered.partial_correlation[listed], 3),
        ],
        "q": None if rate is None else short(offered.q[listed], 3),
        "heat": _heat(edges, community, groups),
        "drawing": _drawing(offered, listed[:DRAWN_EDGES], community, groups),
    }


def _within(edges, code):
    """Return the share of edges, and of all pairs, that join two items of one label."""
    size = np.bincount(code)
    pairs = np.sum(size * (size - 1)) / max(len(code) * (len(code) - 1), 1)
    return short([np.mean(code[edges.first] == code[edges.second]) if len(edges) else 0, pairs], 3)


def _heat(edges, community, groups):
    """Return the strongest partial correlation of each cell of a square grid of joined items."""
    order = network_order(community, None if groups is None else groups["code"])
    order = order[edges.degree()[order] > 0]
    place = np.zeros(edges.n_items, dtype=int)
    place[order] = np.arange(len(order))
    bins = min(len(order), HEAT_BINS)
    cell = place * bins // max(len(order), 1)
    first, second = cell[edges.first], cell[edges.second]
    at = np.minimum(first, second) * bins + np.maximum(first, second)
    # Edges come strongest first, so the first edge of a cell is the one to show.
    cells, strongest = np.unique(at, return_index=True)
    value = np.round(100 * edges.partial_correlation[strongest]).astype(int)
    heat = {
        "bins": bins,
        "first": (cells // max(bins, 1)).tolist(),
        "second": (cells % max(bins, 1)).tolist(),
        "percent": value.tolist(),
        "order": order.tolist(),
    }
    if groups is not None:
        heat["bands"] = np.asarray(groups["code"])[order].tolist()
    return heat


def _drawing(edges, drawn, community, groups):
    """Return places and groups of the nodes of the drawn edges."""
    ends = np.concatenate([edges.first[drawn], edges.second[drawn]])
    nodes, ends = np.unique(ends, return_inverse=True)
    first, second = ends[: len(drawn)], ends[len(drawn) :]
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
