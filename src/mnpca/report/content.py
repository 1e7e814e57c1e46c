"""Everything the report shows, as one plain document that fits in JSON."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mnpca.diagnostics import (
    SHOWN_RATE,
    communities,
    drawing,
    histograms,
    item_names,
    joined_order,
    learned_groups,
    named_rows,
    residual_correlations,
    scree,
    shown_rate,
    tested_edges,
    training_view,
)
from mnpca.engines.arrays import on_host
from mnpca.report.words import cards, conclusions, settings, story, versions

#: Version of the document; a report is only rendered from one it knows.
SCHEMA = 2
#: Points drawn, components offered and characters of a name, at most.
MAX_POINTS, MAX_COMPONENTS, MAX_NAME = 4000, 10, 300
#: More groups than colors: the smaller ones share a color. Numbers with more values than levels are
#: shown on a scale.
MAX_GROUPS, MAX_LEVELS = 9, 12
#: Edges drawn and listed, names that can be searched, and the side of the heat map.
DRAWN_EDGES, LISTED_EDGES, MAX_ITEMS, HEAT_BINS = 300, 2000, 20_000, 240
#: The slider goes up to this false discovery rate, or to that of the network.
MAX_RATE = 0.2


def collect(
    model,
    X,
    *,
    labels=None,
    label_name=None,
    column_labels=None,
    fdr=SHOWN_RATE,
    scaled=False,
    source=None,
    notes=(),
    seconds=None,
):
    """Gather what the report shows about a fit.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators of low-rank signal and noise networks.
    X : array-like of shape (n, p)
        The training data.
    labels : array of shape (n,), default=None
        Group or value of each row, for colors and order; by default the groups that the fit
        learned, where there are any.
    label_name : str, default=None
        What the labels are.
    column_labels : array of shape (p,), default=None
        Group of each column, for colors and order of their network.
    fdr : float, default=0.05
        False discovery rate of the networks, where the model tests its edges.
    scaled : bool, default=False
        Compare with PCA of the columns scaled to unit variance.
    source : str, default=None
        Where the data came from.
    notes : sequence of str, default=()
        Remarks on the data or the fit.
    seconds : float, default=None
        How long the fit took.

    Returns
    -------
    dict
        A document of plain values; see `render`.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.GeneralizedPCA(2, col_metric=data.col_precision).fit(data.Y)
    >>> document = mnpca.report.collect(model, data.Y, labels=data.labels, label_name="group")
    >>> document["schema"]
    2
    """
    check_is_fitted(model)
    if not hasattr(model, "components_"):
        raise TypeError(f"{type(model).__name__} has no components, so there is no report of it.")
    given = np.asarray(on_host(X), dtype=float)
    model, X = training_view(model, given)
    if labels is None:
        labels = learned_groups(model, "rows")
        label_name = None if labels is None else "learned group"
    if column_labels is None:
        column_labels = learned_groups(model, "columns")
    labels = _checked(labels, "labels", len(X), "row")
    column_labels = _checked(column_labels, "column_labels", X.shape[1], "column")
    document = {
        "schema": SCHEMA,
        "source": None if source is None else str(source),
        "shape": list(X.shape),
        "label_name": None if label_name is None else str(label_name),
        "notes": [str(note) for note in notes],
        "scores": scores_section(model, X, np.isnan(given), labels, scaled),
        "loadings": loadings_section(model),
        "scree": scree_section(model, X),
        "networks": {
            "rows": network_section(model, "rows", labels, fdr),
            "columns": network_section(model, "columns", column_labels, fdr),
        },
        "noise": noise_section(model),
        "whiteness": whiteness_section(model, X),
        "convergence": convergence_section(model),
        "settings": settings(model, scaled),
        "versions": versions(),
    }
    document["story"] = story(document)
    document["cards"] = cards(document, seconds)
    document["conclusions"] = conclusions(document)
    return document


def _checked(labels, name, count, item):
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.shape != (count,):
        raise ValueError(f"{name} must be {count} values, one per {item}, and have {labels.shape}.")
    return labels


def scores_section(model, X, missing, labels, scaled):
    """Return scores of (at most 4000 evenly spread) rows under both methods.

    X is complete; what was `missing` in it does not count in the scores of the model.
    """
    chosen = np.linspace(0, len(X) - 1, min(len(X), MAX_POINTS)).astype(int)
    count = min(int(model.n_components_), MAX_COMPONENTS)
    names = item_names(model, "rows")
    observed = np.where(missing[chosen], np.nan, X[chosen])
    scores = model.transform(named_rows(model, observed)) if count else np.empty((0, 0))
    return {
        "n_rows": len(X),
        "names": [names[i][:MAX_NAME] for i in chosen],
        "named": hasattr(model, "sample_names_in_"),
        "labels": None if labels is None else describe_labels(labels[chosen]),
        "mnpca": short(np.asarray(scores)[:, :count].T) if count else [],
        "pca": short(_pca_scores(X, max(count, 2), scaled)[chosen].T),
    }


def loadings_section(model, *, count=12):
    """Return, for each component, the features with the largest loadings.

    Where it is known, with the probability that a feature has next to no part in the signal.
    """
    names = item_names(model, "columns")
    zero = getattr(model, "priors_", {}).get("columns", {}).get("zero")
    tops = []
    for component in model.components_[:MAX_COMPONENTS]:
        top = np.argsort(-np.abs(component), kind="stable")[:count]
        known = [[] if zero is None else [short(zero[j])] for j in top]
        pairs = zip(top, known, strict=True)
        tops.append([[names[j][:MAX_NAME], short(component[j]), *more] for j, more in pairs])
    return {"n_columns": len(names), "components": tops}


def describe_labels(labels):
    """Return labels as groups with numbers, or as values on a scale; some may be missing."""
    values = _as_numbers(labels)
    if values is None:
        groups, code, size = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    else:
        numbers, code, size = np.unique(values, return_inverse=True, return_counts=True)
        if np.sum(np.isfinite(numbers)) > MAX_LEVELS:
            return {"kind": "values", "values": short(values)}
        groups = np.array(["" if np.isnan(number) else f"{number:.12g}" for number in numbers])
    if len(groups) <= MAX_GROUPS + 1:
        return {
            "kind": "groups",
            "names": [str(g)[:MAX_NAME] for g in groups],
            "code": code.tolist(),
        }
    kept = np.sort(np.argsort(-size, kind="stable")[:MAX_GROUPS])
    new_code = np.full(len(groups), MAX_GROUPS)
    new_code[kept] = np.arange(MAX_GROUPS)
    others = f"{len(groups) - MAX_GROUPS} other groups"
    return {
        "kind": "groups",
        "names": [str(groups[g])[:MAX_NAME] for g in kept] + [others],
        "code": new_code[code].tolist(),
    }


def _as_numbers(labels):
    """Return labels as numbers, NaN where there is none; None where they are not numbers."""
    if labels.dtype == bool:
        return None
    try:
        values = np.where(labels == "", np.nan, labels.astype(object)).astype(float)
    except (TypeError, ValueError):
        return None
    return None if np.isinf(values).any() or np.isnan(values).all() else values


def _pca_scores(X, count, scaled):
    count = min(count, *X.shape)
    data = StandardScaler().fit_transform(X) if scaled else X
    solver = "randomized" if count < min(X.shape) // 2 else "full"
    return PCA(count, svd_solver=solver, random_state=0).fit_transform(data)


def network_section(model, side, labels, fdr):
    """Return one network; `labels` order its heat map and color its nodes.

    Its figures are those of the rate `fdr`. The list of edges goes beyond it.
    """
    rate, max_rate = shown_rate(model, fdr), max(fdr, MAX_RATE)
    edges = tested_edges(model, side, rate)
    offered = edges if rate is None else tested_edges(model, side, max_rate)
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
        "max_rate": max_rate,
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
    order, place = joined_order(edges, community, None if groups is None else groups["code"])
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
    nodes, places, first, second = drawing(edges.first[drawn], edges.second[drawn])
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


def scree_section(model, X):
    """Return the leading singular values in units of the noise edge."""
    values = scree(model, X)
    return {
        "generalized": short(values.generalized),
        "plain": short(values.plain),
        "kept": values.n_components,
        "requested": str(model.get_params(deep=False).get("n_components")),
        "trials": [
            {"rank": int(trial["n_components"]), "evidence": short(trial["evidence"], 7)}
            for trial in getattr(model, "rank_path_", None) or []
        ],
    }


def whiteness_section(model, X):
    """Return histograms of the residual's correlations and singular values, before and after."""
    both = residual_correlations(model, X)
    shape = both[0].shape
    section = {"shape": list(shape), "thinned": shape != X.shape}
    for side in ("rows", "columns"):
        section[side] = _histograms(*both, side)
        section[side]["beyond"] = short([each.share_above(side) for each in both], 3)
    edge = float(np.sum(np.sqrt(shape)))
    section["values"] = _histograms(*both, "singular values") | {
        "edge": short(edge),
        "largest": short([each.singular_values[0] for each in both]),
    }
    return section


