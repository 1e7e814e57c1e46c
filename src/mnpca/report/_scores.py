"""The scores: MN-PCA's beside PCA's, with names and labels; and the strongest loadings."""

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mnpca.diagnostics import item_names, named_rows
from mnpca.plots._scores import MAX_LEVELS
from mnpca.report._numbers import short

#: Points drawn and components offered at most.
MAX_POINTS = 4000
MAX_COMPONENTS = 10
#: More groups than colors: the smaller ones share a color.
MAX_GROUPS = 9
MAX_NAME = 300


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
    """Return, for each component, the features with the largest loadings."""
    names = item_names(model, "columns")
    tops = []
    for component in model.components_[:MAX_COMPONENTS]:
        top = np.argsort(-np.abs(component), kind="stable")[:count]
        tops.append([[names[j][:MAX_NAME], short(component[j])] for j in top])
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
