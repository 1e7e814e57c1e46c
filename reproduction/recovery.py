"""Synthetic data: how well signal, groups and noise networks are recovered."""

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mnpca.datasets import make_paper_small, make_two_swiss_rolls
from mnpca.metrics import edge_recovery, nmi, psnr, rmse
from reproduction.cells import Cell, Outcome
from reproduction.estimates import (
    EXTRA_METHODS,
    MAIN_METHODS,
    NETWORK_METHODS,
    PAPER_METHODS,
    estimate,
)
from reproduction.paper_draws import paper_draw_large, paper_draw_small

CONDITIONS = (8, 16, 32, 64, 96, 128, 160, 192, 224)
QUICK_CONDITIONS = (8, 32, 224)
FIRST_SEED = 1000
# The paper's own data have the seeds 1 to 10, the large ones 1 to 5.
FIRST_RUN = 1
# The paper counts the strongest edges of a network.
N_EDGES = 150
N_SMALL, N_LARGE, N_NOISE, N_SWISS = 10, 5, 5, 10
PENALTIES = {
    2000: (0.5, 0.5),
    3000: (0.5, 0.5),
    4000: (0.8, 0.8),
    5000: (0.8, 0.9),
    6000: (0.8, 1.0),
}
NOISE = ("laplace", "uniform", "mixture-scale", "mixture-heavy", "mixture-shift")
SCATTER_CONDITIONS = (32, 224)


def small_cells(quick=False, all_methods=False):
    """Cells of table 1: the paper's own data, then fresh draws from the model."""
    methods = PAPER_METHODS + (EXTRA_METHODS if all_methods else ())
    return [*_paper_cells(quick, methods), *_fresh_cells(quick, MAIN_METHODS)]


def network_cells(quick=False, all_methods=False):
    """Cells of table 2: the fits of table 1 and graphical lasso on raw covariances."""
    extra = ("MN-PCA-program", *(EXTRA_METHODS if all_methods else ()))
    return [
        *_paper_cells(quick, NETWORK_METHODS + extra),
        *_fresh_cells(quick, NETWORK_METHODS),
    ]


def _paper_cells(quick, methods):
    return _cells("small-paper", FIRST_RUN, quick, methods)


def _fresh_cells(quick, methods):
    return _cells("small", FIRST_SEED, quick, methods)


def _cells(experiment, first_seed, quick, methods):
    """Every c, ten seeds; quick: three c, one seed."""
    return [
        Cell(experiment, f"c={c}", method, first_seed + repeat)
        for repeat in range(1 if quick else N_SMALL)
        for c in (QUICK_CONDITIONS if quick else CONDITIONS)
        for method in methods
    ]


def large_cells(quick=False, all_methods=False):
    """Cells of table 3: p = 2000 to 6000, five seeds; quick: p = 2000, one seed, fast methods."""
    if quick:
        fast = ("PCA", "MNPCA", "oracle")
        return [Cell("large", "p=2000", method, FIRST_RUN) for method in fast]
    return [
        Cell("large", f"p={p}", method, FIRST_RUN + repeat)
        for repeat in range(N_LARGE)
        for p in PENALTIES
        for method in MAIN_METHODS
    ]


def noise_cells(quick=False, all_methods=False):
    """Cells of the noise table: c = 8, 32 and 224 under other distributions of the entries."""
    return [
        Cell("noise", f"{kind} c={c}", method, FIRST_SEED + repeat)
        for repeat in range(1 if quick else N_NOISE)
        for kind in (NOISE[:2] if quick else NOISE)
        for c in ((32,) if quick else (8, 32, 224))
        for method in MAIN_METHODS
    ]


def scatter_cells(quick=False, all_methods=False):
    """Cells of the scatter plots: the first of the paper's data sets at c = 32 and 224."""
    return [
        Cell("small-paper", f"c={c}", method, FIRST_RUN)
        for c in SCATTER_CONDITIONS
        for method in PAPER_METHODS
    ]