def _histograms(before, after, kind):
    compared = histograms(before, after, kind)._asdict()
    return {name: short(values) for name, values in compared.items()}


def noise_section(model):
    """Return what the estimator itself says about its noise model, where it does."""
    noise, check = getattr(model, "noise_", None), getattr(model, "model_check_", None)
    return {
        "structures": {} if noise is None else {name: s["structure"] for name, s in noise.items()},
        "why": {} if noise is None else {name: side["why"] for name, side in noise.items()},
        "choice": getattr(model, "choice_", None),
        "white": None if check is None else check["white"],
        "advice": None if check is None else str(check["advice"]),
    }


def convergence_section(model):
    """Return the objective's history."""
    return {
        "objective": short(np.asarray(getattr(model, "objective_history_", [])), 7),
        "n_iter": int(getattr(model, "n_iter_", 0)),
        "converged": bool(getattr(model, "converged_", True)),
        "starts": [
            {
                "name": str(start["name"]),
                "n_components": int(start["n_components"]),
                "evidence": short(start["evidence"], 7),
                "row_edges": int(start["n_row_edges"]),
                "col_edges": int(start["n_col_edges"]),
            }
            for start in getattr(model, "candidates_", None) or []
        ],
    }


def short(values, digits=4):
    """Return numbers with so many significant digits, as plain lists; NaN becomes None."""
    if np.ndim(values):
        return [short(value, digits) for value in np.asarray(values, dtype=float).tolist()]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None
