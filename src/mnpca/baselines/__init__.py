"""What the estimators are compared with."""

from mnpca.baselines.gplvm import GPLVM
from mnpca.baselines.lssvm import LSSVMClassifier
from mnpca.baselines.ppca import PPCA
from mnpca.baselines.predefined import PredefinedGPCA
from mnpca.baselines.program import ProgramMNPCA
from mnpca.baselines.registry import METHODS, make_reducer

__all__ = [
    "GPLVM",
    "METHODS",
    "PPCA",
    "LSSVMClassifier",
    "PredefinedGPCA",
    "ProgramMNPCA",
    "make_reducer",
]
