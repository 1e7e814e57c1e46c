"""Accuracy of MNPCA beside centered PCA and an oracle that knows the true noise.

Prints one row per setting: mean PSNR (dB) over seeds of centered PCA, of MNPCA, of the
oracle (the low-rank step with the true A and B), the mean and worst gap to the oracle, and the
worst gain over PCA. Seeds below 1000 were used for tuning, and 1000 to 1009 were
looked at while the rules for weak components and tiny data were set, so seeds start at 3000.

    python benchmarks/accuracy.py --rows 300x200 --seeds 10 --jobs 2
"""

import argparse
import fnmatch
import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed

from mnpca.datasets import chain_precision, make_paper_small, random_sparse_precision
from mnpca.engines.engine import DenseEngine
from mnpca.metrics import edge_recovery, psnr
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca import fit_mnpca
from mnpca.solvers.mnpca.low_rank_step import low_rank_step


def paper(c, n=300, p=200, **kwargs):
    """Rows of the paper's small data, or of related sizes."""
    return lambda seed: make_paper_small(c=c, seed=seed, n_samples=n, n_features=p, **kwargs)


def chains(correlation, n=300, p=200):
    """Autoregressive noise on both sides, every entry of E with variance one."""
    unit_variance = (1 + correlation**2) / (1 - correlation**2)
    rows = unit_variance * chain_precision(n, correlation)
    cols = unit_variance * chain_precision(p, correlation)
    return lambda seed: make_paper_small(seed=seed, row_precision=rows, col_precision=cols)


def tall(n, p):
    """Very many rows: the paper's three groups, networks of small components on both sides."""

    def make(seed):
        rows = sparse_network(n, seed)
        cols = sparse_network(p, seed + 1)
        return make_paper_small(
            seed=seed, n_samples=n, n_features=p, row_precision=rows, col_precision=cols
        )

    return make


def sparse_network(size, seed, *, block=100, condition=64.0, density=0.03):
    """Block-diagonal random sparse precision: a network that is never a dense array."""
    rng = np.random.RandomState(seed)
    full, rest = divmod(size, block)
    sizes = [block] * full + ([rest] if rest else [])
    parts = [random_sparse_precision(s, density, condition, rng) for s in sizes]
    return sp.csr_array(sp.block_diag(parts))


MIXTURES = ("mixture-scale", "mixture-heavy", "mixture-shift")
#: Setting -> (maker of a data set from a seed, largest allowed mean gap to the oracle in dB).
SETTINGS = {
    **{f"300x200 c={c}": (paper(c), 0.25) for c in (1, 8, 32, 64, 96, 224)},
    "300x200 signal x0.5 c=8": (paper(8, signal_scale=0.5), 0.5),
    "300x200 signal x4 c=8": (paper(8, signal_scale=4), 0.5),
    "300x200 signal x4 c=224": (paper(224, signal_scale=4), 0.5),
    "300x200 signal x16 c=32": (paper(32, signal_scale=16), 0.5),
    "600x100 c=32": (paper(32, 600, 100), 0.25),
    "600x100 c=224": (paper(224, 600, 100), 0.25),
    "150x400 c=224": (paper(224, 150, 400), 0.25),
    "60x40 density .03 c=32": (paper(32, 60, 40, density=0.03), 1.5),
    "60x40 density .03 c=224": (paper(224, 60, 40, density=0.03), 1.5),
    "300x200 density .03 c=224": (paper(224, density=0.03), 1.0),
    "300x200 density .1 c=32": (paper(32, density=0.1), 1.0),
    "300x200 density .1 c=224": (paper(224, density=0.1), 1.0),
    "300x200 AR(.5)": (chains(0.5), 0.25),
    "300x200 AR(.8)": (chains(0.8), 0.5),
    **{
        f"300x200 {kind} c={c}": (paper(c, noise=kind), 0.25)
        for kind in ("laplace", "uniform", *MIXTURES)
        for c in (8, 224)
    },
}


def centered_pca(Y, rank):
    mean = Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    return mean + (U[:, :rank] * s[:rank]) @ Vt[:rank]


def oracle(data, rank):
    """Return the low-rank step's signal under the true A and B."""
    posterior = low_rank_step(
        DenseEngine(data.Y),
        AxisPrecision.from_precision(data.row_precision),
        AxisPrecision.from_precision(data.col_precision),
        rank,
        max_sweeps=20,
    )
    return posterior.left @ posterior.right.T


def measure(setting, seed, decades, of_rows=None, rank=2):
    """Return PSNRs of PCA, ours, oracle; seconds; edges found."""
    data = SETTINGS[setting][0](seed)
    units = np.logspace(-decades / 2, decades / 2, data.Y.shape[1 if of_rows is None else 0])
    units = np.random.default_rng(seed).permutation(units)
    units = units if of_rows is None else units[:, None]
    Y = data.Y * units
    if of_rows == "divided":
        spread = Y.std(axis=1, keepdims=True)
        Y, units = Y / spread, units / spread
    started = time.perf_counter()
    fit = fit_mnpca(Y, rank, prior="gaussian")
    seconds = time.perf_counter() - started
    rows = edge_recovery(fit.row_noise.precision, data.row_precision)
    cols = edge_recovery(fit.col_noise.precision, data.col_precision)
    return {
        "pca": psnr(centered_pca(Y, rank) / units, data.signal),
        "ours": psnr(fit.denoised() / units, data.signal),
        "oracle": psnr(oracle(data, rank), data.signal),
        "seconds": seconds,
        "edges": (rows.tpr, rows.ppv, cols.tpr, cols.ppv),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="*", help="settings that contain this (or a glob)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=3000, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--decades", type=float, default=0, help="spread of the columns' units")
    parser.add_argument(
        "--of-rows",
        choices=("given", "divided"),
        help="the units are those of the rows, which are fitted so or divided by their spread",
    )
    parser.add_argument("--each", action="store_true", help="also print every seed's gap")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    chosen = [name for name in SETTINGS if fnmatch.fnmatch(name, f"*{options.rows}*")]
    work = [(name, seed) for name in chosen for seed in seeds]
    runs = Parallel(options.jobs)(
        delayed(measure)(name, seed, options.decades, options.of_rows) for name, seed in work
    )
    print(
        f"{'setting':28s} {'PCA':>6s} {'ours':>6s} {'oracle':>6s} {'gap':>6s} {'worst':>6s} "
        f"{'bar':>5s} {'vs PCA':>7s} {'sec':>6s}  edges: rows TPR/PPV, columns TPR/PPV"
    )
    for name in chosen:
        cell = [run for (row, _), run in zip(work, runs, strict=True) if row == name]
        pca, ours, best = (np.array([run[k] for run in cell]) for k in ("pca", "ours", "oracle"))
        gap = best - ours
        edges = np.ma.masked_invalid([run["edges"] for run in cell]).mean(axis=0).filled(np.nan)
        print(
            f"{name:28s} {pca.mean():6.2f} {ours.mean():6.2f} {best.mean():6.2f} "
            f"{gap.mean():6.2f} {gap.max():6.2f} {SETTINGS[name][1]:5.2f} "
            f"{(ours - pca).min():+7.2f} {np.median([run['seconds'] for run in cell]):6.2f}  "
            + " ".join(f"{value:.2f}" for value in edges)
            + ("" if not options.each else "  " + " ".join(f"{g:.2f}" for g in gap)),
            flush=True,
        )


if __name__ == "__main__":
    main()
