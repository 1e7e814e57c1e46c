"""Learned priors beside Gaussian ones: how much they gain, lose and cost.

    python benchmarks/priors.py paper        the paper's small data: PSNR, groups found, time
    python benchmarks/priors.py kinds        kinds of scores and loadings in correlated noise
    python benchmarks/priors.py random       problems of such kinds, drawn at random
    python benchmarks/priors.py gaussian     noise of the accuracy table, Gaussian factors
    python benchmarks/priors.py white        white noise, beside shrunken PCA and EB-PCA
    python benchmarks/priors.py threshold    one Gaussian component of known noise, near the limit
    python benchmarks/priors.py cells FILE   groups of cells5.npz
    python benchmarks/priors.py real FOLDER  hidden cells of real tables
    python benchmarks/priors.py edges        edges at c = 224, and of one noise step more
    python benchmarks/priors.py time         1000 x 2000

Errors are relative squared errors of the signal (in dB, or as they are), medians over seeds;
`covered` is the share of cells that the 90% interval of `denoise` covers. Seeds below 1000 are for
tuning.
"""

import argparse
import fnmatch
import itertools
import os
import time
import warnings
from unittest import mock

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp
from accuracy import SETTINGS
from held_out import NETWORKS, SMALL, matrix
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_paper_small, random_sparse_precision
from mnpca.engines.engine import DenseEngine
from mnpca.metrics import edge_recovery, psnr
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca import fit as fit_module
from mnpca.solvers.mnpca import fit_mnpca
from mnpca.solvers.mnpca.fit import signal_variance
from mnpca.solvers.mnpca.learned import learn_signal
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.noise_step import Memory, noise_step
from mnpca.solvers.mnpca.standardized import StandardizedData

#: Half the width of a 90% interval, in standard errors.
NINETY = 1.6449


