"""What the estimators are compared with."""

from mnpca.baselines.gplvm import GPLVM
from mnpca.baselines.lssvm import LSSVMClassifier
from mnpca.baselines.ppca import PPCA

__all__ = ["GPLVM", "PPCA", "LSSVMClassifier"]
