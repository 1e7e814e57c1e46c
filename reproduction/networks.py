"""What the noise networks of real data look like: patients by subtype, and pairs of terms."""

import numpy as np
import scipy.sparse as sp

from mnpca.estimators import MNPCA
from mnpca.precision import sparse_precision
from mnpca.selection.rank import paper_rank
from reproduction.baselines import make_reducer
from reproduction.cells import Cell, Outcome
from reproduction.real_sets import load_real

N_STRONGEST = {"rows": 1000, "columns": 100}
QUICK_ROWS = 400
METHODS = ("SparsePrecision", "LikelihoodMNPCA", "MNPCA")


def precision_cells(quick=False, all_methods=False):
    """Cells of the patients' network; quick: 400 patients."""
    size = f" {QUICK_ROWS} rows" if quick else ""
    return [Cell("network-rows", f"metabric{size}", method, 1000) for method in METHODS]


def term_cells(quick=False, all_methods=False):
    """Cells of the network of terms."""
    return [Cell("network-columns", "3sources", method, 1000) for method in METHODS]


def compute_network(cell):
    """Return the strongest edges of one side, with the names of their ends."""
    name, *size = cell.data.split()
    data = load_real(name)
    X, labels = data.X, data.y
    if size:
        kept = np.sort(np.random.RandomState(cell.seed).permutation(len(X))[: int(size[0])])
        X, labels = X[kept], labels[kept]
    side = cell.experiment.removeprefix("network-")
    precision = _network(X, cell.method, side, cell.seed)
    i, j, values = strongest_edges(precision, N_STRONGEST[side])
    names = labels if side == "rows" else np.asarray(data.feature_names)
    metrics = {"edges": (precision.nnz - precision.shape[0]) / 2}
    if side == "rows":
        metrics |= within_class(i, j, labels)
    arrays = {"i": i, "j": j, "value": values, "names": names.astype(str)}
    return Outcome(metrics, arrays=arrays)


def _network(X, method, side, seed):
    """Noise precision of one side; plain graphical lasso gets as many edges as LikelihoodMNPCA."""
    rank = paper_rank(X)
    if method == "MNPCA":  # its own choice may be no network at all
        model = MNPCA(rank, noise="graph", random_state=seed).fit(X)
    else:
        model = make_reducer("LikelihoodMNPCA", rank, random_state=seed).fit(X)
    precision = model.row_precision_ if side == "rows" else model.col_precision_
    if method != "SparsePrecision":
        return precision
    items = X if side == "rows" else X.T
    return precision_with_edges(items @ items.T / items.shape[1], _count_edges(precision))


def precision_with_edges(covariance, wanted, *, steps=12):
    """Sparse precision of a covariance at the penalty that gives about the wanted edges."""
    off_diagonal = np.abs(covariance - np.diag(np.diag(covariance)))
    low, high = 0.0, float(off_diagonal.max())
    best = None
    for _ in range(steps):
        penalty = (low + high) / 2
        fitted = sparse_precision(covariance, penalty, penalize_diagonal=True).precision
        found = _count_edges(fitted)
        if best is None or abs(found - wanted) < abs(_count_edges(best) - wanted):
            best = fitted
        if abs(found - wanted) <= 0.02 * wanted:
            break
        if found > wanted:
            low = penalty
        else:
            high = penalty
    return best


def strongest_edges(precision, count):
    """Return the ends and values of the largest off-diagonal entries, one triangle."""
    upper = sp.coo_array(sp.triu(precision, k=1))
    order = np.argsort(-np.abs(upper.data), kind="stable")[:count]
    return upper.coords[0][order], upper.coords[1][order], upper.data[order]


def within_class(i, j, labels):
    """Share of edges inside a class, and what random pairs would give."""
    labels = np.asarray(labels)
    counts = np.unique(labels, return_counts=True)[1]
    n = len(labels)
    return {
        "within_class": float(np.mean(labels[i] == labels[j])) if len(i) else float("nan"),
        "within_class_by_chance": float((counts * (counts - 1)).sum() / (n * (n - 1))),
    }


def _count_edges(precision):
    return (precision.nnz - precision.shape[0]) // 2
