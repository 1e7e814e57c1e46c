"""How often `n_components="auto"` finds the true rank, and what it costs.

Prints per setting: the true rank, the share of seeds that found it, the ranks found, the PSNR
lost against a fit at the true rank, and the time in units of that fit. All else is automatic.
Seeds start at 1000; smaller ones were used for tuning.

    python benchmarks/rank.py --seeds 40 --settings "c=*"
"""

import argparse
import fnmatch
import os
import time
from collections import Counter

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from joblib import Parallel, delayed

from mnpca.datasets import chain_precision, make_low_rank_matrix_normal, make_paper_small
from mnpca.metrics import psnr
from mnpca.solvers.mnpca import fit_mnpca


def paper(c, **kwargs):
    """Three groups of rows: rank 2."""
    return 2, lambda seed: make_paper_small(c=c, seed=seed, **kwargs)


def chains(correlation, n=300, p=200):
    """Autoregressive noise of variance one on both sides."""
    unit_variance = (1 + correlation**2) / (1 - correlation**2)
    rows = unit_variance * chain_precision(n, correlation)
    cols = unit_variance * chain_precision(p, correlation)
    return 2, lambda seed: make_paper_small(seed=seed, row_precision=rows, col_precision=cols)


def gaussian(rank, c):
    """Gaussian scores and loadings."""
    return rank, lambda seed: make_low_rank_matrix_normal(
        300, 200, rank, condition=c, random_state=seed
    )


SETTINGS = {
    **{f"c={c}": paper(c) for c in (1, 8, 64, 224)},
    "AR(.5)": chains(0.5),
    "AR(.8)": chains(0.8),
    "density .1, c=32": paper(32, density=0.1),
    "density .1, c=224": paper(224, density=0.1),
    "600x100, c=32": paper(32, n_samples=600, n_features=100),
    "600x100, c=224": paper(224, n_samples=600, n_features=100),
    **{f"rank {r}, c={c}": gaussian(r, c) for r in (0, 1, 5, 8) for c in (8, 224)},
    "150x100, c=96": paper(96, n_samples=150, n_features=100),
    "60x40, c=32": paper(32, n_samples=60, n_features=40, density=0.03),
    "60x40, c=224": paper(224, n_samples=60, n_features=40, density=0.03),
}


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def one_run(name, seed):
    """Rank found, PSNR lost, time, and time of a fit with the rank given.

    Priors are Gaussian: learned ones would show how they differ, not what a wrong rank costs.
    """
    rank, make = SETTINGS[name]
    data = make(seed)
    fit, seconds = timed(lambda: fit_mnpca(data.Y, prior="gaussian"))
    known, unit = timed(lambda: fit_mnpca(data.Y, rank, prior="gaussian"))
    lost = 0.0
    if rank > 0:
        lost = psnr(known.denoised(), data.signal) - psnr(fit.denoised(), data.signal)
    return len(fit.singular_values), lost, seconds, unit


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", default="*", help="pattern of names")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    one_run("60x40, c=32", 0)  # compile
    print(f"{'setting':<20}{'rank':>5}{'right':>8}{'dB lost':>9}{'time':>7}  ranks found")
    for name in fnmatch.filter(SETTINGS, args.settings):
        seeds = range(args.first_seed, args.first_seed + args.seeds)
        runs = Parallel(args.jobs)(delayed(one_run)(name, seed) for seed in seeds)
        found, lost, seconds, unit = (np.array(column) for column in zip(*runs, strict=True))
        rank = SETTINGS[name][0]
        counts = ", ".join(f"{k}: {n}" for k, n in sorted(Counter(found.tolist()).items()))
        print(
            f"{name:<20}{rank:5d}{np.mean(found == rank):8.1%}{lost.mean():9.3f}"
            f"{seconds.sum() / unit.sum():7.2f}  {counts}",
            flush=True,
        )


if __name__ == "__main__":
    main()
