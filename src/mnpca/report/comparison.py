"""Two fits side by side: components matched, edges gained and lost."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from mnpca.diagnostics import item_names, shown_rate, tested_edges
from mnpca.estimators._edges import compare_edges, side_tests
from mnpca.report.content import short, versions
from mnpca.report.render import render_page, write_text

#: Edges listed at most, of each kind.
LISTED_EDGES = 100
#: Congruences from which on two components count as the same, and as similar.
SAME, SIMILAR = 0.95, 0.85


def write_comparison(model_a, model_b, path, *, names=("first", "second")):
    """Write a page that compares two fits as one HTML file.

    Columns (and rows) are matched by name, or by position where the data had no names.

    Parameters
    ----------
    model_a, model_b : fitted estimators
        Two of the package's estimators, with columns in common.
    path : path-like
        Where to write; an existing file is replaced.
    names : pair of str, default=("first", "second")
        What the page calls the fits.

    Returns
    -------
    dict
        What the page shows: ``components`` (pairs with their absolute congruence) and ``networks``
        (edges in common, gained and lost among ``columns`` and ``rows``).

    Examples
    --------
    >>> import os, tempfile
    >>> from mnpca import GeneralizedPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.report import write_comparison
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> one, other = (GeneralizedPCA(k).fit(data.Y) for k in (2, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     document = write_comparison(one, other, os.path.join(folder, "compare.html"))
    >>> [pair["congruence"] for pair in document["components"]]
    [1.0, 1.0, None]
    """
    models = (model_a, model_b)
    for model in models:
        check_is_fitted(model)
    shared = _shared(models, "columns")
    if not len(shared[0]):
        raise ValueError("The two fits have no column in common, so there is nothing to compare.")
    document = {
        "names": [str(name) for name in names],
        "n_shared": len(shared[0]),
        "facts": [
            {
                "shape": [len(item_names(model, side)) for side in ("rows", "columns")],
                "n_components": int(model.n_components_),
                "n_edges": {side: len(_edges(model, side)) for side in ("columns", "rows")},
            }
            for model in models
        ],
        "components": _components(models, shared),
        "networks": {side: _network(models, side) for side in ("columns", "rows")},
        "version": versions()["mnpca"],
    }
    write_text(path, render_page("comparison.html.j2", document, "theme.js"))
    return document


def _shared(models, side):
    """Return the positions of the items that both fits have; none where a name is not unique."""
    names = [item_names(model, side) for model in models]
    places = [{name: i for i, name in enumerate(each)} for each in names]
    if any(len(place) < len(each) for place, each in zip(places, names, strict=True)):
        return [], []
    common = [name for name in names[0] if name in places[1]]
    return [places[0][name] for name in common], [places[1][name] for name in common]


def _edges(model, side):
    return tested_edges(model, side, shown_rate(model))


def _components(models, shared):
    """Match components so that the sum of absolute congruences is largest."""
    a, b = (np.asarray(m.components_)[:, at] for m, at in zip(models, shared, strict=True))
    size = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    congruence = np.abs(a @ b.T) / np.where(size > 0, size, 1.0)
    first, second = linear_sum_assignment(-congruence)
    pairs = []
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        value = congruence[i, j]
        verdict = "same" if value >= SAME else "similar" if value >= SIMILAR else "different"
        pairs.append((i + 1, j + 1, short(value, 3), verdict))
    for k in np.setdiff1d(np.arange(len(a)), first).tolist():
        pairs.append((k + 1, None, None, "no counterpart"))
    for k in np.setdiff1d(np.arange(len(b)), second).tolist():
        pairs.append((None, k + 1, None, "no counterpart"))
    names = ("first", "second", "congruence", "verdict")
    return [dict(zip(names, pair, strict=True)) for pair in pairs]


def _network(models, side):
    """Return the edges in common, gained and lost among the items that both fits have."""
    shared = _shared(models, side)
    names, found = item_names(models[0], side), []
    for model, places in zip(models, shared, strict=True):
        position = {place: k for k, place in enumerate(places)}
        edges = _edges(model, side)
        ends = zip(edges.first.tolist(), edges.second.tolist(), strict=True)
        correlations = short(edges.partial_correlation, 3)
        found.append(
            {
                tuple(sorted((position[i], position[j]))): correlation
                for (i, j), correlation in zip(ends, correlations, strict=True)
                if i in position and j in position
            }
        )
    before, after = found
    sure = _different(models, side)

    def listed(pairs, values):
        pairs = sorted(pairs, key=lambda pair: (pair not in sure, -abs(values[pair])))
        return [
            [*(names[shared[0][k]] for k in pair), values[pair], pair in sure]
            for pair in pairs[:LISTED_EDGES]
        ]

    lost, gained = before.keys() - after.keys(), after.keys() - before.keys()
    return {
        "n_shared": len(shared[0]),
        "n_common": len(before.keys() & after.keys()),
        "n_lost": len(lost),
        "n_gained": len(gained),
        "n_different": len(sure),
        "lost": listed(lost, before),
        "gained": listed(gained, after),
    }


def _different(models, side):
    """Return the pairs whose partial correlations differ, by a test, where there is one."""
    if any(shown_rate(m) is None or not len(side_tests(m, side).first) for m in models):
        return set()
    if item_names(models[0], side) != item_names(models[1], side):
        return set()
    table = compare_edges(*models, side, fdr=shown_rate(models[0]))
    return set(zip(table["node_1"].tolist(), table["node_2"].tolist(), strict=True))
