"""What a fit says about its data, as arrays: networks, whiteness, scree. Drawn by plots, report."""

from mnpca.diagnostics.networks import (
    Edges,
    communities,
    learned_groups,
    named_rows,
    network_edges,
    network_order,
    shown_rate,
    tested_edges,
)
from mnpca.diagnostics.residual import Correlations, Scree, correlations, scree, training_view
from mnpca.estimators._edges import item_names
from mnpca.model.whiteness import marchenko_pastur, whiten

__all__ = [
    "Correlations",
    "Edges",
    "Scree",
    "communities",
    "correlations",
    "item_names",
    "learned_groups",
    "marchenko_pastur",
    "named_rows",
    "network_edges",
    "network_order",
    "scree",
    "shown_rate",
    "tested_edges",
    "training_view",
    "whiten",
]
