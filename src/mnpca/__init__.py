"""PCA for correlated noise: a low-rank signal and two sparse noise networks from one matrix."""

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
from mnpca.estimators._saving import load
from mnpca.model.whiteness import ModelCheckWarning
from mnpca.precision import sparse_precision, sparse_precision_path

__version__ = "0.1.0"

__all__ = [
    "MNPCA",
    "DimensionFoldingPCA",
    "GeneralizedPCA",
    "LikelihoodMNPCA",
    "ModelCheckWarning",
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
