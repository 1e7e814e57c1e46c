"""Seconds of a fit against the number of columns and against the column penalty."""

import time
import warnings

from sklearn.base import clone

from mnpca.datasets import make_paper_large
from mnpca.estimators import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from reproduction.cells import Cell, Outcome
from reproduction.recovery import FIRST_SEED, PENALTIES

COLUMN_PENALTIES = (0.3, 0.5, 0.7, 1.0, 1.5)
ROW_PENALTY = 0.5


def time_cells(quick=False, all_methods=False):
    """Cells of the running-time figure; quick: few columns."""
    sizes = (300, 600) if quick else tuple(PENALTIES)
    penalties = (0.5, 1.0) if quick else COLUMN_PENALTIES
    by_size = [
        Cell("time", f"p={p}", method, FIRST_SEED)
        for p in sizes
        for method in ("LikelihoodMNPCA", "WassersteinMNPCA", "MNPCA")
    ]
    by_penalty = [
        Cell("time", f"p={600 if quick else 2000} alpha={alpha}", method, FIRST_SEED)
        for alpha in penalties
        for method in ("LikelihoodMNPCA",)
    ]
    return by_size + by_penalty


def compute_time(cell):
    """Fit once and take the time of the fit alone."""
    size, *penalty = cell.data.split()
    p = int(size.removeprefix("p="))
    row, col = PENALTIES.get(p, PENALTIES[2000])
    if penalty:
        row, col = ROW_PENALTY, float(penalty[0].removeprefix("alpha="))
    data = make_paper_large(p, cell.seed)
    model = {
        "LikelihoodMNPCA": LikelihoodMNPCA(2, alpha_row=row, alpha_col=col, center=False),
        "WassersteinMNPCA": WassersteinMNPCA(2, center=False),
        "MNPCA": MNPCA(2, noise="graph"),
    }[cell.method]
    with warnings.catch_warnings():
        # This fit only compiles, or loads what is compiled; nobody looks at its result.
        warnings.simplefilter("ignore")
        clone(model).fit(data.Y[:100, :60])
    start = time.perf_counter()
    model.fit(data.Y)
    return Outcome({"fit_seconds": time.perf_counter() - start})
