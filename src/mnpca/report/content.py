"""Everything the report shows, as one plain document that fits in JSON.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

import datetime
import importlib.metadata
import platform

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mnpca import __version__
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
from mnpca.report.render import SCHEMA, cards, render, story, write_text

#: Points drawn, components offered and characters of a name, at most.
MAX_POINTS, MAX_COMPONENTS, MAX_NAME = 4000, 10, 300
#: More groups than colors: the smaller ones share a color. Numbers with more values than levels are
#: shown on a scale.
MAX_GROUPS, MAX_LEVELS = 9, 12
#: Edges drawn and listed, names that can be searched, and the side of the heat map.
DRAWN_EDGES, LISTED_EDGES, MAX_ITEMS, HEAT_BINS = 300, 2000, 20_000, 240
#: The slider goes up to this false discovery rate, or to that of the network.
MAX_RATE = 0.2
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def write_report(model, X, path, **details):
    """Write the report of a fit as one HTML file.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators.
    X : array-like of shape (n, p)
        The training data.
    path : path-like
        Where to write; an existing file is replaced.
    **details
        See `collect`: labels, label_name, source, notes, ...

    Returns
    -------
    dict
        The report's document.

    Examples
    --------
    >>> import os, tempfile
    >>> from mnpca.report import write_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     document = write_report(model, X, path, source="my data")
    ...     os.path.getsize(path) < 8e6
    True
    """
    document = collect(model, X, **details)
    write_text(path, render(document))
    return document


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
    >>> document = mnpca.report.collect(model, X, source="my data")
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
        "scores": _scores(model, X, np.isnan(given), labels, scaled),
        "loadings": _loadings(model),
        "scree": _scree(model, X),
        "networks": {
            "rows": _network(model, "rows", labels, fdr),
            "columns": _network(model, "columns", column_labels, fdr),
        },
        "noise": _noise(model),
        "whiteness": _whiteness(model, X),
        "convergence": _convergence(model),
        "settings": _settings(model, scaled),
        "versions": versions(),
    }
    return document | {"story": story(document), "cards": cards(document, seconds)}


def _checked(labels, name, count, item):
    if labels is None:
        return None
    labels = np.asarray(labels)
    if labels.shape != (count,):
        raise ValueError(f"{name} must be {count} values, one per {item}, and have {labels.shape}.")
    return labels


def _scores(model, X, missing, labels, scaled):
    """Return scores of (at most 4000 evenly spread) rows under both methods.

    X is complete; what was `missing` in it does not count in the scores of the model.
    """
    chosen = np.linspace(0, len(X) - 1, min(len(X), MAX_POINTS)).astype(int)
    count = min(int(model.n_components_), MAX_COMPONENTS)
    names = item_names(model, "rows")
    ours, agreement = [], None
    if count:
        observed = np.where(missing[chosen], np.nan, X[chosen])
        ours = short(np.asarray(model.transform(named_rows(model, observed)))[:, :count].T)
    rank = min(max(count, 2), *X.shape)
    solver = "randomized" if rank < min(X.shape) // 2 else "full"
    pca = PCA(rank, svd_solver=solver, random_state=0)
    theirs = pca.fit_transform(StandardScaler().fit_transform(X) if scaled else X)
    theirs = short(theirs[chosen].T)
    if count:  # the smallest canonical correlation of the two pictures
        pictures = (np.array(scores[:2], dtype=float).T for scores in (ours, theirs))
        one, other = (np.linalg.qr(x - x.mean(axis=0))[0] for x in pictures)
        agreement = short(np.linalg.svd(one.T @ other, compute_uv=False)[-1])
    return {
        "n_rows": len(X),
        "names": [names[i][:MAX_NAME] for i in chosen],
        "named": hasattr(model, "sample_names_in_"),
        "labels": None if labels is None else describe_labels(labels[chosen]),
        "mnpca": ours,
        "pca": theirs,
        "agreement": agreement,
    }


def _loadings(model, *, count=12):
    """Return, for each component, the features with the largest loadings.

    Where it is known, with the probability that a feature has next to no part in the signal.
    """
    names = item_names(model, "columns")
    zero = getattr(model, "priors_", {}).get("columns", {}).get("zero")
    tops = []
    for component in model.components_[:MAX_COMPONENTS]:
        top = np.argsort(-np.abs(component), kind="stable")[:count]
        tops.append([[names[j][:MAX_NAME], short(component[j])] for j in top])
        if zero is not None:
            tops[-1] = [[*each, short(zero[j])] for each, j in zip(tops[-1], top, strict=True)]
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
    others = []
    if len(groups) > MAX_GROUPS + 1:  # the smaller ones share a number
        kept = np.sort(np.argsort(-size, kind="stable")[:MAX_GROUPS])
        others = [f"{len(groups) - MAX_GROUPS} other groups"]
        new_code = np.full(len(groups), MAX_GROUPS)
        new_code[kept] = np.arange(MAX_GROUPS)
        groups, code = groups[kept], new_code[code]
    names = [str(group)[:MAX_NAME] for group in groups] + others
    return {"kind": "groups", "names": names, "code": code.tolist()}


def _as_numbers(labels):
    """Return labels as numbers, NaN where there is none; None where they are not numbers."""
    if labels.dtype == bool:
        return None
    try:
        values = np.where(labels == "", np.nan, labels.astype(object)).astype(float)
    except (TypeError, ValueError):
        return None
    return None if np.isinf(values).any() or np.isnan(values).all() else values


def _network(model, side, labels, fdr):
    """Return one network; `labels` order its heat map and color its nodes.

    Its figures are those of the rate `fdr`. The list of edges goes beyond it.
    """
    rate, max_rate = shown_rate(model, fdr), max(fdr, MAX_RATE)
    edges = tested_edges(model, side, rate)
    offered = edges if rate is None else tested_edges(model, side, max_rate)
    size = np.abs(offered.partial_correlation)
    ranked = np.argsort(-size) if rate is None else np.lexsort((-size, offered.q))
    ranked = ranked[:LISTED_EDGES]
    community, degree = communities(edges), edges.degree()
    groups = None if labels is None else describe_labels(labels)
    groups = groups if groups and groups["kind"] == "groups" else None
    code = None if groups is None else np.asarray(groups["code"])
    drawn = ranked[:DRAWN_EDGES]
    nodes, places, first, second = drawing(offered.first[drawn], offered.second[drawn])
    return {
        "n_items": edges.n_items,
        "n_edges": len(edges),
        "n_offered": len(offered),
        "fdr": edges.fdr,
        "max_rate": max_rate,
        "n_isolated": int(np.sum(degree == 0)),
        "n_communities": int(community.max(initial=-1) + 1),
        "ordered_by": "community" if groups is None else "label",
        "within": None if groups is None else _within(edges, code),
        "names": [name[:MAX_NAME] for name in item_names(model, side)[:MAX_ITEMS]],
        "named": hasattr(model, "sample_names_in_" if side == "rows" else "feature_names_in_"),
        "degree": degree[:MAX_ITEMS].tolist(),
        "edges": [
            offered.first[ranked].tolist(),
            offered.second[ranked].tolist(),
            short(offered.partial_correlation[ranked], 3),
        ],
        "q": None if rate is None else short(offered.q[ranked], 3),
        "heat": _heat(edges, community, code),
        "drawing": {
            "node": nodes.tolist(),
            "x": short(places[:, 0], 3),
            "y": short(places[:, 1], 3),
            "group": (community if groups is None else code)[nodes].tolist(),
            "groups": None if groups is None else groups["names"],
            "first": first.tolist(),
            "second": second.tolist(),
        },
    }


def _within(edges, code):
    """Return the share of edges, and of all pairs, that join two items of one label."""
    size = np.bincount(code)
    pairs = np.sum(size * (size - 1)) / max(len(code) * (len(code) - 1), 1)
    return short([np.mean(code[edges.first] == code[edges.second]) if len(edges) else 0, pairs], 3)


def _heat(edges, community, code):
    """Return the strongest partial correlation of each cell of a square grid of joined items."""
    order, place = joined_order(edges, community, code)
    bins = min(len(order), HEAT_BINS)
    cell = place * bins // max(len(order), 1)
    first, second = cell[edges.first], cell[edges.second]
    at = np.minimum(first, second) * bins + np.maximum(first, second)
    # Edges come strongest first, so the first edge of a cell is the one to show.
    cells, strongest = np.unique(at, return_index=True)
    heat = {
        "bins": bins,
        "first": (cells // max(bins, 1)).tolist(),
        "second": (cells % max(bins, 1)).tolist(),
        "percent": np.round(100 * edges.partial_correlation[strongest]).astype(int).tolist(),
        "order": order.tolist(),
    }
    return heat if code is None else heat | {"bands": code[order].tolist()}


def _scree(model, X):
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


def _whiteness(model, X):
    """Return histograms of the residual's correlations and singular values, before and after."""
    both = residual_correlations(model, X)
    shape = both[0].shape
    section = {"shape": list(shape), "thinned": shape != X.shape}
    for name, kind in (("rows", "rows"), ("columns", "columns"), ("values", "singular values")):
        compared = histograms(*both, kind)._asdict()
        section[name] = {part: short(values) for part, values in compared.items()}
    for side in ("rows", "columns"):
        section[side]["beyond"] = short([each.share_above(side) for each in both], 3)
    section["values"]["edge"] = short(float(np.sum(np.sqrt(shape))))
    section["values"]["largest"] = short([each.singular_values[0] for each in both])
    return section


