"""Everything the report shows, as one plain document that fits in JSON."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca.diagnostics import learned_groups, training_view
from mnpca.estimators._array_api import on_host
from mnpca.report._facts import cards, conclusions, settings, story, versions
from mnpca.report._networks import network_section
from mnpca.report._residual import (
    convergence_section,
    noise_section,
    scree_section,
    whiteness_section,
)
from mnpca.report._scores import loadings_section, scores_section

#: Version of the document; a report is only rendered from one it knows.
SCHEMA = 2


def collect(
    model,
    X,
    *,
    labels=None,
    label_name=None,
    column_labels=None,
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
            "rows": network_section(model, "rows", labels),
            "columns": network_section(model, "columns", column_labels),
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
