"""Error rates of tested edges, beside the fit's own edges and two tests from the literature.

For every cell, with ranks given and chosen, and for both axes, means over seeds: the false
discovery proportion (FDP) of the edges at q = .05, .1 and .2; the share of the true edges found
(recall) at q = .05; FDP and recall of the edges that the fit whitens with; how many 95% intervals
of true edges hold the true partial correlation. On an axis without an edge the FDP is the share of
data sets in which one is listed, and the share is shown in which the p-values pass
Kolmogorov-Smirnov at 1%. Seeds below 2000 were used for tuning.

    python benchmarks/edges.py --seeds 50 --fits fits   # all cells; fits are kept and reused
    python benchmarks/edges.py "c=224" --rank given
    python benchmarks/edges.py rivals --seeds 10        # Xia and Li (2017), Chen and Liu (2019)
    python benchmarks/edges.py groups --seeds 50        # two groups of rows
    python benchmarks/edges.py cost                     # seconds beside the fit's
    python benchmarks/edges.py many                     # memory and time of tests of 100,000 rows
    python benchmarks/edges.py stocks --file stocks.npz # daily returns: edges within sectors
"""

import argparse
import fnmatch
import os
import resource
import time
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import joblib
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
from mnpca.noise.edges import compare_tests, p_values, q_values, score_edges
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
    "300x200 c=1": paper(1),
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
    "300x200 columns only c=224": paper(224, row_precision=WHITE_ROWS),
    "300x200 t3 c=32": heavy_tails(32),
    "600x100 c=32": paper(32, 600, 100),
    "600x100 density .03 c=32": paper(32, 600, 100, density=0.03),
    "150x400 c=32": paper(32, 150, 400),
    "1000x2000": lambda seed: make_paper_large(2000, seed),
}
AXES = ("rows", "columns")


def fitted(Y, rank, folder=None, name=""):
    """Return a fit with networks, an earlier one of this name where the folder has it.

    The tests do not depend on the prior of scores and loadings.
    """
    path = Path(folder or ".") / f"{name}.fit"
    if folder and path.exists():
        return joblib.load(path)
    fit = fit_mnpca(Y, rank, noise="graph", prior="gaussian")
    if folder:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(fit, path, compress=3)
    return fit


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


def measure(cell, seed, rank, folder):
    """Return the figures of rows and of columns of one data set, by their names."""
    data = CELLS[cell](seed)
    fit = fitted(data.Y, rank, folder, f"{cell} rank {rank} seed {seed}")
    figures = []
    for tests, truth, used in zip(
        edge_tests(data.Y, fit),
        (data.row_precision, data.col_precision),
        (fit.row_noise.precision, fit.col_noise.precision),
        strict=True,
    ):
        true, value = true_edges(truth)
        keys, row = tests.keys, {}
        for rate in RATES:
            row[f"fdp {rate}"], row[f"recall {rate}"] = errors(keys[tests.q <= rate], true)
        row["fit fdp"], row["fit recall"] = errors(true_edges(used)[0], true)
        if len(true):
            at = np.searchsorted(keys, true)
            off = np.abs(tests.partial_correlation[at] - value) / tests.standard_error[at]
            row["coverage"] = np.mean(off <= 1.96)
        else:
            row["uniform"] = kstest(tests.p, "uniform").pvalue >= 0.01
        figures.append(row)
    return figures


def measure_rivals(cell, seed, folder):
    """Return FDP and recall at .05 of the tested edges and of the rivals, for both axes."""
    data = CELLS[cell](seed)
    fit = fitted(data.Y, RANK, folder, f"{cell} rank {RANK} seed {seed}")
    figures = []
    for side, tests, truth in zip(
        AXES, edge_tests(data.Y, fit), (data.row_precision, data.col_precision), strict=True
    ):
        found = tests.q <= RATES[0]
        lists = [tests.keys[found]]
        residual = pca_residual(data.Y, side)
        lists += [xia_li(residual), chen_liu(residual)]
        figures.append([errors(each, true_edges(truth)[0]) for each in lists])
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


