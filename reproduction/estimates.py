"""Signal, scores and noise networks by every method, in one form."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca.estimators import MNPCA, GeneralizedPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.precision import sparse_precision
from mnpca.selection.penalty import bic_path
from reproduction.baselines import ProgramMNPCA, make_reducer


@dataclass
class Estimate:
    """What a method says about a matrix; None where it says nothing."""

    signal: np.ndarray | None = None
    scores: np.ndarray | None = None
    row_precision: Any = None
    col_precision: Any = None


#: Methods of the tables, those that the paper's own data get too, and those that only
#: ``--all-methods`` adds.
MAIN_METHODS = ("PCA", "LikelihoodMNPCA", "WassersteinMNPCA", "MNPCA", "oracle")
PAPER_METHODS = ("PCA", "MN-PCA-program", *MAIN_METHODS[1:])
EXTRA_METHODS = (
    "LikelihoodMNPCA-printed",
    "WassersteinMNPCA-gradient",
    "WassersteinMNPCA-original",
)
NETWORK_METHODS = ("SparsePrecision", "LikelihoodMNPCA", "WassersteinMNPCA", "MNPCA")


def estimate(method, data, *, n_components=2, seed=0, penalties=None):
    """Fit a method to synthetic data.

    Parameters
    ----------
    method : str
        One of the names above. PCA centers, as in the paper; the paper's own algorithms do not,
        as in their program; "oracle" is generalized PCA with the precisions of the noise.
    data : Bunch
        Y, row_precision and col_precision (or noise_col_precision, where the noise has another).
    n_components : int, default=2
        Rank.
    seed : int, default=0
        For methods that are random.
    penalties : tuple of float, default=None
        Row and column penalty of LikelihoodMNPCA; by default BIC chooses them with the grid and
        the count of the authors' program ("LikelihoodMNPCA-printed": as the paper prints them).
    """
    if method == "PCA":
        model = make_reducer("PCA", n_components)
        scores = model.fit_transform(data.Y)
        return Estimate(model.inverse_transform(scores), scores)
    if method == "SparsePrecision":
        return Estimate(row_precision=raw_precision(data.Y), col_precision=raw_precision(data.Y.T))
    model = _model(method, data, n_components, seed, penalties)
    scores = model.fit_transform(data.Y)
    if method == "MN-PCA-program":
        signal = model.low_rank_.dense()
        return Estimate(signal, scores, model.row_precision_, model.col_precision_)
    if method == "oracle":
        return Estimate(model.denoise(), scores)
    return Estimate(model.denoise(), scores, model.row_precision_, model.col_precision_)


def _model(method, data, k, seed, penalties):
    if method == "oracle":
        columns = data.get("noise_col_precision", data.col_precision)
        return GeneralizedPCA(k, row_metric=data.row_precision, col_metric=columns, center=False)
    if method == "MN-PCA-program":
        return ProgramMNPCA(k, rule="bic-authors")
    if method == "LikelihoodMNPCA":
        row, col = penalties or ("bic-authors", "bic-authors")
        return LikelihoodMNPCA(k, alpha_row=row, alpha_col=col, scale_free=True, center=False)
    if method == "LikelihoodMNPCA-printed":
        return LikelihoodMNPCA(k, alpha_row="bic", alpha_col="bic", center=False)
    if method == "WassersteinMNPCA":
        return WassersteinMNPCA(k, center=False)
    if method == "WassersteinMNPCA-gradient":
        return WassersteinMNPCA(k, method="gradient", center=False)
    if method == "WassersteinMNPCA-original":
        return WassersteinMNPCA(k, objective="original", method="gradient", center=False)
    if method == "MNPCA":
        return MNPCA(k, noise="graph", random_state=seed)
    raise ValueError(f"No method is called {method!r}.")


def raw_precision(Y):
    """Sparse precision among the rows of Y itself, low-rank signal and all, penalty by BIC."""
    best = bic_path(Y @ Y.T / Y.shape[1], Y.shape[1])["best"]
    return sparse_precision(Y @ Y.T / Y.shape[1], best, penalize_diagonal=True).precision
