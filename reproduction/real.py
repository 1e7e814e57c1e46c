"""Real data: accuracy of a classifier on the scores, by the paper's protocol and a nested one."""

from functools import cache

import numpy as np

from mnpca.model.metric import MetricError
from mnpca.selection.rank import paper_rank
from reproduction.baselines import METHODS, make_reducer
from reproduction.cells import Cell, Outcome
from reproduction.classification import nested_protocol, paper_protocol
from reproduction.real_sets import REAL_SETS, load_real

QUICK_SETS = ("tae", "wine", "zoo")
# Sets whose rows are too many for five fits of every method inside training folds.
NOT_NESTED = ("gesture", "eeg-eye", "mfeat", "radar", "metabric")
# Networks of thousands of rows from a few columns are dense, and take the likelihood hours.
MOST_ROWS = {"LikelihoodMNPCA": 1000, "MN-PCA-program": 1000}
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
    most = MOST_ROWS.get(cell.method, len(data.X))
    note = f"fitted to {most} of {len(data.X)} rows" if most < len(data.X) else ""
    try:
        scores = _scores(reducer, data.X, most, cell.seed)
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
        note=note,
    )


def _scores(reducer, X, most, seed):
    """Return the scores of all rows; beyond `most` rows the fit sees a random choice of them."""
    if len(X) <= most:
        return reducer.fit_transform(X)
    seen = np.sort(np.random.RandomState(seed).permutation(len(X))[:most])
    return reducer.fit(X[seen]).transform(X)


def compute_nested(cell):
    """Everything fitted inside the training folds."""
    data = load_real(cell.data, standardize=False)
    accuracy = nested_protocol(data.X, data.y, cell.method, seed=cell.seed)
    return Outcome({"accuracy": accuracy.mean(), "accuracy_sd": accuracy.std()})