def groups(size, k, rng):
    centers = rng.standard_normal((k + 1, k))
    return centers[rng.permutation(np.arange(size) * (k + 1) // size)]


def unequal_groups(size, k, rng):
    """Three groups of 90, 8.3 and 1.7 percent."""
    label = np.searchsorted([0.9, 0.983], (np.arange(size) + 0.5) / size)
    return rng.standard_normal((3, k))[rng.permutation(label)]


def sparse_factor(share):
    return lambda size, k, rng: rng.standard_normal((size, k)) * (rng.random((size, k)) < share)


#: Draws of a factor's rows.
FACTORS = {
    "gaussian": lambda size, k, rng: rng.standard_normal((size, k)),
    "two values": lambda size, k, rng: rng.choice([-1.0, 1.0], (size, k)),
    "three values": lambda size, k, rng: rng.choice([-1.0, 0.0, 1.0], (size, k)),
    "sparse": sparse_factor(0.1),
    "very sparse": sparse_factor(0.05),
    "groups": groups,
    "unequal groups": unequal_groups,
    "exponential": lambda size, k, rng: rng.exponential(size=(size, k)),
    "t3": lambda size, k, rng: rng.standard_t(3, (size, k)),
    "uniform": lambda size, k, rng: rng.uniform(-1.0, 1.0, (size, k)),
}

#: Scores, loadings, components and strengths in units of (n p)^(1/4), where the first component
#: of white noise can be detected; and the median error of EB-PCA (Zhong, Su and Fan 2022), run
#: from its authors' code on draws of the same kind.
WHITE = {
    "two values, weak": ("two values", "two values", 1, 1.6, 0.38),
    "two values, strong": ("two values", "two values", 1, 2.5, 0.044),
    "three values, weak": ("three values", "three values", 1, 1.6, 0.55),
    "three values, strong": ("three values", "three values", 1, 2.5, 0.22),
    "sparse, very weak": ("sparse", "sparse", 1, 1.2, 0.40),
    "sparse, weak": ("sparse", "sparse", 1, 1.6, 0.19),
    "sparse, strong": ("sparse", "sparse", 1, 2.5, 0.057),
    "groups, weak": ("groups", "groups", 2, (1.6, 1.3), 0.65),
    "groups, strong": ("groups", "groups", 2, (2.5, 2.0), 0.079),
    "two sparse, weak": ("sparse", "sparse", 2, (1.6, 1.3), 0.28),
    "two sparse, strong": ("sparse", "sparse", 2, (2.5, 2.0), 0.11),
    "sparse loadings, weak": ("gaussian", "very sparse", 2, (1.6, 1.3), 0.47),
    "sparse loadings, strong": ("gaussian", "very sparse", 2, (2.5, 2.0), 0.24),
    "gaussian, 2": ("gaussian", "gaussian", 2, (2.5, 2.0), 0.40),
    "gaussian, 5": ("gaussian", "gaussian", 5, (2.5, 2.25, 2.0, 1.9, 1.8), 0.52),
}
#: Pairs of scores and loadings in correlated noise.
KINDS = (
    ("groups", "gaussian"),
    ("groups", "sparse"),
    ("gaussian", "sparse"),
    ("exponential", "exponential"),
    ("t3", "t3"),
    ("uniform", "uniform"),
    ("unequal groups", "gaussian"),
    ("gaussian", "gaussian"),
)
SHAPES, CONDITIONS, RANKS, STRENGTHS = ((300, 200), (60, 40)), (8, 224), (2, 5), (1.2, 2.0)


def draw(rows, cols, shape, k, condition, strengths, seed):
    """Return data and signal whose whitened singular values are about the strengths."""
    n, p = shape
    rng = np.random.default_rng(seed)
    scores, loadings = FACTORS[rows](n, k, rng), FACTORS[cols](p, k, rng)
    if "groups" in rows:
        scores = scores - scores.mean(axis=0)
    precisions = [
        random_sparse_precision(
            size, max(0.01, 1.5 / size), condition, int(rng.integers(2**31))
        ).toarray()
        if condition > 1
        else np.eye(size)
        for size in shape
    ]
    for factor, precision in zip((scores, loadings), precisions, strict=True):
        factor /= np.sqrt(np.einsum("ik,ij,jk->k", factor, precision, factor)) + 1e-300
    signal = (scores * np.broadcast_to(strengths, (k,))) @ loadings.T
    noise = rng.standard_normal(shape)
    for axis, precision in enumerate(precisions):
        root = np.linalg.cholesky(precision)
        noise = np.linalg.solve(root.T, noise) if axis == 0 else np.linalg.solve(root.T, noise.T).T
    return signal + noise, signal


def error(estimate, signal):
    return float(np.sum((estimate - signal) ** 2) / np.sum(signal**2))


def shrunken_pca(Y, rank):
    """Return PCA with the singular values that are optimal in white noise of variance one."""
    n, p = Y.shape
    left, values, right = np.linalg.svd(Y, full_matrices=False)
    ratio, scaled = p / n, values[:rank] / np.sqrt(n)
    inside = np.maximum((scaled**2 - ratio - 1) ** 2 - 4 * ratio, 0.0)
    shrunk = np.where(scaled > 1 + np.sqrt(ratio), np.sqrt(inside) / scaled, 0.0) * np.sqrt(n)
    return (left[:, :rank] * shrunk) @ right[:rank]


def quiet(function):
    def run(*arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*arguments)

    return run


def before_priors(Y, rank=None):
    """Return what the search hands to the learning of priors: engine, noise, posterior."""
    with mock.patch.object(fit_module, "learn_signal", wraps=learn_signal) as spy:
        fit_mnpca(Y, rank, prior="gaussian")
    return spy.call_args.args[:3]


def under(prior, Y, engine, noise, posterior):
    """Return the fields of a fit under a prior."""
    learned = learn_signal(engine, noise, posterior, prior)
    units = StandardizedData.of(Y, "auto", "auto")
    return fit_module.posterior_fields(learned, noise, units, posterior.svd)


def signal_of(fields):
    return fields["low_rank"].dense() + fields["mean"]


@quiet
def under_both_priors(Y, signal, rank=None):
    """Return (error, covered, families) under Gaussian and under learned priors.

    The search does not depend on the prior, so that one serves both.
    """
    found = before_priors(Y, rank)
    results = []
    for prior in ("gaussian", "auto"):
        fields = under(prior, Y, *found)
        estimate, std = signal_of(fields), np.sqrt(fields["signal_variance"].dense())
        covered = float(np.mean(np.abs(estimate - signal) <= NINETY * std))
        families = "/".join(each.family for each in fields["priors"])
        results.append((error(estimate, signal), covered, families))
    return results


@quiet
def paper_case(c, seed):
    data = make_paper_small(c=c, seed=seed)
    row = {}
    for prior in ("gaussian", "auto"):
        model, spent = timed(data.Y, prior)
        mean, std = model.denoise(return_std=True)
        covered = float(np.mean(np.abs(mean - data.signal) <= NINETY * std))
        row[prior] = (psnr(mean, data.signal), covered, spent)
    row["rand"] = rand_index(model, data.labels)
    return row


def timed(Y, prior):
    """Return a fit and its processor time."""
    began = time.process_time()
    model = MNPCA(prior=prior).fit(Y)
    return model, time.process_time() - began


def rand_index(model, labels):
    found = model.priors_["rows"]["groups"]
    return 0.0 if found is None else adjusted_rand_score(labels, found.argmax(axis=1))


def paper(options, parallel):
    print("    c   gaussian    learned   worst  covered   Rand index   time of gaussian")
    for c in (8, 32, 96, 224):
        rows = parallel(delayed(paper_case)(c, seed) for seed in options.seed_list)
        gaussian, learned = (np.array([row[name] for row in rows]) for name in ("gaussian", "auto"))
        print(
            f"{c:5d} {gaussian[:, 0].mean():8.2f} dB {learned[:, 0].mean():7.2f} dB "
            f"{learned[:, 0].min():7.2f} {learned[:, 1].mean():7.3f} "
            f"{np.mean([row['rand'] for row in rows]):10.3f} "
            f"{learned[:, 2].sum() / gaussian[:, 2].sum():14.2f}",
            flush=True,
        )


def kinds_case(rows, cols, shape, k, condition, strength, seed):
    unit = np.sqrt(shape[0]) + np.sqrt(shape[1])
    Y, signal = draw(rows, cols, shape, k, condition, strength * unit, seed)
    return under_both_priors(Y, signal, k)


def show_gains(name, cases):
    """Print a row for one setting; return the gains in dB."""
    gaussian, learned = (np.array([case[number][:2] for case in cases]) for number in (0, 1))
    gains = 10 * np.log10(learned[:, 0] / gaussian[:, 0])
    print(
        f"{name:55s} {10 * np.log10(np.median(gaussian[:, 0])):7.2f} {np.median(gains):+6.2f} "
        f"{gains.max():+6.2f}  {gaussian[:, 1].mean():.3f} {learned[:, 1].mean():.3f}  "
        f"{cases[0][1][2]}",
        flush=True,
    )
    return gains


GAINS_TITLE = "setting: error under Gaussian priors, gain, worst (dB); covered by each; families"


def kinds(options, parallel):
    print("scores x loadings, shape, components, condition, strength in noise edges;", GAINS_TITLE)
    worst = -np.inf
    for shape, condition, k, strength, (rows, cols) in itertools.product(
        SHAPES, CONDITIONS, RANKS, STRENGTHS, KINDS
    ):
        name = f"{rows} x {cols}, {shape[0]} x {shape[1]}, {k}, {condition}, {strength}"
        if fnmatch.fnmatch(name, options.settings):
            setting = (rows, cols, shape, k, condition, strength)
            cases = parallel(delayed(kinds_case)(*setting, seed) for seed in options.seed_list)
            worst = max(worst, show_gains(name, cases).max())
    print(f"largest loss {worst:.2f} dB")


def random_case(seed):
    rng = np.random.default_rng(seed)
    rows, cols = KINDS[rng.integers(len(KINDS))]
    shape, condition, k = SHAPES[rng.integers(2)], rng.choice(CONDITIONS), rng.integers(1, 6)
    strength = rng.uniform(*STRENGTHS)
    name = f"{seed}: {rows} x {cols}, {shape[0]} x {shape[1]}, {k}, {condition}, {strength:.2f}"
    return name, kinds_case(rows, cols, shape, k, condition, strength, seed)


def random(options, parallel):
    print(GAINS_TITLE)
    cases = parallel(delayed(random_case)(seed) for seed in options.seed_list)
    gains = np.concatenate([show_gains(name, [case]) for name, case in cases])
    print(f"mean {gains.mean():.2f} dB, largest {gains.max():.2f}, {np.sum(gains > 0.1)} above .1")


def gaussian_case(setting, k, seed):
    """Take the noise of a setting of the accuracy table and a signal of Gaussian factors."""
    data = SETTINGS[setting][0](seed)
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((size, k)) for size in data.Y.shape)
    signal = left @ right.T
    signal *= np.linalg.norm(data.signal) / np.linalg.norm(signal)
    return under_both_priors(data.Y - data.signal + signal, signal, k)


def gaussian(options, parallel):
    print(GAINS_TITLE)
    every = []
    for setting, k in itertools.product(SETTINGS, (1, 2, 5)):
        if fnmatch.fnmatch(setting, options.settings):
            cases = parallel(delayed(gaussian_case)(setting, k, seed) for seed in options.seed_list)
            every.append(show_gains(f"{setting}, {k}", cases))
    print(f"mean loss {np.mean(every):.3f} dB, largest {np.max(every):.3f} dB")


def white_case(name, seed):
    rows, cols, k, strengths, _ = WHITE[name]
    shape = (300, 200)
    unit = np.prod(shape) ** 0.25
    Y, signal = draw(rows, cols, shape, k, 1, np.multiply(strengths, unit), seed)
    results = under_both_priors(Y, signal, k)
    return error(shrunken_pca(Y, k), signal), results[0][0], results[1][0], results[1][1]


def white(options, parallel):
    print("                          shrunken PCA  gaussian  learned  EB-PCA   ratio   covered")
    ratios = []
    for name, (*_, rival) in WHITE.items():
        if not fnmatch.fnmatch(name, options.settings):
            continue
        cases = parallel(delayed(white_case)(name, seed) for seed in options.seed_list)
        pca, gaussian, learned, _ = np.median(cases, axis=0)
        ratios.append(learned / rival)
        print(
            f"{name:26s} {pca:8.3f} {gaussian:10.3f} {learned:8.3f} {rival:8.3f} "
            f"{learned / rival:8.2f} {np.mean(cases, axis=0)[3]:8.2f}",
            flush=True,
        )
    print(f"geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.2f}")


def threshold_noise(name, size, seed):
    if name == "white":
        return AxisPrecision.diagonal(np.ones(size))
    if name == "AR(.8)":
        return AxisPrecision.from_precision(sp.csr_array(chain_precision(size, 0.8)))
    precision = random_sparse_precision(size, 0.01, 224, np.random.RandomState(seed))
    return AxisPrecision.from_precision(sp.csr_array(precision))


def least_error(strength, row, col):
    """Return the smallest error that Gaussian factors of unit variance allow, relative.

    ``g_u = s^2 sum_l b_l^2 g_v / (1 + b_l g_v)`` and the same for g_v; of the whole signal
    ``1 - m_u m_v`` is left, m the mean share of a factor's variance that is found.
    """
    a, b = row.eigenvalues, col.eigenvalues
    found_u, found_v = 1e6, 1e6
    for _ in range(5000):
        found_u = strength**2 * np.sum(b**2 * found_v / (1 + b * found_v))
        found_v = strength**2 * np.sum(a**2 * found_u / (1 + a * found_u))
    return 1.0 - np.mean(a * found_u / (1 + a * found_u)) * np.mean(b * found_v / (1 + b * found_v))


@quiet
def threshold_case(name, multiple, seed):
    n, p = 300, 200
    rng = np.random.default_rng(seed)
    row, col = threshold_noise(name, n, seed), threshold_noise(name, p, seed + 1)
    limit = (np.sum(row.eigenvalues**2) * np.sum(col.eigenvalues**2)) ** -0.25
    strength = multiple * limit
    signal = strength * np.outer(rng.standard_normal(n), rng.standard_normal(p))
    noise = row.color(col.color(rng.standard_normal((n, p)).T).T)
    engine = DenseEngine(signal + noise)
    start = low_rank_step(engine, row, col, 1, center=False, max_sweeps=20)
    both = NoiseModel(row, col)
    learned = learn_signal(engine, both, start, "gaussian")
    estimates = [part.left @ part.right.T for part in (start, learned)]
    variance = signal_variance(learned, both).dense()
    covered = np.mean(np.abs(estimates[1] - signal) <= NINETY * np.sqrt(variance))
    return (
        np.sum((estimates[0] - signal) ** 2),
        np.sum((estimates[1] - signal) ** 2),
        least_error(strength, row, col) * strength**2 * n * p,
        np.sum(signal**2),
        covered,
    )


def threshold(options, parallel):
    print(
        "noise, strength: error of mean field and of message passing over the least (dB), of the "
        "latter over that of zero; covered"
    )
    for name in ("white", "AR(.8)", "c = 224"):
        for multiple in (1.1, 1.3, 1.6, 2.0, 3.0, 5.0):
            cases = np.array(
                parallel(delayed(threshold_case)(name, multiple, s) for s in options.seed_list)
            )
            field, passing, least, size, covered = cases.mean(axis=0)
            print(
                f"{name:8s} {multiple:4.1f} {10 * np.log10(field / least):+7.2f} "
                f"{10 * np.log10(passing / least):+7.2f} {passing / size:8.3f} {covered:7.3f}",
                flush=True,
            )


def cells(options, parallel):
    stored = np.load(options.path)
    Y = np.log1p(1e4 * stored["counts"][:, :500] / stored["library"][:, None])
    model, _ = timed(Y[:, Y.std(axis=0) > 0], "auto")
    print(f"Rand index {rand_index(model, stored['labels']):.3f}, {model.n_components_} components")


@quiet
def real_case(name, folder, seed):
    """Return the errors of hidden cells, columns standardized."""
    X = matrix(name, folder)
    hidden = np.random.default_rng(seed).random(X.shape) < 0.05
    holes = np.where(hidden, np.nan, X)
    fills = [MNPCA(prior=prior).fit(holes).impute() for prior in ("gaussian", "auto")]
    return [float(np.sqrt(np.mean((fill - X)[hidden] ** 2))) for fill in fills]


def real(options, parallel):
    print("set: error under Gaussian priors, under learned ones over it")
    ratios = []
    for name in (*SMALL, *NETWORKS):
        if fnmatch.fnmatch(name, options.settings):
            cases = parallel(
                delayed(real_case)(name, options.path, seed) for seed in options.seed_list
            )
            gaussian, learned = np.mean(cases, axis=0)
            ratios.append(learned / gaussian)
            print(f"{name:16s} {gaussian:.4f} {ratios[-1]:.4f}", flush=True)
    print(f"mean {np.mean(ratios):.4f}, largest {np.max(ratios):.4f}")


@quiet
def edges_case(seed):
    """Return recall and precision of the edges, and the error, of a fit and of one step more."""
    data = make_paper_small(c=224, seed=seed)
    engine, noise, posterior = before_priors(data.Y)
    learned = learn_signal(engine, noise, posterior)
    results = []
    for signal in (None, posterior, learned):
        then, start = noise, posterior
        if signal is not None:
            then = noise_step(engine, signal, noise, "graph", "graph", Memory())
            start = low_rank_step(
                engine, then.row, then.col, posterior.rank, center=posterior.centered
            )
        for side, truth in ((then.row, data.row_precision), (then.col, data.col_precision)):
            found = edge_recovery(side.precision, truth)
            results += [found.tpr, found.ppv]
        fields = under("auto", data.Y, engine, then, start)
        results.append(psnr(signal_of(fields), data.signal))
    return results


def edges(options, parallel):
    cases = parallel(delayed(edges_case)(seed) for seed in options.seed_list)
    print("noise: recall and precision of row edges, of column edges, PSNR")
    names = ("of the fit", "a step after the Gaussian signal", "a step after the learned signal")
    for name, values in zip(names, np.mean(cases, axis=0).reshape(3, 5), strict=True):
        print(f"{name:33s}" + "".join(f"{value:7.3f}" for value in values))


@quiet
def time_case(seed):
    data = make_paper_small(c=32, seed=seed, n_samples=1000, n_features=2000)
    return [timed(data.Y, prior)[1] for prior in ("gaussian", "auto")]


def times(options, parallel):
    for seed in options.seed_list:
        gaussian, learned = time_case(seed)
        print(
            f"{gaussian:.1f} s under Gaussian priors, {learned / gaussian:.2f} times that learned"
        )


TABLES = {
    "paper": paper,
    "kinds": kinds,
    "random": random,
    "gaussian": gaussian,
    "white": white,
    "threshold": threshold,
    "cells": cells,
    "real": real,
    "edges": edges,
    "time": times,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("path", nargs="?", default=os.environ.get("MNPCA_DATA"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--settings", default="*", help="pattern of the settings' names")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.seed_list = range(options.first, options.first + options.seeds)
    TABLES[options.table](options, Parallel(n_jobs=options.jobs))


if __name__ == "__main__":
    main()
