"""Sparse precision estimation: screening, block descent, certificate, path, choice of penalty."""

from mnpca.precision.choice import Choice, choose_penalty, criterion_along_path
from mnpca.precision.problem import NotCertifiedError
from mnpca.precision.result import PrecisionResult
from mnpca.precision.solve import sparse_precision, sparse_precision_path

__all__ = [
    "Choice",
    "NotCertifiedError",
    "PrecisionResult",
    "choose_penalty",
    "criterion_along_path",
    "sparse_precision",
    "sparse_precision_path",
]
