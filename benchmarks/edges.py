"""Error rates of tested edges, beside the fit's own edges and two tests from the literature.

For every cell and both axes, means over seeds: the false discovery proportion (FDP) of the edges
at q = .05, .1 and .2; the share of the true edges found (recall) at q = .05; FDP and recall of the
edges that the fit whitens with; FDP and recall at q = .05 of the tests of Xia and Li (2017) and
Chen and Liu (2019) on the residual of PCA (`--rivals`); how many 95% intervals of true edges hold
the true partial correlation. Seeds below 2000 were used for tuning.

    python benchmarks/edges.py                          # all cells, 10 seeds
    python benchmarks/edges.py "c=224" --seeds 50 --rivals
    python benchmarks/edges.py null --seeds 50          # data without edges
    python benchmarks/edges.py groups --seeds 50        # two groups of rows
    python benchmarks/edges.py cost                     # seconds beside the fit's
    python benchmarks/edges.py stocks --file stocks.npz # daily returns: edges within sectors
"""

import argparse
import fnmatch
import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp
from accuracy import chains, paper
from joblib import Parallel, delayed
from scipy.special import ndtri
from scipy.stats import kstest
from sklearn.linear_model import lasso_path

from mnpca import MNPCA
from mnpca.datasets import (
    make_low_rank_matrix_normal,
    make_paper_large,
    random_sparse_precision,
)
from mnpca.datasets._noise import color_rows
from mnpca.noise import edges as noise_edges
from mnpca.noise.edges import compare_tests, p_values, q_values
from mnpca.precision import sparse_precision
from mnpca.solvers.mnpca.edge_tests import edge_tests
from mnpca.solvers.mnpca.fit import fit_mnpca

#: Coverage needs every true edge in the list; the cost is that of the list as users get it.
LISTED = noise_edges.LISTED
noise_edges.LISTED = 10_000_000
RATES = (0.05, 0.1, 0.2)
RANK = 2
WHITE_ROWS, WHITE_COLS = (sp.eye_array(size, format="csr") for size in (300, 200))


def heavy_tails(c):
    """Matrix normal noise with t3 entries in the place of the normal ones."""

    def make(seed):
        data = paper(c)(seed)
        white = np.random.RandomState(seed).standard_t(3, size=data.Y.shape) / np.sqrt(3)
        rows = color_rows(data.row_precision, white)
        data.Y = data.signal + color_rows(data.col_precision, rows.T).T
        return data

    return make


CELLS = {
    "300x200 c=8": paper(8),
    "300x200 c=32": paper(32),
    "300x200 c=224": paper(224),
    "300x200 density .03 c=32": paper(32, density=0.03),
    "300x200 density .03 c=224": paper(224, density=0.03),
    "300x200 density .1 c=32": paper(32, density=0.1),
    "300x200 density .1 c=224": paper(224, density=0.1),
    "300x200 AR(.5)": chains(0.5),
    "300x200 rows only c=32": paper(32, col_precision=WHITE_COLS),
    "300x200 columns only c=32": paper(32, row_precision=WHITE_ROWS),
    "300x200 t3 c=32": heavy_tails(32),
    "600x100 c=32": paper(32, 600, 100),
    "600x100 density .03 c=32": paper(32, 600, 100, density=0.03),
    "150x400 c=32": paper(32, 150, 400),
    "1000x2000": lambda seed: make_paper_large(2000, seed),
}
#: Data sets in which axes (0 rows, 1 columns) have no edge: cell -> axes.
NULL_CELLS = {
    "null 300x200 c=1": (paper(1), (0, 1)),
    "null white rows, columns c=32": (paper(32, row_precision=WHITE_ROWS), (0,)),
    "null white rows, columns c=224": (paper(224, row_precision=WHITE_ROWS), (0,)),
    "null rows c=32, white columns": (paper(32, col_precision=WHITE_COLS), (1,)),
}
AXES = ("rows", "columns")


