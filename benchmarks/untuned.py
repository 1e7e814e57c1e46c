"""MNPCA with all defaults on settings that nothing was tuned on, beside PCA and an oracle.

Prints one row per setting: relative squared error of the signal in dB (median over seeds) of
centered PCA at the true rank, of PCA with optimally shrunken singular values, of MNPCA with all
defaults, and of the oracle (the low-rank step under the true covariances); the gap of the
medians, the ranks found and the noise chosen on each side. Seeds below 1000 are for tuning.

    python benchmarks/untuned.py --settings "rows*" --seeds 5 --jobs 2
"""

import argparse
import fnmatch
import os
import time
import warnings
from collections import Counter
from typing import NamedTuple

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from joblib import Parallel, delayed

from mnpca import MNPCA
from mnpca.datasets import random_sparse_precision
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca.low_rank_step import low_rank_step

#: Singular values of the signal, in units of the noise edge, from the weakest to the strongest.
STRENGTHS = (1.6, 3.0)


class Draw(NamedTuple):
    """A data set: Y = signal + mean + noise, and the covariances that the oracle knows."""

    Y: np.ndarray
    signal: np.ndarray
    """What is to be found: the low-rank part and the mean."""
    rank: int
    row_covariance: np.ndarray
    col_covariance: np.ndarray


def white(size, rng):
    return np.eye(size)


def sparse(size, rng):
    """Return the correlation of a random sparse network of condition 64."""
    seed = np.random.RandomState(rng.integers(2**31))
    precision = random_sparse_precision(size, 0.01 * 200 / size, 64.0, seed)
    return unit_diagonal(np.linalg.inv(precision.toarray()))


def autoregressive(correlation):
    return lambda size, rng: scipy.linalg.toeplitz(correlation ** np.arange(size))


