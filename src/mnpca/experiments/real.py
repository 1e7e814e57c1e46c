"""Real data: accuracy of a classifier on the scores, by the paper's protocol and a nested one."""

from functools import cache

import numpy as np

from mnpca.baselines import METHODS, make_reducer
from mnpca.datasets import REAL_SETS, load_real
from mnpca.experiments.cells import Cell, Outcome
from mnpca.experiments.classification import nested_protocol, paper_protocol
from mnpca.model.metric import MetricError
from mnpca.selection.rank import paper_rank

QUICK_SETS = ("glass", "wine", "zoo")
# Sets whose rows are too many for five fits of every method inside training folds.
NOT_NESTED = ("gesture", "eeg-eye", "mfeat", "radar", "metabric")
NESTED_METHODS = ("PCA", "PPCA", "LikelihoodMNPCA", "WassersteinMNPCA", "MNPCA")


@cache
def why_missing(name):
    """Return why a real data set cannot be loaded here; the empty string if it can."""
    try:
        load_real(name)
    except FileNotFoundError as error:
        return str(error)
    return ""


def real_cells(quick=False, all_methods=False):
    """Cells of table 5: every set, every method; quick: three small sets."""
    sets = QUICK_SETS if quick else tuple(REAL_SETS)
    paper = [Cell("real-paper", name, method, 1000) for name in sets for method in METHODS]
    nested = [
        Cell("real-nested", name, method, 1000)
        for name in sets
        for method in NESTED_METHODS
        if name not in NOT_NESTED
    ]
    return paper + nested


def compute_paper(cell):
    """Scores of all rows, then the paper's classification protocol."""
    data = load_real(cell.data)
    rank = paper_rank(data.X)
    reducer = make_reducer(cell.method, rank, random_state=cell.seed)
    try:
        scores = reducer.fit_transform(data.X)
    except MetricError as error:
        return Outcome({"accuracy": np.nan, "rank": rank}, note=f"no result: {error}")
    accuracy = paper_protocol(scores, data.y, seed=cell.seed)
    return Outcome(
        {
            "accuracy": accuracy.decided.mean(),
            "accuracy_sd": accuracy.decided.std(),
            "accuracy_largest": accuracy.largest.mean(),
            "rank": rank,
        },
    )


def compute_nested(cell):
    """Everything fitted inside the training folds."""
    data = load_real(cell.data, standardize=False)
    accuracy = nested_protocol(data.X, data.y, cell.method, seed=cell.seed)
    return Outcome({"accuracy": accuracy.mean(), "accuracy_sd": accuracy.std()})
