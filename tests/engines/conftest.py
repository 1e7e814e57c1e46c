"""One fixture: the same test on every engine that is installed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Place:
    """A way to hold a matrix."""

    name: str
    put: Callable[[np.ndarray], Any]
    """Takes a NumPy matrix there."""
    tol: float
    """Relative accuracy of sums over the matrix."""


def _numpy(dtype):
    return Place(f"numpy {dtype}", lambda Y: Y.astype(dtype), _tolerance(dtype))


def _torch(dtype, device="cpu"):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    kind = getattr(torch, dtype)
    return Place(
        f"torch {device} {dtype}",
        lambda Y: torch.tensor(Y, dtype=kind, device=device),
        _tolerance(dtype),
    )


def _strict(dtype):
    xp = pytest.importorskip("array_api_strict")
    return Place(
        f"array-api-strict {dtype}",
        lambda Y: xp.asarray(Y.astype(dtype)),
        _tolerance(dtype),
    )


def _cupy(dtype):
    cupy = pytest.importorskip("cupy")
    return Place(f"cupy {dtype}", lambda Y: cupy.asarray(Y.astype(dtype)), _tolerance(dtype))


def _tolerance(dtype):
    return 1e-9 if dtype == "float64" else 1e-4


PLACES = {
    "numpy-float64": lambda: _numpy("float64"),
    "numpy-float32": lambda: _numpy("float32"),
    "torch-float64": lambda: _torch("float64"),
    "torch-float32": lambda: _torch("float32"),
    "strict-float64": lambda: _strict("float64"),
    "strict-float32": lambda: _strict("float32"),
    "cuda-float64": lambda: _torch("float64", "cuda"),
    "cuda-float32": lambda: _torch("float32", "cuda"),
    "cupy-float32": lambda: _cupy("float32"),
}


@pytest.fixture(params=list(PLACES))
def place(request):
    """Every installed place in turn; the others are skipped with a reason."""
    return PLACES[request.param]()
