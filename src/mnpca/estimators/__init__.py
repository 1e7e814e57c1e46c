"""The scikit-learn face: parameters, validation, fitted attributes. No numerics."""

from mnpca.estimators.folding import DimensionFoldingPCA
from mnpca.estimators.generalized_pca import GeneralizedPCA
from mnpca.estimators.likelihood import LikelihoodMNPCA
from mnpca.estimators.mnpca import MNPCA
from mnpca.estimators.sparse_precision import SparsePrecision
from mnpca.estimators.tensor import TensorMNPCA
from mnpca.estimators.wasserstein import WassersteinMNPCA

__all__ = [
    "MNPCA",
    "DimensionFoldingPCA",
    "GeneralizedPCA",
    "LikelihoodMNPCA",
    "SparsePrecision",
    "TensorMNPCA",
    "WassersteinMNPCA",
]
