"""PCA for correlated noise: a low-rank signal and two sparse noise networks from one matrix."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mnpca.estimators import (
        MNPCA,
        DimensionFoldingPCA,
        GeneralizedPCA,
        LikelihoodMNPCA,
        SparsePrecision,
        TensorMNPCA,
        WassersteinMNPCA,
    )
    from mnpca.estimators._edges import compare_edges, edge_stability
    from mnpca.estimators._files import CheckpointError
    from mnpca.estimators._load import load
    from mnpca.model.low_rank import LowRank
    from mnpca.model.whiteness import ModelCheckWarning
    from mnpca.persistence import ModelFileError
    from mnpca.precision import (
        NotCertifiedError,
        PrecisionResult,
        sparse_precision,
        sparse_precision_path,
    )
    from mnpca.solvers.progress import Progress

__version__ = "0.1.0"

__all__ = [
    "MNPCA",
    "CheckpointError",
    "DimensionFoldingPCA",
    "GeneralizedPCA",
    "LikelihoodMNPCA",
    "LowRank",
    "ModelCheckWarning",
    "ModelFileError",
    "NotCertifiedError",
    "PrecisionResult",
    "Progress",
    "SparsePrecision",
    "TensorMNPCA",
    "WassersteinMNPCA",
    "__version__",
    "compare_edges",
    "edge_stability",
    "load",
    "sparse_precision",
    "sparse_precision_path",
]

#: Where names outside `mnpca.estimators` come from; all are imported when they are first used.
_HOMES = {
    "CheckpointError": "mnpca.estimators._files",
    "LowRank": "mnpca.model.low_rank",
    "ModelCheckWarning": "mnpca.model.whiteness",
    "ModelFileError": "mnpca.persistence",
    "NotCertifiedError": "mnpca.precision",
    "PrecisionResult": "mnpca.precision",
    "Progress": "mnpca.solvers.progress",
    "compare_edges": "mnpca.estimators._edges",
    "edge_stability": "mnpca.estimators._edges",
    "load": "mnpca.estimators._load",
    "sparse_precision": "mnpca.precision",
    "sparse_precision_path": "mnpca.precision",
}
_ROOMS = {
    "datasets",
    "diagnostics",
    "estimators",
    "interop",
    "io",
    "metrics",
    "plots",
    "precision",
    "report",
}


def __getattr__(name):
    if name in __all__:
        value = getattr(importlib.import_module(_HOMES.get(name, "mnpca.estimators")), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"mnpca.{name}")
    else:
        raise AttributeError(f"module 'mnpca' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, *_ROOMS})