def swiss_cells(quick=False, all_methods=False):
    """Cells of the Swiss rolls, side by side and wound into each other; quick: one seed."""
    methods = ("PCA", "MN-PCA-program", "LikelihoodMNPCA", "WassersteinMNPCA", "MNPCA")
    return [
        Cell("swiss", f"{arrangement} n={100 if quick else 200}", method, FIRST_SEED + repeat)
        for arrangement in ("side", "wound")
        for repeat in range(1 if quick else N_SWISS)
        for method in methods
    ]


def compute_small(cell):
    """Recover signal and networks from the small data: the paper's own or a fresh draw."""
    draw = paper_draw_small if cell.experiment == "small-paper" else make_paper_small
    data = draw(_number(cell.data), cell.seed)
    fitted = estimate(cell.method, data, seed=cell.seed)
    outcome = Outcome(recovery_metrics(fitted, data))
    if cell.seed == FIRST_RUN and fitted.scores is not None:
        outcome.arrays = {"scores": fitted.scores, "labels": data.labels}
    return outcome


def compute_large(cell):
    """Recover from the large data; with the penalties that the authors set by hand."""
    p = int(_number(cell.data))
    data = paper_draw_large(p, cell.seed)
    fitted = estimate(cell.method, data, seed=cell.seed, penalties=PENALTIES[p])
    return Outcome(recovery_metrics(fitted, data))


def compute_noise(cell):
    """Recover from noise with entries of another distribution."""
    kind = cell.data.split()[0]
    data = make_paper_small(_number(cell.data), cell.seed, noise=kind)
    return Outcome(recovery_metrics(estimate(cell.method, data, seed=cell.seed), data))


def compute_swiss(cell):
    """Project two Swiss rolls to the plane, and tell how well that separates them.

    Every coordinate is standardized, as the features of the real data are.
    """
    arrangement, size = cell.data.split()
    data = make_two_swiss_rolls(int(_number(size)), arrangement=arrangement, random_state=cell.seed)
    data.Y = (data.Y - data.Y.mean(axis=0)) / data.Y.std(axis=0)
    scores = estimate(cell.method, data, seed=cell.seed).scores
    metrics = {
        "nmi": nmi(scores, data.labels),
        "neighbors": neighbors_agree(scores, data.labels),
    }
    if cell.seed != FIRST_SEED:
        return Outcome(metrics)
    return Outcome(metrics, arrays={"scores": scores, "labels": data.labels, "points": data.Y})


def neighbors_agree(scores, labels, n_neighbors=5):
    """Share (in per cent) of rows most of whose nearest neighbors are of their own group."""
    standard = scores / scores.std(axis=0)
    nearest = (
        NearestNeighbors(n_neighbors=n_neighbors).fit(standard).kneighbors(return_distance=False)
    )
    own = (labels[nearest] == labels[:, None]).mean(axis=1)
    return float(100 * np.mean(own > 0.5))


def recovery_metrics(fitted, data):
    """Return the numbers that an estimate allows."""
    metrics = {}
    if fitted.signal is not None:
        metrics["psnr"] = psnr(fitted.signal, data.signal)
        metrics["rmse"] = rmse(fitted.signal, data.signal)
        metrics["nmi"] = nmi(fitted.scores, data.labels)
    for side in ("row", "col"):
        precision = getattr(fitted, f"{side}_precision")
        if precision is not None:
            truth = getattr(data, f"{side}_precision")
            rates = edge_recovery(precision, truth, n_edges=N_EDGES)
            for rate in ("tpr", "tnr", "ppv"):
                metrics[f"{side}_{rate}"] = rates[rate]
    return {name: float(np.float64(value)) for name, value in metrics.items()}


def _number(text):
    """Return the number after the last "=" of a data name."""
    return float(text.rsplit("=", 1)[1])
