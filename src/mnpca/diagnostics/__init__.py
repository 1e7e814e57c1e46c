"""What a fit says about its data, as arrays: networks, whiteness, scree. Drawn by plots, report."""

from mnpca.diagnostics.networks import (
    Edges,
    communities,
    item_names,
    named_rows,
    network_edges,
    network_order,
    shown_rate,
    tested_edges,
)
from mnpca.diagnostics.residual import Correlations, correlations, marchenko_pastur, whiten
from mnpca.diagnostics.spectrum import Scree, scree
from mnpca.diagnostics.training import training_view

__all__ = [
    "Correlations",
    "Edges",
    "Scree",
    "communities",
    "correlations",
    "item_names",
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
