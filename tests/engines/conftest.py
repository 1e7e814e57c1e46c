"""One fixture: the same test on every engine that is installed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp


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


def small_blocks(monkeypatch):
    """Make blocks of fourteen rows of twenty numbers, and tiles of seven."""
    monkeypatch.setattr("mnpca.engines.rows.BLOCK_BYTES", 4 * 20 * 14)
    monkeypatch.setattr("mnpca.engines.rows.BLOCK", 7)


def _memory_mapped(dtype, folder, monkeypatch):
    small_blocks(monkeypatch)

    def put(Y):
        path = folder / "Y.npy"
        np.save(path, Y.astype(dtype))
        return np.load(path, mmap_mode="r")

    return Place(f"memory-mapped {dtype}", put, _tolerance(dtype))


def _sparse(dtype, monkeypatch, formed):
    small_blocks(monkeypatch)
    monkeypatch.setattr("mnpca.engines.thin.ROWS", 8)
    if not formed:
        monkeypatch.setattr("mnpca.engines.sparse.FORMED", 4)
    return Place(f"sparse {dtype}", lambda Y: sp.csr_matrix(Y.astype(dtype)), _tolerance("float32"))


def _dask(dtype, where):
    da = pytest.importorskip("dask.array")
    chunks = (11, 7)  # columns in pieces too, and rows in pieces of unequal length
    return Place(
        f"dask {where} {dtype}",
        lambda Y: da.from_array(Y.astype(dtype), chunks=chunks),
        _tolerance(dtype),
    )


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
#: Places of the chunked engine, which need a file or workers.
CHUNKED = ["mapped-float64", "mapped-float32", "dask-threads", "dask-cluster"]
#: Sparse matrices; the second has more columns than Gram matrices are formed of.
SPARSE = ["sparse-float64", "sparse-float32", "sparse-wide"]


@pytest.fixture(params=[*PLACES, *CHUNKED, *SPARSE])
def place(request):
    """Every installed place in turn; the others are skipped with a reason."""
    if request.param in PLACES:
        return PLACES[request.param]()
    if request.param in SPARSE:
        dtype = "float32" if request.param == "sparse-float32" else "float64"
        monkeypatch = request.getfixturevalue("monkeypatch")
        return _sparse(dtype, monkeypatch, request.param != "sparse-wide")
    if request.param.startswith("mapped"):
        return _memory_mapped(
            request.param[7:],
            request.getfixturevalue("tmp_path"),
            request.getfixturevalue("monkeypatch"),
        )
    if request.param == "dask-cluster":
        request.getfixturevalue("on_cluster")
    return _dask("float64", request.param[5:])


@pytest.fixture(scope="session")
def cluster():
    """Start two worker processes of one thread each; they compute only where `on_cluster` asks."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as workers,
        distributed.Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def on_cluster(cluster):
    """Compute on the cluster for the length of a test."""
    with cluster.as_current():
        yield cluster