def blocks(size, rng):
    """Blocks of ten with correlation .6."""
    return np.kron(np.eye(size // 10), np.full((10, 10), 0.6)) + 0.4 * np.eye(size)


def line(size, rng):
    """Exponential kernel on a line, range 3."""
    position = np.arange(size)
    return np.exp(-np.abs(position[:, None] - position) / 3.0)


def grid(size, rng):
    """Exponential kernel on a grid, range 1.5."""
    width = int(np.ceil(np.sqrt(size)))
    place = np.stack(np.divmod(np.arange(size), width), axis=1)
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    return np.exp(-distance / 1.5)


def unit_diagonal(covariance):
    scale = 1.0 / np.sqrt(np.diag(covariance))
    return covariance * scale * scale[:, None]


def over_decades(kernel):
    """Give the kernel standard deviations over one decade, that is variances over two."""

    def covariance(size, rng):
        deviations = 10.0 ** rng.permutation(np.linspace(-0.5, 0.5, size))
        return kernel(size, rng) * deviations * deviations[:, None]

    return covariance


def draw(
    seed,
    n=300,
    p=200,
    rank=3,
    rows=white,
    cols=white,
    factors="gaussian",
    tail=None,
    on=(1.0, 1.0),
    change=None,
):
    """Draw one data set."""
    rng = np.random.default_rng([seed, n, p, rank])
    row_covariance, col_covariance = rows(n, rng), cols(p, rng)
    noise = colored(rng.standard_normal((n, p)), row_covariance, col_covariance)
    if tail == "cells":  # t3 cells, standardized, under the networks
        cells = rng.standard_t(3, (n, p)) / np.sqrt(3.0)
        noise = colored(cells, row_covariance, col_covariance)
    if tail == "rows":  # whole rows drawn from a t3
        noise *= np.sqrt(1.0 / rng.chisquare(3, (n, 1)))
    if tail == "two":  # a sum of two Kronecker products
        other = colored(rng.standard_normal((n, p)), cols(n, rng), rows(p, rng))
        noise = (noise + other) / np.sqrt(2.0)
    left = factor(rng, n, rank, factors, on[0])
    right = factor(rng, p, rank, factors, on[1])
    left, right = np.linalg.qr(left)[0], np.linalg.qr(right)[0]
    size = np.sqrt(np.mean(noise**2)) * (np.sqrt(n) + np.sqrt(p))
    strengths = size * np.linspace(STRENGTHS[1], STRENGTHS[0], rank)
    signal = (left * strengths) @ right.T
    if tail == "rows":
        scale = np.sqrt(np.mean(noise**2, axis=1))
        row_covariance = row_covariance * scale * scale[:, None]
    return finish(rng, signal, noise, rank, row_covariance, col_covariance, change)


def finish(rng, signal, noise, rank, row_covariance, col_covariance, change):
    """Add what a table may have besides: means, row effects, useless columns."""
    n, p = signal.shape
    size = np.sqrt(np.mean(noise**2))
    if change == "means":
        signal = signal + 100 * size * rng.standard_normal(p)
    if change == "row effects":  # one more component, of equal loadings
        signal = signal + 3 * size * rng.standard_normal((n, 1))
        rank += 1
    Y = signal + noise
    extra = None
    if change == "constant":
        extra = np.ones((n, 10))
    if change == "duplicated":
        extra = Y[:, :10]
    if change == "dependent":
        extra = Y[:, rng.permutation(p)[:20]] @ rng.standard_normal((20, 10)) / np.sqrt(20)
    if extra is not None:
        Y = np.column_stack([Y, extra])
    return Draw(Y, signal, rank, row_covariance, col_covariance)


def colored(cells, row_covariance, col_covariance):
    return np.linalg.cholesky(row_covariance) @ cells @ np.linalg.cholesky(col_covariance).T


def factor(rng, size, rank, kind, share):
    values = rng.standard_normal((size, rank))
    if kind == "t3":
        values = rng.standard_t(3, (size, rank))
    if kind == "sparse":
        values *= rng.random((size, rank)) < 0.1
    if share < 1.0:
        values[rng.permutation(size)[int(share * size) :]] = 0.0
    return values + 1e-9 * rng.standard_normal((size, rank))


def setting(**options):
    return lambda seed: draw(seed, **options)


def both(kernel, **options):
    return setting(rows=kernel, cols=kernel, **options)


AR = autoregressive
#: Setting -> (maker of a data set from a seed, largest gap to the oracle in dB).
SETTINGS = {
    "rows sparse": (setting(rows=sparse), 1.0),
    "cols sparse": (setting(cols=sparse), 1.0),
    "rows AR(.7)": (setting(rows=AR(0.7)), 1.0),
    "cols AR(.7)": (setting(cols=AR(0.7)), 1.0),
    "rows blocks": (setting(rows=blocks), 1.0),
    "cols blocks": (setting(cols=blocks), 1.0),
    "unequal sparse": (both(over_decades(sparse)), 1.0),
    "rank 3": (both(sparse), 1.0),
    "rank 6": (both(sparse, rank=6), 1.0),
    "rank 15": (both(sparse, rank=15), 1.0),
    "rank 30": (both(sparse, rank=30), 2.0),
    "line": (both(line), 1.0),
    "grid": (both(grid), 1.0),
    "two Kronecker": (setting(rows=AR(0.7), cols=sparse, tail="two"), 1.0),
    "t3 cells": (both(sparse, tail="cells"), 1.0),
    "t3 rows": (setting(cols=sparse, tail="rows"), 1.0),
    "means": (both(sparse, change="means"), 1.0),
    "row effects": (both(sparse, change="row effects"), 1.0),
    "constant columns": (both(sparse, change="constant"), 1.0),
    "duplicated columns": (both(sparse, change="duplicated"), 1.0),
    "dependent columns": (both(sparse, change="dependent"), 1.0),
    "tenth of rows": (both(sparse, on=(0.1, 1.0)), 1.0),
    "tenth of columns": (both(sparse, on=(1.0, 0.1)), 1.0),
    "tenth of both": (both(sparse, on=(0.1, 0.1)), 1.0),
    "50x500 sparse": (both(sparse, n=50, p=500), 1.5),
    "50x500 AR(.7)": (both(AR(0.7), n=50, p=500), 1.5),
    "40x1000 sparse": (both(sparse, n=40, p=1000), 1.5),
    "2000x20 cols AR(.6)": (setting(n=2000, p=20, cols=AR(0.6)), 1.0),
    "white Gaussian": (setting(), 0.13),
    "white sparse": (setting(factors="sparse"), 0.13),
    "white t3": (setting(factors="t3"), 0.13),
}


def decibels(estimate, signal):
    """Relative squared error of the signal without its mean row, on the columns it has."""
    center = signal.mean(axis=0)
    error = np.sum((estimate[:, : signal.shape[1]] - signal) ** 2)
    return 10 * np.log10(error / np.sum((signal - center) ** 2))


def pca(Y, rank):
    mean = Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    return mean + (U[:, :rank] * s[:rank]) @ Vt[:rank]


def shrunken_pca(Y, rank):
    """PCA with singular values shrunk for the Frobenius norm (Gavish and Donoho 2017).

    Without a mean: the settings that this is compared on have none.
    """
    n, p = Y.shape
    mean = np.zeros(p)
    U, s, Vt = np.linalg.svd(Y - mean, full_matrices=False)
    variance = np.sum(s[rank:] ** 2) / ((n - rank) * (p - rank))
    y = s[:rank] ** 2 / variance
    inside = np.maximum((y - n - p) ** 2 - 4 * n * p, 0.0)
    shrunk = np.sqrt(inside) / np.sqrt(y) * np.sqrt(variance)
    return mean + (U[:, :rank] * shrunk) @ Vt[:rank]


def oracle(data):
    """Return the low-rank step's signal under the true covariances."""
    precisions = (
        AxisPrecision.from_precision(sp.csr_array(clean(np.linalg.inv(covariance))))
        for covariance in (data.row_covariance, data.col_covariance)
    )
    Y = data.Y[:, : len(data.col_covariance)]
    posterior = low_rank_step(DenseEngine(Y), *precisions, data.rank, max_sweeps=20)
    return posterior.left @ posterior.right.T


def clean(precision):
    return np.where(np.abs(precision) > 1e-9 * np.abs(precision).max(), precision, 0.0)


def measure(name, seed, options):
    """Return the errors of all methods, the choice and the seconds."""
    data = SETTINGS[name][0](seed)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MNPCA(**options).fit(data.Y)
    seconds = time.process_time() - started
    estimates = (
        pca(data.Y, data.rank),
        shrunken_pca(data.Y, data.rank),
        model.denoise(),
        oracle(data),
    )
    errors = [decibels(each, data.signal) for each in estimates]
    noise = "/".join(
        f"{side['structure'][0]}{side['n_edges'] or ''}" for side in model.noise_.values()
    )
    return errors, model.n_components_, noise, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", default="*", help="names, globs, separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--given", action="store_true", help="give the true rank")
    options = parser.parse_args()
    globs = options.settings.split(",")
    chosen = [name for name in SETTINGS if any(fnmatch.fnmatch(name, each) for each in globs)]
    print(
        f"{'setting':22s} {'PCA':>6s} {'shrunk':>6s} {'MNPCA':>6s} {'oracle':>6s} {'gap':>6s} "
        f"{'bar':>5s} {'worst':>6s} {'sec':>5s}  rank: found; noise"
    )
    for name in chosen:
        make = SETTINGS[name][0]
        arguments = {"n_components": make(0).rank} if options.given else {}
        runs = Parallel(options.jobs)(
            delayed(measure)(name, seed, arguments)
            for seed in range(options.first, options.first + options.seeds)
        )
        errors = np.array([run[0] for run in runs])
        plain, shrunk, ours, best = np.median(errors, axis=0)
        reference = shrunk if name.startswith("white") else best
        gaps = errors[:, 2] - (errors[:, 1] if name.startswith("white") else errors[:, 3])
        found = ", ".join(f"{k} x{c}" for k, c in sorted(Counter(run[1] for run in runs).items()))
        noise = ", ".join(f"{k} x{c}" for k, c in Counter(run[2] for run in runs).items())
        gap, bar = ours - reference, SETTINGS[name][1]
        print(
            f"{name:22s} {plain:6.2f} {shrunk:6.2f} {ours:6.2f} {best:6.2f} {gap:6.2f}"
            f"{'!' if gap > bar or ours - plain > 0.3 else ' '}{bar:5.2f} {gaps.max():6.2f} "
            f"{np.median([run[3] for run in runs]):5.1f}  {make(0).rank}: {found}; {noise}",
            flush=True,
        )


if __name__ == "__main__":
    main()
