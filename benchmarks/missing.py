"""Missing values: the signal, predictions of held-out cells, their intervals, and time.

Synthetic data (the paper's small matrices, 20% of the cells hidden at random): PSNR of MNPCA's
signal on the complete and on the incomplete matrix; the same of an oracle that knows the true
noise (its loss is what the hidden cells cost anybody); root mean square errors of the hidden
cells for MNPCA, iterative SVD imputation and column means; how many 90% intervals hold the hidden
cell and the signal; and time. Real data: the errors, columns scaled to unit variance, of MNPCA as
it is and with rank and noise tuned as those of SVD imputation are.

SVD imputation is hard (truncated) or soft (shrunken); kind and rank or shrinkage are those with
the smallest error on a tenth of the observed cells.

    MNPCA_DATA=FOLDER python benchmarks/missing.py --seeds 5 --sets wine sonar vehicle
"""

import argparse
import os
import time
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from mnpca import MNPCA
from mnpca.datasets import load_real, make_paper_small
from mnpca.engines import engine_for
from mnpca.metrics import psnr
from mnpca.model.effects import Covariates
from mnpca.solvers.flagship.low_rank_step import low_rank_step
from mnpca.solvers.flagship.noise_side import NoiseSide
from mnpca.solvers.missing import Incomplete

FIRST_SEED = 1000
HIDDEN = 0.2
#: Half width of a 90% interval in standard errors.
NINETY = 1.6449
RANKS = range(9)
MODEL_RANKS = (1, 2, 3, 5)


def hide(matrix, seed, share=HIDDEN):
    """Return the matrix with holes, and where they are."""
    missing = np.random.default_rng(seed).random(matrix.shape) < share
    missing[missing.all(axis=1)] = False
    missing[:, missing.all(axis=0)] = False
    return np.where(missing, np.nan, matrix), missing


def rms(difference):
    return float(np.sqrt(np.mean(difference**2)))


def svd_fill(observed, shrink, iterations=60, tol=1e-3):
    """Alternate a (shrunken or truncated) SVD of the centred matrix and filling by it."""
    missing = np.isnan(observed)
    fitted = np.broadcast_to(np.nanmean(observed, axis=0), observed.shape)
    for _ in range(iterations):
        filled = np.where(missing, fitted, observed)
        mean = filled.mean(axis=0)
        left, values, right = np.linalg.svd(filled - mean, full_matrices=False)
        new = mean + (left * shrink(values)) @ right
        moved = np.linalg.norm(new - fitted) <= tol * np.linalg.norm(new)
        fitted = new
        if moved:
            break
    return np.where(missing, fitted, observed)


def candidates(observed):
    """Yield truncations and shrinkages to choose from."""
    for rank in RANKS:
        yield lambda values, rank=rank: np.where(np.arange(len(values)) < rank, values, 0.0)
    start = np.where(np.isnan(observed), np.nanmean(observed, axis=0), observed)
    largest = np.linalg.svd(start - start.mean(axis=0), compute_uv=False)[0]
    for share in np.geomspace(0.03, 0.8, 9):
        yield lambda values, level=share * largest: np.maximum(values - level, 0.0)


def tuned(observed, seed, fill, options):
    """Fill with the option that predicts a tenth of the observed cells best."""
    known = np.argwhere(~np.isnan(observed))
    chosen = np.random.default_rng(seed).random(len(known)) < 0.1
    inside = observed.copy()
    inside[tuple(known[chosen].T)] = np.nan
    inside[np.isnan(inside).all(axis=1)] = observed[np.isnan(inside).all(axis=1)]
    test = np.isnan(inside) & ~np.isnan(observed)
    errors = [rms((fill(inside, option) - observed)[test]) for option in options]
    return fill(observed, options[int(np.argmin(errors))])


def svd_impute(observed, seed):
    return tuned(observed, seed, svd_fill, list(candidates(observed)))


def model_fill(observed, option):
    """Fill by MNPCA with a given rank and noise structure."""
    rank, noise = option
    model = MNPCA(rank, noise=noise)
    timed(model, observed)
    return model.impute()


def model_impute(observed, seed):
    ranks = [rank for rank in MODEL_RANKS if rank < observed.shape[1]]
    options = [(rank, noise) for noise in ("graph", "diagonal") for rank in ranks]
    return tuned(observed, seed, model_fill, options)


def oracle(matrix, row_precision, col_precision, missing=None, rank=2):
    """Return the signal's variational estimate under the true noise, by exact expectations."""
    sides = NoiseSide.from_precision(row_precision), NoiseSide.from_precision(col_precision)
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
        "time": seconds[1] / seconds[0],
    }
    figures["loss"] = figures["complete"] - figures["missing"]
    figures["oracle loss"] = whole - partly
    return figures


def real(name, seed):
    """Return the errors of hidden cells of a real set, in units of each column's spread."""
    table = load_real(name).X
    spread = table.std(axis=0)
    table = (table / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    holes, missing = hide(table, seed)
    model = MNPCA()
    timed(model, holes)
    filled, std = model.impute(return_std=True)
    error = np.abs(filled - table)[missing]
    return {
        "mnpca()": rms(error),
        "mnpca tuned": rms((model_impute(holes, seed) - table)[missing]),
        "svd": rms((svd_impute(holes, seed) - table)[missing]),
        "means": rms((np.nanmean(holes, axis=0) - table)[missing]),
        "cover cells": float(np.mean(error < NINETY * std[missing])),
        "rank": model.n_components_,
    }


def show(label, rows):
    mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
    print(label, "  ".join(f"{key} {value:.3f}" for key, value in mean.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--conditions", type=int, nargs="*", default=[32, 128])
    parser.add_argument("--sets", nargs="*", default=["wine", "sonar", "vehicle"])
    parser.add_argument("--auto", action="store_true", help="choose rank and noise too")
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    options = {} if arguments.auto else {"n_components": 2, "noise": "graph"}
    for c in arguments.conditions:
        rows = []
        for seed in seeds:
            rows.append(synthetic(c, seed, options))
            show(f"c={c} seed={seed}:", rows[-1:])
        show(f"c={c} mean:", rows)
    for name in arguments.sets:
        show(f"{name}:", [real(name, seed) for seed in seeds])


if __name__ == "__main__":
    main()
