"""MNPCA beside the tools that people use today, on data with a known truth.

Signal: PSNR (dB) of the low-rank part and how well k-means on the scores finds the three groups
(normalized mutual information, percent). Networks: the share of true edges among the strongest ones
of each tool, as many as MNPCA shows, which says itself how many it can tell.

The others get what they cannot choose: the true numbers of components and of edges. GmGM and the
graphical lasso model no signal, so both are also given what is left of the data without the
components of PCA.

    pip install GmGM
    python benchmarks/rivals.py --seeds 3000 3001 3002 3003 3004
"""

import argparse
import importlib.util
import os
import time
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp
from accuracy import SETTINGS
from sklearn.decomposition import PCA, FactorAnalysis

from mnpca import MNPCA, sparse_precision
from mnpca.metrics import nmi, psnr

N_COMPONENTS = 2
ROWS = ("300x200 c=8", "300x200 c=32", "300x200 c=224", "300x200 AR(.5)")


# ---- each tool: from a matrix and the numbers of edges, among rows and among columns, to
# ---- (signal, scores, row precision, column precision)


def by_pca(Y, n_edges=None):
    model = PCA(N_COMPONENTS).fit(Y)
    scores = model.transform(Y)
    return model.inverse_transform(scores), scores, None, None


def by_factor_analysis(Y, n_edges=None):
    model = FactorAnalysis(N_COMPONENTS).fit(Y)
    scores = model.transform(Y)
    return scores @ model.components_ + model.mean_, scores, None, None


def by_mnpca(Y, n_edges=None):
    """All defaults: nothing is given."""
    model = MNPCA().fit(Y)
    return model.denoise(), model.transform(Y), model.row_precision_, model.col_precision_


def by_gmgm(Y, n_edges):
    from GmGM import Dataset, GmGM

    shares = {
        axis: 2 * count / (size * (size - 1))
        for axis, count, size in zip(("rows", "columns"), n_edges, Y.shape, strict=True)
    }
    data = Dataset(dataset={"Y": Y.copy()}, structure={"Y": ("rows", "columns")})
    found = GmGM(data, to_keep=shares, threshold_method="overall").precision_matrices
    return None, None, found["rows"], found["columns"]


def by_graphical_lasso(Y, n_edges):
    """One graph for the columns from the rows, and the other way round."""
    return None, None, graph_of(Y.T, n_edges[0]), graph_of(Y, n_edges[1])


def graph_of(samples, wanted):
    """Graphical lasso of the columns' correlations, with about the wanted number of edges."""
    correlation = np.corrcoef(samples.T)
    low, high, result = 0.0, 1.0, None
    for _ in range(12):
        alpha = (low + high) / 2
        result = sparse_precision(correlation, alpha, init=result)
        n_edges = (result.precision.nnz - len(correlation)) // 2
        low, high = (alpha, high) if n_edges > wanted else (low, alpha)
    return result.precision


def without_components(tool):
    """Give a tool what is left of the data without the components of PCA."""
    return lambda Y, n_edges: tool(Y - by_pca(Y)[0], n_edges)


TOOLS = {
    "PCA": by_pca,
    "factor analysis": by_factor_analysis,
    "graphical lasso": by_graphical_lasso,
    "PCA, then graphical lasso": without_components(by_graphical_lasso),
    "GmGM": by_gmgm,
    "PCA, then GmGM": without_components(by_gmgm),
    "MNPCA": by_mnpca,
}


# ---- the table ---------------------------------------------------------------------------------


def measure(data, tools):
    """Return, by tool, PSNR, NMI, true shares of row and of column edges, seconds; nan for none.

    And the numbers of edges that MNPCA shows, and of those that there are.
    """
    truths = (data.row_precision, data.col_precision)
    there = [n_edges_of(truth) for truth in truths]
    found, seconds = {}, {}
    for name, tool in tools.items():
        start = time.process_time()
        found[name] = tool(data.Y, there)
        seconds[name] = time.process_time() - start
    shown = [n_edges_of(network) for network in found["MNPCA"][2:]]
    figures = {}
    for name, (signal, scores, *networks) in found.items():
        figures[name] = [
            np.nan if signal is None else psnr(signal, data.signal),
            np.nan if scores is None else nmi(scores, data.labels),
            *map(true_share, networks, truths, shown),
            seconds[name],
        ]
    return figures, [*shown, *there]


def n_edges_of(precision):
    return (precision.nnz - precision.shape[0]) // 2


def true_share(network, truth, count):
    """Share of true edges among the strongest ones of a network."""
    if network is None or count == 0:
        return np.nan
    upper = sp.coo_array(sp.triu(sp.coo_array(network), k=1))
    strongest = np.argsort(-np.abs(upper.data), kind="stable")[:count]
    row, column = upper.coords
    return np.mean(truth.toarray()[row[strongest], column[strongest]] != 0)


def in_words(figures):
    """Return the cells of a line of the table, empty where a tool says nothing."""
    forms = ("{:.1f}", "{:.0f}", "{:.0%}", "{:.0%}", "{:.2f}")
    cells = map(str.format, forms, figures)
    return ["" if np.isnan(value) else cell for value, cell in zip(figures, cells, strict=True)]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(SETTINGS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[3000, 3001, 3002])
    options = parser.parse_args()
    tools = dict(TOOLS)
    if importlib.util.find_spec("GmGM") is None:
        print("GmGM: absent\n")
        tools = {name: tool for name, tool in tools.items() if "GmGM" not in name}
    warnings.simplefilter("ignore")  # of the others
    measure(SETTINGS[options.rows[0]][0](0), tools)  # imports and compilation
    print("| data | tool | PSNR | groups | row edges | column edges | seconds |")
    print("|---|---|---|---|---|---|---|")
    for row in options.rows:
        runs, counts = zip(
            *(measure(SETTINGS[row][0](s), tools) for s in options.seeds), strict=True
        )
        for name in tools:
            means = np.mean([run[name] for run in runs], axis=0)
            print(f"| {row} | {name} | " + " | ".join(in_words(means)) + " |", flush=True)
        rows, columns, all_rows, all_columns = np.mean(counts, axis=0)
        print(
            f"| {row} | edges shown by MNPCA | | | {rows:.0f} of {all_rows:.0f} "
            f"| {columns:.0f} of {all_columns:.0f} | |",
            flush=True,
        )


if __name__ == "__main__":
    main()
