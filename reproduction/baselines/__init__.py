"""What the estimators are compared with."""

from reproduction.baselines.gplvm import GPLVM
from reproduction.baselines.lssvm import LSSVMClassifier
from reproduction.baselines.ppca import PPCA
from reproduction.baselines.predefined import PredefinedGPCA
from reproduction.baselines.program import ProgramMNPCA
from reproduction.baselines.registry import METHODS, make_reducer

__all__ = [
    "GPLVM",
    "METHODS",
    "PPCA",
    "LSSVMClassifier",
    "PredefinedGPCA",
    "ProgramMNPCA",
    "make_reducer",
]
