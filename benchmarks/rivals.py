"""MNPCA beside the tools that people use today, on data with a known truth.

Signal: PSNR (dB) of the low-rank part and how well k-means on the scores finds the three groups
(normalised mutual information, percent). Networks: the share of the true edges that is found, and
the share of true ones among those found.

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
from accuracy import SETTINGS
from sklearn.decomposition import PCA, FactorAnalysis

from mnpca import MNPCA, sparse_precision
from mnpca.metrics import edge_recovery, nmi, psnr

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


def measure(tool, data):
    """Return PSNR, NMI, recall and precision of row and of column edges, seconds; nan for none."""
    truths = (data.row_precision, data.col_precision)
    n_edges = [(truth.nnz - truth.shape[0]) // 2 for truth in truths]
    start = time.process_time()
    signal, scores, *networks = tool(data.Y, n_edges)
    seconds = time.process_time() - start
    edges = []
    for found, truth, count in zip(networks, truths, n_edges, strict=True):
        rates = None if found is None else edge_recovery(found, truth, n_edges=count)
        edges += [np.nan, np.nan] if rates is None else [rates.tpr, rates.ppv]
    return (
        np.nan if signal is None else psnr(signal, data.signal),
        np.nan if scores is None else nmi(scores, data.labels),
        *edges,
        seconds,
    )


def in_words(figures):
    """Return the cells of a line of the table, empty where a tool says nothing."""
    signal, groups, row_recall, row_precision, col_recall, col_precision, seconds = figures
    rows, columns = (
        f"{recall:.0%}, {precision:.0%}"
        for recall, precision in ((row_recall, row_precision), (col_recall, col_precision))
    )
    cells = [f"{signal:.1f}", f"{groups:.0f}", rows, columns, f"{seconds:.2f}"]
    return ["" if "nan" in cell else cell for cell in cells]


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
    for tool in tools.values():  # compilation and imports are not timed
        measure(tool, SETTINGS["60x40 density .03 c=32"][0](0))
    print("| data | tool | PSNR | groups | row edges | column edges | seconds |")
    print("|---|---|---|---|---|---|---|")
    for row in options.rows:
        sets = [SETTINGS[row][0](seed) for seed in options.seeds]
        for name, tool in tools.items():
            found = np.mean([measure(tool, data) for data in sets], axis=0)
            print(f"| {row} | {name} | " + " | ".join(in_words(found)) + " |", flush=True)


if __name__ == "__main__":
    main()