def tested(Y, rank):
    """Return a fit with networks and the tests of rows and of columns.

    They do not depend on the prior of scores and loadings.
    """
    fit = fit_mnpca(Y, rank, noise="graph", prior="gaussian")
    return fit, edge_tests(Y, fit)


def true_edges(precision):
    """Return the keys i * q + j of the edges and their partial correlations."""
    upper = sp.coo_array(sp.triu(precision, k=1))
    i, j = (index.astype(np.int64) for index in upper.coords)
    scale = np.sqrt(precision.diagonal())
    kept = np.abs(upper.data) > 1e-12
    return (i * len(scale) + j)[kept], (-upper.data / (scale[i] * scale[j]))[kept]


def errors(found, true):
    """Return false discovery proportion and recall; recall of nothing is not a number."""
    hits = np.isin(found, true).sum()
    fdp = 1.0 - hits / len(found) if len(found) else 0.0
    return fdp, hits / len(true) if len(true) else np.nan


def measure(cell, seed, rank, rivals):
    """Return the figures of rows and of columns of one data set."""
    data = CELLS[cell](seed)
    fit, both = tested(data.Y, rank)
    figures = []
    for side, tests, truth, used in zip(
        AXES,
        both,
        (data.row_precision, data.col_precision),
        (fit.row_noise.precision, fit.col_noise.precision),
        strict=True,
    ):
        true, value = true_edges(truth)
        keys = tests.first * tests.n_items + tests.second
        row = [errors(keys[tests.q <= rate], true) for rate in RATES]
        row += [errors(true_edges(used)[0], true)]
        at = np.searchsorted(keys, true)
        off = np.abs(tests.partial_correlation[at] - value) / tests.standard_error[at]
        row += [(np.mean(off <= 1.96) if len(true) else np.nan, np.nan)]
        for rival in (xia_li, chen_liu) if rivals else ():
            row += [errors(rival(pca_residual(data.Y, side)), true)]
        figures.append(row)
    return figures


def pca_residual(Y, side):
    """Return what PCA leaves over, items of the side in columns."""
    centered = Y - Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(centered, full_matrices=False)
    residual = centered - (U[:, :RANK] * s[:RANK]) @ Vt[:RANK]
    return residual if side == "columns" else residual.T


def xia_li(residual, rate=0.05):
    """Edges of Xia and Li (2017): whiten the other side, regress every item on all others."""
    m, size = residual.shape
    other = residual @ residual.T / size
    scale = np.sqrt(np.diag(other))
    other /= np.outer(scale, scale)
    precision = sparse_precision(other, np.sqrt(np.log(m) / size)).precision.toarray()
    values, vectors = np.linalg.eigh(precision)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return _edges_of_regressions(root @ (residual / scale[:, None]), 1.0, rate)


def chen_liu(residual, rate=0.05):
    """Edges of Chen and Liu (2019): correct the variance for the other side's correlation."""
    m, size = residual.shape
    other = residual @ residual.T / size
    scale = np.sqrt(np.outer(np.diag(other), np.diag(other)))
    large = np.abs(other) >= 2.0 * scale * np.sqrt(np.log(m) / size)
    inflation = m * np.sum(np.where(large, other, 0.0) ** 2) / np.trace(other) ** 2
    return _edges_of_regressions(residual, inflation, rate)


