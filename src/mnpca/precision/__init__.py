"""Sparse precision estimation: screening, block descent, certificate, path, refit."""

from mnpca.precision.choice import Choice, choose_penalty
from mnpca.precision.path import sparse_precision_path
from mnpca.precision.problem import NotCertifiedError
from mnpca.precision.refit import refit_on_support
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import sparse_precision

__all__ = [
    "Choice",
    "NotCertifiedError",
    "PrecisionResult",
    "choose_penalty",
    "refit_on_support",
    "sparse_precision",
    "sparse_precision_path",
]
