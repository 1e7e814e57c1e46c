"""Seconds and peak memory of MNPCA on one core, compile time excluded.

Every data set is made in one process and fitted in another, so that the peak memory is the
fit's own (interpreter and compiled code included).

    python benchmarks/mnpca_speed.py
    python benchmarks/mnpca_speed.py --sizes 10000x1000,30000x1000 --seeds 1
"""

import argparse
import gc
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp

from mnpca.solvers.mnpca import fit_mnpca

#: Size -> (seconds that a fit may take, megabytes that it may take).
BARS = {
    "300x200": (0.25, None),
    "1000x2000": (4.0, None),
    "2000x2000": (15.0, None),
    "4000x2000": (10.0, None),
    "10000x1000": (20.0, 550.0),
    "30000x1000": (None, None),
}


def make(size, seed, folder):
    """Write a data set of the size in float32."""
    from accuracy import paper, tall

    from mnpca.datasets import make_paper_large

    n, p = map(int, size.split("x"))
    if size == "1000x2000":
        data = make_paper_large(2000, seed=seed)
    elif n <= 2000:
        data = paper(224 if n == 300 else 196, n, p)(seed)
    else:
        data = tall(n, p)(seed)
    np.save(folder / "Y.npy", data.Y.astype(np.float32))
    np.save(folder / "signal.npy", data.signal.astype(np.float32))
    sp.save_npz(folder / "rows.npz", sp.csr_array(data.row_precision))
    sp.save_npz(folder / "cols.npz", sp.csr_array(data.col_precision))


def measure(size, seed, folder):
    """Fit the stored data set and print its row of the table."""
    items = np.random.default_rng(0).standard_normal((80, 90))
    warm_up = fit_mnpca(np.concatenate([items, items[:20] + 0.3 * items[20:40]]), 2)  # compiles
    assert warm_up.row_noise.n_edges > 0  # also what fits networks
    gc.collect()  # what compiling has left behind
    Y = np.load(folder / "Y.npy")
    started, processor = time.perf_counter(), time.process_time()
    fit = fit_mnpca(Y, 2)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    from accuracy import oracle  # only now: what it loads is not the fit's
    from sklearn.utils import Bunch

    from mnpca.metrics import psnr

    rows, cols = (sp.load_npz(folder / name) for name in ("rows.npz", "cols.npz"))
    signal = np.load(folder / "signal.npy")
    best = psnr(oracle(Bunch(Y=Y, row_precision=rows, col_precision=cols), 2), signal)
    found = [side.n_edges for side in (fit.row_noise, fit.col_noise)]
    true = [(side.nnz - side.shape[0]) // 2 for side in (rows, cols)]
    largest = [side.largest_component for side in (fit.row_noise, fit.col_noise)]
    seconds_bar, memory_bar = BARS[size]
    print(
        f"{size:11s} seed {seed}: {seconds:6.2f} s, of which processor {processor:.2f} s "
        f"(bar {seconds_bar}), peak {peak:4.0f} MB (bar {memory_bar}), PSNR "
        f"{psnr(fit.denoised(), signal):.2f} (oracle {best:.2f}), edges {found} of {true}, "
        f"largest components {largest}, {fit.n_iter} iterations",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="300x200,1000x2000,2000x2000,4000x2000,10000x1000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        what, size, seed, folder = options.step
        {"make": make, "measure": measure}[what](size, int(seed), Path(folder))
        return
    for size in options.sizes.split(","):
        for seed in range(options.first, options.first + options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                for what in ("make", "measure"):
                    command = [sys.executable, __file__, "--step", what, size, str(seed), folder]
                    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
