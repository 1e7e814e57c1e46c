"""Large matrices: a fit from a file within bounded memory, and times against the cost model.

    python benchmarks/scale.py doublings            # processor time against the model
    python benchmarks/scale.py doublings 5000x30 --times 5   # of the rows, all defaults
    python benchmarks/scale.py fit 100000x1000      # from a memory-mapped file; seconds and memory
    python benchmarks/scale.py same 5000x1000       # the same numbers as in memory
    python benchmarks/scale.py tall 500000x30       # in memory, all defaults; seconds and memory

`doublings` doubles the rows, then the columns, four times each, with the rank given and from a
file; from a given size on it doubles the rows of a matrix in memory, all automatic. The cost model
of docs/scale.md gives every step as a count of elementary operations times a rate. Counts come from
the run, rates from its smallest size only; the larger ones are then predicted.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from mnpca.engines import engine_for
from mnpca.engines.threads import worker_threads

RANK = 2
#: The strongest planted edges are those with at least this partial correlation.
STRONG = 0.3


def make(n, p, seed, folder):
    """Write a matrix with a planted signal and planted networks, made in blocks of rows."""
    from accuracy import sparse_network

    folder = Path(folder)
    rng = np.random.default_rng(seed)
    cols = sparse_network(p, seed + 1)
    col_root = np.linalg.inv(np.linalg.cholesky(cols.toarray()))
    loadings = rng.standard_normal((p, RANK))
    block = 100
    folder.mkdir(parents=True, exist_ok=True)
    Y = np.lib.format.open_memmap(folder / "Y.npy", "w+", np.float64, (n, p))
    scores, networks = [], []
    for start in range(0, n, block):
        size = min(block, n - start)
        network = sparse_network(size, rng.integers(2**31))
        row_root = np.linalg.inv(np.linalg.cholesky(network.toarray()))
        noise = row_root.T @ rng.standard_normal((size, p)) @ col_root
        scores.append(rng.standard_normal((size, RANK)))
        Y[start : start + size] = scores[-1] @ loadings.T + noise
        networks.append(network)
    np.savez(folder / "signal.npz", left=np.concatenate(scores), right=loadings)
    sp.save_npz(folder / "rows.npz", sp.csr_array(sp.block_diag(networks)))
    sp.save_npz(folder / "cols.npz", cols)


class Memory(threading.Thread):
    """Watches the memory of this process: its own pages, and those of mapped files."""

    def __init__(self):
        super().__init__(daemon=True)
        self.own = self.mapped = self.both = 0.0
        self.ended = threading.Event()

    def run(self):
        """Look five times a second."""
        while not self.ended.wait(0.2):
            text = Path("/proc/self/status").read_text()
            fields = dict(line.split(":", 1) for line in text.splitlines())
            own, mapped = (int(fields[key].split()[0]) / 1024 for key in ("RssAnon", "RssFile"))
            self.own, self.mapped = max(self.own, own), max(self.mapped, mapped)
            self.both = max(self.both, own + mapped)


def edges_found(estimate, truth):
    """Share of the strong planted edges that were found, and of found edges that are planted."""
    scale = sp.diags_array(1.0 / np.sqrt(truth.diagonal()))
    partial = sp.triu(abs(scale @ truth @ scale), k=1).tocoo()
    size = truth.shape[0]
    keys = partial.coords[0].astype(np.int64) * size + partial.coords[1]
    strong, planted = keys[partial.data >= STRONG], keys[partial.data > 0]
    found = sp.triu(estimate, k=1).tocoo()
    found = found.coords[0].astype(np.int64) * size + found.coords[1]
    return np.isin(strong, found).mean(), np.isin(found, planted).mean()


def signal_error(model, signal):
    """Relative error of the signal, from the factors."""
    left = np.column_stack([model.low_rank_.left, np.ones(len(signal["left"])), -signal["left"]])
    right = np.column_stack([model.low_rank_.right, model.mean_, signal["right"]])
    error = np.sum((left.T @ left) * (right.T @ right))
    size = np.sum((signal["left"].T @ signal["left"]) * (signal["right"].T @ signal["right"]))
    return float(np.sqrt(error / size))


def fit(n, p, folder, n_jobs, rank, use_dask):
    """Fit the stored matrix in blocks and print what it took."""
    from mnpca import MNPCA

    folder = Path(folder)
    Y = np.load(folder / "Y.npy", mmap_mode="r")
    if use_dask:
        import dask.array as da

        Y = da.from_array(Y, chunks=(8192, -1))
    MNPCA(2, noise="graph").fit(np.random.default_rng(0).standard_normal((300, 40)))  # compiles
    memory = Memory()
    memory.start()
    load = os.getloadavg()[0]
    started, processor = time.perf_counter(), time.process_time()

    def tell(progress):
        seconds = time.perf_counter() - started
        print(f"  {seconds:6.0f} s  {progress.stage}, iteration {progress.iteration}", flush=True)

    model = MNPCA(rank, noise="graph", n_jobs=n_jobs).fit(Y, callback=tell)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    memory.ended.set()
    print(
        f"{n} x {p} from a {'dask array' if use_dask else 'memory-mapped file'}, n_components="
        f"{rank!r}: {seconds:.0f} s on {n_jobs} threads, processor time {processor:.0f} s (load "
        f"{load:.1f} before, {os.getloadavg()[0]:.1f} after); memory {memory.both:.0f} MB at its "
        f"peak, of which at most {memory.own:.0f} MB the process's own and {memory.mapped:.0f} MB "
        "pages of mapped files"
    )
    rows, cols = (sp.load_npz(folder / name) for name in ("rows.npz", "cols.npz"))
    for side, estimate, truth in (
        ("rows", model.row_precision_, rows),
        ("columns", model.col_precision_, cols),
    ):
        recall, precision = edges_found(estimate, truth)
        print(
            f"  {side}: {recall:.1%} of the edges of partial correlation {STRONG} or more found, "
            f"{1 - precision:.1%} of the found edges not planted"
        )
    signal = np.load(folder / "signal.npz")
    print(
        f"  {model.n_components_} components, relative error of the signal "
        f"{signal_error(model, signal):.4f}; {model.model_check_['advice']}"
    )


def same(n, p, folder):
    """Compare the fit in blocks with the fit in memory, on the first rows of the stored matrix."""
    from mnpca import MNPCA

    mapped = np.load(Path(folder) / "Y.npy", mmap_mode="r")[:n]
    blocks = MNPCA(RANK, noise="graph").fit(mapped)
    memory = MNPCA(RANK, noise="graph").fit(np.array(mapped))
    difference = np.linalg.norm(blocks.denoise() - memory.denoise()) / np.linalg.norm(
        memory.denoise()
    )
    precisions = [
        abs(getattr(blocks, name) - getattr(memory, name)).max() / abs(getattr(memory, name)).max()
        for name in ("row_precision_", "col_precision_")
    ]
    print(
        f"{n} x {p} in blocks and in memory: signals differ by {difference:.1e}, precisions by "
        f"{precisions[0]:.1e} (rows) and {precisions[1]:.1e} (columns), relative"
    )


def tall(n, p, seed, n_jobs):
    """Fit a table of many rows in memory with all defaults and print what it took.

    It has two components, a mean row, and a network of pairs among half of the columns.
    """
    from mnpca import MNPCA

    def table(n, p, seed):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((n, p)) * np.exp(0.2 * rng.standard_normal(p))
        pairs = rng.permutation(p)[: p // 4 * 2].reshape(2, -1)
        noise[:, pairs[1]] = 0.6 * noise[:, pairs[0]] + 0.8 * noise[:, pairs[1]]
        signal = rng.standard_normal((n, RANK)) @ rng.standard_normal((RANK, p))
        noise += signal
        noise += rng.standard_normal(p)
        return noise, pairs

    MNPCA(n_jobs=n_jobs).fit(table(5000, p, 0)[0])  # compiles
    Y, pairs = table(n, p, seed)
    memory = Memory()
    memory.start()
    time.sleep(1)
    before = memory.both
    started = time.process_time()
    model = MNPCA(n_jobs=n_jobs).fit(Y)
    seconds = time.process_time() - started
    memory.ended.set()
    found = np.asarray(model.col_precision_[pairs[0], pairs[1]]).ravel() != 0
    n_edges = (model.col_precision_.nnz - p) // 2
    print(
        f"{n} x {p}: processor time {seconds:.1f} s, memory {memory.both - before:.0f} MB more, "
        f"{(memory.both - before) / (Y.nbytes / 2**20):.1f} times the matrix; "
        f"{model.n_components_} components, {found.sum()} of {len(found)} pairs of columns among "
        f"{n_edges} edges, {(model.row_precision_.nnz - n) // 2} edges of rows"
    )


def metered_fit(n, p, seed, rank):
    """Return the meter of one fit on one thread: in blocks, or in memory where all is automatic."""
    from meter import ENGINE, Meter, Metered

    from mnpca.solvers.mnpca import fit_mnpca

    meter = Meter()
    with tempfile.TemporaryDirectory() as folder, worker_threads(1):
        make(n, p, seed, folder)
        mapped = np.load(Path(folder) / "Y.npy", mmap_mode="r")
        metered = Metered(engine_for(np.array(mapped) if rank is None else mapped), meter, ENGINE)
        meter.run("thin algebra", float(n + p), lambda: fit_mnpca(metered, rank))
    return meter


def doublings(base, axis, times, seed, rank=RANK):
    """Print measured and modeled processor time of a fit while one side doubles."""
    print(f"\ndoubling the {axis}")
    rates = {}
    before = None
    for step in range(times + 1):
        n, p = base
        n, p = (n * 2**step, p) if axis == "rows" else (n, p * 2**step)
        meter = metered_fit(n, p, seed, rank)
        if step == 0:
            meter = metered_fit(n, p, seed, rank)  # again: the first one compiled
            rates = {name: meter.seconds[name] / max(meter.work[name], 1) for name in meter.work}
        model = sum(rates.get(name, 0.0) * amount for name, amount in meter.work.items())
        total = sum(meter.seconds.values())
        line = f"{n:7d} x {p:5d}: {total:7.2f} s, model {model:7.2f} s ({total / model:.2f})"
        if before is not None:
            measured, said = total / before[0], model / before[1]
            line += f"; x{measured:.2f} where the model says x{said:.2f} ({measured / said:.2f})"
        print(line, flush=True)
        for name in sorted(meter.seconds, key=meter.seconds.get, reverse=True):
            share = rates.get(name, 0.0) * meter.work[name]
            if meter.seconds[name] > 0.01 * total:
                print(f"      {name:24s} {meter.seconds[name]:7.2f} s, model {share:7.2f} s")
        before = (total, model)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["doublings", "fit", "same", "tall", "make"])
    parser.add_argument("size", nargs="?", help="rows x columns, for instance 20000x500")
    parser.add_argument("--times", type=int, default=5, help="doublings from a given size")
    parser.add_argument("--folder", help="where the data are, or go")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument(
        "--rank", default=RANK, type=lambda text: text if text == "auto" else int(text)
    )
    parser.add_argument("--dask", action="store_true")
    options = parser.parse_args()
    if options.what == "doublings":
        if options.size is None:
            doublings((4096, 128), "rows", 4, options.seed)
            doublings((4096, 128), "columns", 4, options.seed)
        else:
            size = tuple(map(int, options.size.split("x")))
            doublings(size, "rows", options.times, options.seed, rank=None)
        return
    n, p = map(int, (options.size or "100000x1000").split("x"))
    if options.what == "tall":
        tall(n, p, options.seed, options.n_jobs)
        return
    if options.what == "make":
        make(n, p, options.seed, options.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        if not (Path(folder) / "Y.npy").exists():
            # Another process: what making the data takes is not the fit's.
            command = [sys.executable, __file__, "make", options.size, "--folder", folder]
            subprocess.run([*command, "--seed", str(options.seed)], check=True)
        if options.what == "fit":
            rank = "auto" if options.rank == "auto" else int(options.rank)
            fit(n, p, folder, options.n_jobs, rank, options.dask)
        else:
            same(n, p, folder)


if __name__ == "__main__":
    main()
