"""Gross outliers in single entries: `MNPCA(robust=True)` beside the plain fit.

A share of the entries gets N(0, (10 sigma)^2) added, sigma the standard deviation of the data.
Prints the mean PSNR (dB) over seeds of both fits on clean and on contaminated data, and how many
outliers were found. Seeds start at 1000; smaller ones were used for tuning.

    python benchmarks/robust.py --seeds 10
"""

import argparse
import os
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from mnpca import MNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import psnr


def contaminated(Y, share, seed):
    """Return Y with outliers, and where they are."""
    rng = np.random.default_rng(seed)
    where = rng.random(Y.shape) < share
    return Y + where * rng.normal(scale=10 * Y.std(), size=Y.shape), where


def one_run(c, seed, share):
    """PSNR of both fits on clean and on spoilt data; recall and precision of the outliers."""
    data = make_paper_small(c=c, seed=seed)
    spoilt, where = contaminated(data.Y, share, seed)
    row = []
    for Y in (data.Y, spoilt):
        for robust in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the plain fit on spoilt data is meant to fail
                model = MNPCA(2, noise="graph", robust=robust).fit(Y)
            row.append(psnr(model.denoise(), data.signal))
    found = model.outliers_
    return [*row, (found & where).sum() / where.sum(), (found & where).sum() / found.sum()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.05, help="of the entries that are spoilt")
    args = parser.parse_args()
    print(f"{'c':>4}{'clean':>9}{'robust':>9}{'spoilt':>9}{'robust':>9}{'recall':>9}{'prec.':>9}")
    for c in (8, 224):
        seeds = range(args.first_seed, args.first_seed + args.seeds)
        means = np.mean([one_run(c, seed, args.share) for seed in seeds], axis=0)
        print(f"{c:4d}" + "".join(f"{value:9.3f}" for value in means), flush=True)


if __name__ == "__main__":
    main()