def _edges_of_regressions(rows, inflation, rate):
    """Test the residuals of lasso regressions of every column on all others.

    The penalty is delta sqrt(log q / m), with the delta for which the statistics look most like
    standard normal ones, as Liu (2013) chooses it.
    """
    m, size = rows.shape
    rows = rows / np.sqrt(np.mean(rows**2, axis=0))
    deltas = np.array([2.0, 1.5, 1.0, 0.75, 0.5])
    coefs = np.zeros((len(deltas), size, size))
    for item in range(size):
        others = np.delete(np.arange(size), item)
        alphas = deltas * np.sqrt(np.log(size) / m)
        _, path, _ = lasso_path(rows[:, others], rows[:, item], alphas=alphas, tol=1e-3)
        coefs[:, item, others] = path.T
    i, j = np.triu_indices(size, 1)
    best = None
    for coef in coefs:
        innovations = rows - rows @ coef.T
        covariance = innovations.T @ innovations / m
        variances = np.diag(covariance)
        weighted = coef * variances
        score = covariance + weighted + weighted.T
        z = np.sqrt(m / inflation) * (score / np.sqrt(np.outer(variances, variances)))[i, j]
        levels = np.arange(1, 11) / 20.0
        expected = -ndtri(levels / 2.0)
        tails = np.array([np.mean(np.abs(z) >= level) for level in expected])
        misfit = np.sum((tails / levels - 1.0) ** 2)
        if best is None or misfit < best[0]:
            best = misfit, z
    q = q_values(p_values(best[1]), len(i))
    return (i * size + j)[q <= rate]


def measure_null(cell, seed):
    """Return, for each axis, whether an edge is listed at each rate, and Kolmogorov-Smirnov's p."""
    make, axes = NULL_CELLS[cell]
    _, both = tested(make(seed).Y, RANK)
    return [
        [
            *((both[axis].q <= rate).any() for rate in RATES),
            kstest(both[axis].p, "uniform").pvalue,
        ]
        for axis in axes
    ]


def two_groups(seed, n_changed, size=100, n=300, strength=0.4):
    """Return two data sets of the same columns; some column edges of the second are gone.

    Disjoint pairs carry the edges that change, so that the change is `strength` and the rest of
    the network stays as it is.
    """
    rng = np.random.RandomState(seed)
    kept = random_sparse_precision(size, 0.02, 8.0, rng).tolil()
    pairs = rng.permutation(size)[: 2 * n_changed].reshape(-1, 2)
    for item in pairs.ravel():
        value = kept[item, item]
        kept[item, :] = 0.0
        kept[:, item] = 0.0
        kept[item, item] = value
    changed = kept.copy()
    for i, j in pairs:
        changed[i, j] = changed[j, i] = -strength
    groups = [
        make_low_rank_matrix_normal(
            n, size, RANK, col_precision=sp.csr_array(each), random_state=rng
        )
        for each in (changed, kept)
    ]
    return groups, {(min(pair), max(pair)) for pair in pairs.tolist()}


def differences(groups):
    """Return the pairs of columns that differ between two data sets."""
    table = compare_tests(*(tested(group.Y, RANK)[1][1] for group in groups))
    found = table.q <= RATES[0]
    return set(zip(table.first[found].tolist(), table.second[found].tolist(), strict=True))


def measure_groups(seed):
    """Return false differences of equal networks, and recall and FDP of ten changed edges."""
    same, _ = two_groups(seed, 0)
    groups, changed = two_groups(seed, 10)
    found = differences(groups)
    return [
        bool(differences(same)),
        len(found & changed) / len(changed),
        len(found - changed) / max(len(found), 1),
    ]


def print_cost(seeds):
    """Print the processor time of the tests beside that of the fit."""
    noise_edges.LISTED = LISTED
    for name in ("300x200 c=32", "1000x2000"):
        seconds = []
        for seed in (0, *seeds):  # the first one compiles
            Y = CELLS[name](seed).Y
            began = time.process_time()
            fit = fit_mnpca(Y, RANK)
            between = time.process_time()
            edge_tests(Y, fit)
            seconds.append((between - began, time.process_time() - between))
        fit_seconds, test_seconds = np.median(seconds[1:], axis=0)
        print(
            f"{name:28s} fit {fit_seconds:.2f} s, tests {test_seconds:.2f} s, "
            f"ratio {test_seconds / fit_seconds:.2f}"
        )


