"""Missing values: the signal, predictions of held-out cells, their intervals, and time.

synthetic: the paper's small matrices, 20% of the cells hidden at random. PSNR of MNPCA's signal
on the complete and on the incomplete matrix; the same of an oracle that knows the true noise;
root mean square errors of the hidden cells for MNPCA, iterative SVD imputation and column means;
how many 90% intervals hold the hidden cell and the signal; and time. `--auto` leaves rank and
noise to MNPCA.

bound: what the hidden cells cost anybody who knows the noise, see `missing_bound.py`.

real: the errors, columns scaled to unit variance, of MNPCA as it is and of what `missing_rivals.py`
has; `--others` adds the paper's two estimators at rank 2. A set may be a part of a larger one, by
its numbers of rows and columns (3sources:200x150), drawn at random.

    MNPCA_DATA=FOLDER python benchmarks/missing.py synthetic bound real --sets wine sonar vehicle
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).parents[1]))  # for reproduction/

import numpy as np
from missing_bound import losses
from missing_rivals import fills, rms, svd_impute

from mnpca import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.datasets import make_paper_small
from mnpca.engines import engine_for
from mnpca.metrics import psnr
from mnpca.model.effects import Covariates
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from reproduction.real_sets import load_real

FIRST_SEED = 1000
HIDDEN = 0.2
#: Half width of a 90% interval in standard errors.
NINETY = 1.6449
PARTS = ("synthetic", "bound", "real")


def hide(matrix, seed, share=HIDDEN):
    """Return the matrix with holes, and where they are."""
    missing = np.random.default_rng(seed).random(matrix.shape) < share
    missing[missing.all(axis=1)] = False
    missing[:, missing.all(axis=0)] = False
    return np.where(missing, np.nan, matrix), missing


def oracle(matrix, row_precision, col_precision, missing=None, rank=2):
    """Return the signal's variational estimate under the true noise, by exact expectations."""
    sides = AxisPrecision.from_precision(row_precision), AxisPrecision.from_precision(col_precision)
    n, p = matrix.shape
    if missing is None:
        missing = np.zeros(matrix.shape, bool)
    problem = Incomplete(
        np.where(missing, 0.0, matrix),
        missing,
        Covariates(np.zeros((n, 0)), np.zeros((p, 0)), False),
    )
    expectation = problem.under(row_precision, col_precision)
    signal = np.zeros(matrix.shape)
    for _ in range(30 if missing.any() else 1):
        filled = expectation.complete(signal, tol=1e-4).filled
        posterior = low_rank_step(engine_for(filled), *sides, rank, center=False, max_sweeps=20)
        old, signal = signal, posterior.left @ posterior.right.T
        if np.linalg.norm(signal - old) < 1e-4 * np.linalg.norm(signal):
            break
    return signal


def timed(model, data):
    start = time.process_time()  # of one thread: other work does not count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
    return time.process_time() - start


def synthetic(c, seed, options):
    """Return the figures of one matrix."""
    data = make_paper_small(c=c, seed=seed)
    holes, missing = hide(data.Y, seed)
    complete, model = MNPCA(**options), MNPCA(**options)
    seconds = timed(complete, data.Y), timed(model, holes)
    filled, std = model.impute(return_std=True)
    signal, signal_std = model.denoise(return_std=True)
    truth = data.row_precision, data.col_precision
    whole = psnr(oracle(data.Y, *truth), data.signal)
    partly = psnr(oracle(data.Y, *truth, missing), data.signal)
    error = np.abs(filled - data.Y)[missing]
    figures = {
        "complete": psnr(complete.denoise(), data.signal),
        "missing": psnr(signal, data.signal),
        "oracle complete": whole,
        "oracle missing": partly,
        "mnpca": rms(error),
        "svd": rms((svd_impute(holes, seed) - data.Y)[missing]),
        "means": rms((np.nanmean(holes, axis=0) - data.Y)[missing]),
        "cover cells": float(np.mean(error < NINETY * std[missing])),
        "cover signal": float(np.mean(np.abs(signal - data.signal) < NINETY * signal_std)),
        "rank": model.n_components_,
        "time": seconds[1] / seconds[0],
    }
    figures["loss"] = figures["complete"] - figures["missing"]
    figures["oracle loss"] = whole - partly
    return figures


def bound(c, seed):
    """Return what holes cost at least, in dB."""
    data = make_paper_small(c=c, seed=seed)
    _, missing = hide(data.Y, seed)
    unbiased, shrunken = losses(data, missing)
    return {"least loss": unbiased, "least loss with shrinkage": shrunken}


def table_of(name):
    """Return a set, or part of one, with columns of unit variance."""
    name, _, part = name.partition(":")
    table = load_real(name).X
    if part:
        rng = np.random.default_rng(0)
        for axis, size in enumerate(map(int, part.split("x"))):
            kept = np.sort(rng.permutation(table.shape[axis])[:size])
            table = table.take(kept, axis=axis)
    spread = table.std(axis=0)
    return table[:, spread > 0] / spread[spread > 0]


def real(name, seed, others):
    """Return the errors of hidden cells of a real set, in units of each column's spread."""
    table = table_of(name)
    holes, missing = hide(table, seed)
    complete, model = MNPCA(), MNPCA()
    seconds = timed(complete, table), timed(model, holes)
    filled, std = model.impute(return_std=True)
    error = np.abs(filled - table)[missing]
    figures = {"mnpca()": rms(error)}
    figures |= {key: rms((each - table)[missing]) for key, each in fills(holes, seed).items()}
    for other in (LikelihoodMNPCA, WassersteinMNPCA) if others else ():
        timed(paper := other(2), holes)
        figures[other.__name__] = rms((paper.impute() - table)[missing])
    return figures | {
        "cover cells": float(np.mean(error < NINETY * std[missing])),
        "rank": model.n_components_,
        "networks": float(any(side["structure"] == "graph" for side in model.noise_.values())),
        "time": seconds[1] / seconds[0],
    }


def show(label, rows):
    mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
    print(label, "  ".join(f"{key} {value:.3f}" for key, value in mean.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--conditions", type=int, nargs="*", default=[32, 128])
    parser.add_argument("--sets", nargs="*", default=["wine", "sonar", "vehicle"])
    parser.add_argument("--auto", action="store_true", help="choose rank and noise too")
    parser.add_argument("--others", action="store_true", help="the paper's estimators too")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    options = {} if arguments.auto else {"n_components": 2, "noise": "graph"}
    for c in arguments.conditions:
        if "synthetic" in arguments.parts:
            show(f"c={c}:", [synthetic(c, seed, options) for seed in seeds])
        if "bound" in arguments.parts:
            show(f"c={c}:", [bound(c, seed) for seed in seeds])
    for name in arguments.sets if "real" in arguments.parts else ():
        show(f"{name}:", [real(name, seed, arguments.others) for seed in seeds])


if __name__ == "__main__":
    main()
