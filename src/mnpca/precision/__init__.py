"""Sparse precision estimation: screening, block descent, certificate, path, choice of penalty.

Block descent is the method. Where its certificate does not pass (a tiny penalty, few samples,
copies of a variable) the interior-point method certifies components of up to 100 variables. On a
device, where walking columns is slow, proximal gradient steps are tried first; problems that take
too many of them come to the processor.
"""

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