def _noise(model):
    """Return what the estimator itself says about its noise model, where it does."""
    noise, check = getattr(model, "noise_", None) or {}, getattr(model, "model_check_", None)
    return {
        "structures": {name: side["structure"] for name, side in noise.items()},
        "why": {name: side["why"] for name, side in noise.items()},
        "choice": getattr(model, "choice_", None),
        "white": None if check is None else check["white"],
        "advice": None if check is None else str(check["advice"]),
    }


def _convergence(model):
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


def _settings(model, scaled):
    """Return the estimator's parameters as text."""
    params = {}
    for name, value in model.get_params(deep=False).items():
        text = "array" if hasattr(value, "shape") else str(value)
        params[name] = text if len(text) <= 80 else text[:77] + "..."
    params["columns scaled"] = "yes" if scaled else "no"
    return {"estimator": type(model).__name__, "params": params}


def versions():
    """Return the versions that made the report, and when."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    found = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"date": now, "mnpca": __version__, "Python": platform.python_version()} | found


def short(values, digits=4):
    """Return numbers with so many significant digits, as plain lists; NaN becomes None."""
    if np.ndim(values):
        return [short(value, digits) for value in np.asarray(values, dtype=float).tolist()]
    return float(f"{values:.{digits}g}") if np.isfinite(values) else None
