"""Sparse matrices: seconds and memory of a fit with all defaults, and the numbers of a dense one.

    python benchmarks/sparse_input.py fit 100000x2000
    python benchmarks/sparse_input.py same 5000x500

The matrix is what of ``X W' + E`` lies above a level, 5% of the entries, as log-normalized counts
are: three components, pairs among 30% of the rows and half of the columns.
"""

import argparse
import os
import time
import warnings

import numpy as np
import scipy.sparse as sp
from scale import Memory

from mnpca import MNPCA
from mnpca.model.whiteness import ModelCheckWarning

RANK, DENSITY, BLOCK = 3, 0.05, 1000
#: Correlation of the two items of a pair, before the level takes most of their entries.
LINK = 0.8


def link(noise, pairs):
    """Correlate pairs of rows, in place."""
    first, second = pairs
    noise[second] = LINK * noise[first] + np.sqrt(1 - LINK**2) * noise[second]


def make(n, p, seed):
    """Return the matrix as CSR, made in blocks of rows, and the planted pairs of both sides."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((p, RANK))
    cols = rng.permutation(p)[: p // 4 * 2].reshape(2, -1)
    level, parts, rows = None, [], []
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        noise = rng.standard_normal((size, p))
        pairs = rng.permutation(size)[: int(0.15 * size) * 2].reshape(2, -1)
        link(noise, pairs)
        link(noise.T, cols)
        values = 0.5 * rng.standard_normal((size, RANK)) @ loadings.T + noise
        level = np.quantile(values, 1 - DENSITY) if level is None else level
        parts.append(sp.csr_array(np.maximum(values - level, 0.0)))
        rows.append(pairs + start)
    return sp.csr_array(sp.vstack(parts)), np.concatenate(rows, axis=1), cols


def found_share(precision, pairs):
    """Return the share of planted pairs that are linked, and the number of edges."""
    links = np.asarray(precision[pairs[0], pairs[1]]).ravel() != 0
    return links.mean(), (precision.nnz - precision.shape[0]) // 2


def fit(n, p, seed, n_jobs):
    """Fit with all defaults and print what it took."""
    MNPCA().fit(sp.csr_array(make(300, 40, seed)[0]))  # compiles
    Y, *planted = make(n, p, seed)
    size = (Y.data.nbytes + Y.indices.nbytes + Y.indptr.nbytes) / 2**20
    memory = Memory()
    memory.start()
    time.sleep(1)
    before = memory.both
    load, started, processor = os.getloadavg()[0], time.perf_counter(), time.process_time()

    def tell(progress):
        seconds, spent = time.perf_counter() - started, time.process_time() - processor
        print(
            f"  {seconds:6.1f} s {spent:6.1f} s  {progress.stage}, {progress.iteration}", flush=True
        )

    model = MNPCA(n_jobs=n_jobs).fit(Y, callback=tell)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    memory.ended.set()
    above = memory.both - before
    print(
        f"{n} x {p}, {Y.nnz / n / p:.1%} nonzeros: {seconds:.0f} s on {n_jobs} threads, processor "
        f"time {processor:.0f} s (load {load:.1f} before, {os.getloadavg()[0]:.1f} after); the "
        f"CSR matrix has {size:.0f} MB, the fit took {above:.0f} MB more, in all "
        f"{1 + above / size:.2f} times the matrix; n x k is {n * 8 * model.n_signal_ / 2**20:.0f} "
        f"MB, p x p {p * p * 8 / 2**20:.0f} MB"
    )
    print(f"  {model.n_components_} components")
    for side, precision, pairs in zip(
        ("rows", "columns"), (model.row_precision_, model.col_precision_), planted, strict=True
    ):
        share, n_edges = found_share(precision, pairs)
        print(f"  {side}: {share:.1%} of {pairs.shape[1]} pairs found, {n_edges} edges")


def same(n, p, seed):
    """Print how far the sparse fit is from the dense one."""
    Y, *_ = make(n, p, seed)
    dense, sparse = MNPCA().fit(Y.toarray()), MNPCA().fit(Y)
    signal = dense.denoise()
    error = np.linalg.norm(sparse.denoise() - signal) / np.linalg.norm(signal)
    print(f"{n} x {p}, {dense.n_components_} components: relative difference {error:.1e} (signal)")
    for side in ("row_precision_", "col_precision_"):
        ours, theirs = getattr(sparse, side), getattr(dense, side)
        print(
            f"  {side}: {(theirs.nnz - theirs.shape[0]) // 2} edges, relative difference "
            f"{abs(ours - theirs).max() / abs(theirs).max():.1e}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["fit", "same"])
    parser.add_argument("size", help="rows x columns, for instance 20000x500")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ModelCheckWarning)  # the noise is cut off, not Gaussian
    rows, columns = map(int, args.size.split("x"))
    if args.task == "fit":
        fit(rows, columns, args.seed, args.n_jobs)
    else:
        same(rows, columns, args.seed)