def print_stocks(file):
    """Print the share of edges within sectors: X, days x stocks, and col_labels, the sectors."""
    data = np.load(file)
    sector = data["col_labels"]
    model = MNPCA(10, noise="graph").fit(data["X"].astype(float))
    table = model.edges("columns")
    within = sector[table["node_1"]] == sector[table["node_2"]]
    i, j = model.col_precision_.nonzero()
    used = (sector[i] == sector[j])[i < j]
    print(
        f"stocks, rank 10: {len(table)} edges at q = .05, {within.mean():.1%} within a sector; "
        f"the fit's {len(used)} edges: {used.mean():.1%}"
    )


def print_cells(names, seeds, rank, options):
    head = "  ".join(f"{rate:4.2f}" for rate in RATES)
    print(f"{'cell':27s} {'axis':8s} FDP at {head} (+- at .05) recall", end="")
    print(" | fit: FDP recall | cover", end="")
    print(" | Xia-Li: FDP recall | Chen-Liu: FDP recall" if options.rivals else "")
    for name in names:
        few = [*seeds][:10] if name == "1000x2000" else seeds
        rivals = options.rivals and name != "1000x2000"
        runs = Parallel(options.jobs)(delayed(measure)(name, seed, rank, rivals) for seed in few)
        table = np.ma.masked_invalid(runs).mean(axis=0).filled(np.nan)
        errors_of_means = np.std(runs, axis=0)[:, 0, 0] / np.sqrt(len(runs))
        for axis, row, error in zip(AXES, table, errors_of_means, strict=True):
            rates = "  ".join(f"{row[k, 0]:.3f}"[1:] for k in range(3))
            print(
                f"{name:27s} {axis:8s}        {rates}  ({error:.3f})     {row[0, 1]:5.3f} |     "
                f"{row[3, 0]:5.3f} {row[3, 1]:5.3f}  | {row[4, 0]:5.3f}"
                + "".join(f" |         {fdp:5.3f} {recall:5.3f}" for fdp, recall in row[5:]),
                flush=True,
            )


def print_null(names, seeds, jobs):
    for name in names:
        runs = Parallel(jobs)(delayed(measure_null)(name, seed) for seed in seeds)
        for axis, figures in zip(NULL_CELLS[name][1], zip(*runs, strict=True), strict=True):
            figures = np.array(figures, dtype=float)
            shares = "  ".join(f"{share:.2f}" for share in figures[:, :3].mean(axis=0))
            print(
                f"{name:32s} {AXES[axis]:8s} data sets with an edge at .05, .1, .2: {shares}; "
                f"p uniform (Kolmogorov-Smirnov at 1%): {np.mean(figures[:, 3] >= 0.01):.0%}",
                flush=True,
            )


def print_groups(seeds, jobs):
    runs = np.array(Parallel(jobs)(delayed(measure_groups)(seed) for seed in seeds), dtype=float)
    alarms, recall, fdp = runs.mean(axis=0)
    print(
        f"two groups, 300 rows each, 100 columns: equal networks with a difference at .05: "
        f"{alarms:.2f}; ten changed edges of .4: {recall:.0%} found, FDP {fdp:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cell", nargs="?", default="*", help="cells that contain this (or a glob)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=2000, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rank", choices=["given", "auto"], default="given")
    parser.add_argument("--rivals", action="store_true", help="also the tests of the literature")
    parser.add_argument("--file", help="of the cell stocks")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    chosen = [
        name
        for name in [*CELLS, *NULL_CELLS, "groups", "cost", "stocks"]
        if fnmatch.fnmatch(name, f"*{options.cell}*")
    ]
    if any(name in CELLS for name in chosen):
        rank = RANK if options.rank == "given" else None
        print_cells([name for name in chosen if name in CELLS], seeds, rank, options)
    print_null([name for name in chosen if name in NULL_CELLS], seeds, options.jobs)
    if "groups" in chosen:
        print_groups(seeds, options.jobs)
    if "cost" in chosen:
        print_cost(seeds)
    if "stocks" in chosen and options.file:
        print_stocks(options.file)


if __name__ == "__main__":
    main()
