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


def _array_place(name):
    """Hold a matrix as an array: library and type, as in "torch-float32"."""
    library, dtype = name.split("-")
    tol = 1e-9 if dtype == "float64" else 1e-4
    if library == "numpy":
        return Place(name, lambda Y: Y.astype(dtype), tol)
    module = {"strict": "array_api_strict", "cuda": "torch"}.get(library, library)
    xp = pytest.importorskip(module)
    options = {}
    if library == "cuda":
        if not xp.cuda.is_available():
            pytest.skip("torch finds no CUDA device")
        options["device"] = "cuda"
    return Place(name, lambda Y: xp.asarray(Y.astype(dtype), **options), tol)


def small_blocks(monkeypatch):
    """Make blocks of fourteen rows of twenty numbers, and tiles of seven."""
    monkeypatch.setattr("mnpca.engines.rows.BLOCK_BYTES", 4 * 20 * 14)
    monkeypatch.setattr("mnpca.engines.rows.BLOCK", 7)


#: Arrays in memory or on a device.
ARRAYS = [
    *(
        f"{library}-{dtype}"
        for library in ("numpy", "torch", "strict", "cuda")
        for dtype in ("float64", "float32")
    ),
    "cupy-float32",
]
#: Places of the chunked engine, which need a file or workers.
CHUNKED = ["mapped-float64", "mapped-float32", "dask-threads", "dask-cluster"]
#: Sparse matrices; the second has more columns than Gram matrices are formed of.
SPARSE = ["sparse-float64", "sparse-float32", "sparse-wide"]


@pytest.fixture(params=[*ARRAYS, *CHUNKED, *SPARSE])
def place(request, tmp_path, monkeypatch):
    """Every installed place in turn; the others are skipped with a reason."""
    name = request.param
    if name in ARRAYS:
        return _array_place(name)
    if name.startswith("dask"):
        da = pytest.importorskip("dask.array")
        if name == "dask-cluster":
            request.getfixturevalue("on_cluster")
        # Columns in pieces too, and rows in pieces of unequal length.
        return Place(name, lambda Y: da.from_array(Y, chunks=(11, 7)), 1e-9)
    small_blocks(monkeypatch)
    dtype = "float32" if name.endswith("float32") else "float64"
    if name.startswith("mapped"):

        def put(Y):
            np.save(tmp_path / "Y.npy", Y.astype(dtype))
            return np.load(tmp_path / "Y.npy", mmap_mode="r")

        return Place(name, put, 1e-9 if dtype == "float64" else 1e-4)
    monkeypatch.setattr("mnpca.engines.thin.ROWS", 8)
    if name == "sparse-wide":
        monkeypatch.setattr("mnpca.engines.sparse.FORMED", 4)
    return Place(name, lambda Y: sp.csr_matrix(Y.astype(dtype)), 1e-4)


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
