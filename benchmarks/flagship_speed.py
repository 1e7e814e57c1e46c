"""Seconds and peak memory of the flagship on one core, compile time excluded.

python benchmarks/flagship_speed.py                 # the sizes below 10,000 rows
python benchmarks/flagship_speed.py --sizes 10000x1000
"""

import argparse
import os
import subprocess
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import psutil
from accuracy import oracle, tall

from mnpca.datasets import make_paper_large, make_paper_small
from mnpca.metrics import psnr
from mnpca.solvers.flagship import fit_flagship

#: Size -> (maker of a data set from a seed, seconds it may take, megabytes it may take).
SIZES = {
    "300x200": (lambda seed: make_paper_small(c=224, seed=seed), 0.25, None),
    "1000x2000": (lambda seed: make_paper_large(2000, seed=seed), 4.0, None),
    "2000x2000": (
        lambda seed: make_paper_small(
            c=196, seed=seed, n_samples=2000, n_features=2000, density=0.01
        ),
        15.0,
        None,
    ),
    "4000x2000": (tall(4000, 2000), 10.0, None),
    "10000x1000": (tall(10000, 1000), 20.0, 550.0),
    "30000x1000": (tall(30000, 1000), None, None),
}


def measure(size, seed):
    """Fit once and print the row; runs in a process of its own so that the peak is its own."""
    warm_up = make_paper_small(c=64, seed=0, n_samples=60, n_features=50)
    fit_flagship(warm_up.Y, 2)
    data = SIZES[size][0](seed)
    signal = data.signal.astype(np.float32)
    data.Y = data.Y.astype(np.float32)
    data.signal = None
    started = time.perf_counter()
    fit = fit_flagship(data.Y, 2)
    seconds = time.perf_counter() - started
    # Only the peak of the whole process is known; making the data must not exceed it.
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    now = psutil.Process().memory_info().rss / 2**20
    ours = psnr(fit.denoised(), signal)
    best = psnr(oracle(data, 2), signal)
    _, seconds_bar, memory_bar = SIZES[size]
    print(
        f"{size:12s} seed {seed}: {seconds:6.2f} s (bar {seconds_bar}), peak {peak:5.0f} MB "
        f"(bar {memory_bar}), after {now:5.0f} MB, PSNR {ours:.2f} (oracle {best:.2f}), edges "
        f"{fit.row_noise.n_edges} + {fit.col_noise.n_edges} (true "
        f"{(data.row_precision.nnz - data.row_precision.shape[0]) // 2} + "
        f"{(data.col_precision.nnz - data.col_precision.shape[0]) // 2}), largest component "
        f"{fit.row_noise.largest_component} / {fit.col_noise.largest_component}, {fit.n_iter} "
        f"iterations, {fit.chosen}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="300x200,1000x2000,2000x2000,4000x2000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--one", nargs=2, metavar=("SIZE", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one[0], int(options.one[1]))
        return
    for size in options.sizes.split(","):
        for seed in range(options.first, options.first + options.seeds):
            subprocess.run([sys.executable, __file__, "--one", size, str(seed)], check=True)


if __name__ == "__main__":
    main()
