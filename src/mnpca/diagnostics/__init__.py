"""What a fit says about its data, as arrays: networks, whiteness, scree. Drawn by plots, report."""

from mnpca.diagnostics.networks import (
    Edges,
    communities,
    item_names,
    named_rows,
    network_edges,
    network_order,
)
from mnpca.diagnostics.residual import Whiteness, marchenko_pastur, whiten, whiteness
from mnpca.diagnostics.spectrum import Scree, scree

__all__ = [
    "Edges",
    "Scree",
    "Whiteness",
    "communities",
    "item_names",
    "marchenko_pastur",
    "named_rows",
    "network_edges",
    "network_order",
    "scree",
    "whiten",
    "whiteness",
]