def two_networks(seed, n_changed=10, size=100, strength=0.4):
    """Return two networks of the same items, and the edges of the first that the second lacks.

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
    edges = {(min(pair), max(pair)) for pair in pairs.tolist()}
    return sp.csr_array(changed), sp.csr_array(kept), edges


def measure_groups(seed, n=300):
    """Return false differences of equal networks, and recall and FDP of ten changed edges."""
    one, other, changed = two_networks(seed)
    networks = []
    for draw, precision in enumerate((one, other, other)):
        data = make_low_rank_matrix_normal(
            n, one.shape[0], RANK, col_precision=precision, random_state=3 * seed + draw
        )
        networks.append(edge_tests(data.Y, fitted(data.Y, RANK))[1])
    equal = compare_tests(*networks[1:])
    table = compare_tests(*networks[:2])
    listed = table.q <= RATES[0]
    found = set(zip(table.first[listed].tolist(), table.second[listed].tolist(), strict=True))
    return [
        (equal.q <= RATES[0]).any(),
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


def print_many(n, m=100):
    """Print time and largest memory of the tests of n rows with m columns, beside their network."""
    noise_edges.LISTED = LISTED
    block = random_sparse_precision(100, 0.03, 64.0, np.random.RandomState(2000))
    precision = sp.csr_array(sp.block_diag([block] * (n // 100)))
    white = np.random.default_rng(2000).standard_normal((n // 100, 100, m), dtype=np.float32)
    root = np.linalg.cholesky(np.linalg.inv(block.toarray())).astype(np.float32)
    residual = (root @ white).reshape(n, m)
    before, began = _largest_memory(), time.process_time()
    tests = score_edges(residual, np.zeros((n, 0), np.float32), precision, m)
    seconds = time.process_time() - began
    fdp, recall = errors(tests.keys[tests.q <= RATES[0]], true_edges(precision)[0])
    print(
        f"{n} rows, {m} columns: {seconds:.0f} s, {_largest_memory():.1f} GB (data {before:.1f}); "
        f"{len(tests.keys)} pairs listed; at .05 FDP {fdp:.3f}, recall {recall:.3f}"
    )


def _largest_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def print_cells(names, seeds, options):
    ranks = {"given": [RANK], "auto": [None], "both": [RANK, None]}[options.rank]
    heads = ("cell", "rank", "axis", "at .05", "at .1", "at .2", "recall at .05")
    print(*heads, "fit's edges: false, recall", "coverage", "p uniform", sep=" | ", flush=True)
    for name, rank in ((name, rank) for name in names for rank in ranks):
        few = [*seeds][:10] if name == "1000x2000" else seeds
        runs = Parallel(options.jobs)(
            delayed(measure)(name, seed, rank, options.fits) for seed in few
        )
        for axis, rows in zip(AXES, zip(*runs, strict=True), strict=True):
            error = np.std([row["fdp 0.05"] for row in rows]) / np.sqrt(len(rows))
            shown = {}
            for key in {key: None for row in rows for key in row}:
                values = [row[key] for row in rows if np.isfinite(row.get(key, np.nan))]
                shown.update({key: f"{np.mean(values):.3f}"} if values else {})
            print(
                name,
                "chosen" if rank is None else "given",
                axis + (" (no edge)" if "uniform" in shown else ""),
                f"{shown['fdp 0.05']} ± {error:.3f}",
                shown["fdp 0.1"],
                shown["fdp 0.2"],
                shown.get("recall 0.05", ""),
                ", ".join(shown[key] for key in ("fit fdp", "fit recall") if key in shown),
                shown.get("coverage", ""),
                shown.get("uniform", ""),
                sep=" | ",
                flush=True,
            )


def print_rivals(names, seeds, options):
    print("cell | axis | tested edges | Xia and Li | Chen and Liu   (FDP, recall at .05)")
    for name in names:
        runs = Parallel(options.jobs)(
            delayed(measure_rivals)(name, seed, options.fits) for seed in seeds
        )
        for axis, row in zip(AXES, np.mean(runs, axis=0), strict=True):
            print(name, axis, *(f"{f:.3f}, {r:.3f}" for f, r in row), sep=" | ", flush=True)


def print_groups(seeds, jobs):
    runs = np.array(Parallel(jobs)(delayed(measure_groups)(seed) for seed in seeds), dtype=float)
    alarms, recall, fdp = runs.mean(axis=0)
    print(
        f"two groups, 300 rows each, 100 columns: equal networks with a difference at .05: "
        f"{alarms:.2f}; ten changed edges of .4: {recall:.0%} found, FDP {fdp:.3f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cell", nargs="?", default="*", help="cells like this (a glob)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=2000, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rank", choices=["given", "auto", "both"], default="both")
    parser.add_argument("--fits", help="folder of fits: those in it are not made again")
    parser.add_argument("--rows", type=int, default=100_000, help="of the cell many")
    parser.add_argument("--file", help="of the cell stocks")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if options.cell == "rivals":
        rivals = [name for name in CELLS if name not in ("300x200 c=1", "1000x2000")]
        print_rivals(rivals, seeds, options)
    elif options.cell == "groups":
        print_groups(seeds, options.jobs)
    elif options.cell == "cost":
        print_cost(seeds)
    elif options.cell == "many":
        print_many(options.rows)
    elif options.cell == "stocks":
        print_stocks(options.file or parser.error("stocks needs --file"))
    else:
        chosen = [name for name in CELLS if fnmatch.fnmatch(name, f"*{options.cell}*")]
        print_cells(chosen, seeds, options)


if __name__ == "__main__":
    main()
