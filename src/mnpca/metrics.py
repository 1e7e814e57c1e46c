"""How well a signal, a clustering or a noise network was recovered."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import Bunch, check_random_state

from mnpca._typing import FloatArray, RandomState

__all__ = ["edge_recovery", "nmi", "psnr", "rmse"]


def rmse(estimate: Any, truth: Any) -> float:
    """Root mean squared error, ``sqrt(mean((estimate - truth)^2))``.

    Examples
    --------
    >>> from mnpca.metrics import rmse
    >>> rmse([[1.0, 3.0]], [[1.0, 1.0]]) == 2**0.5
    True
    """
    estimate, truth = _alike(estimate, truth)
    return float(np.sqrt(np.mean((estimate - truth) ** 2)))


def psnr(estimate: Any, truth: Any) -> float:
    """Peak signal-to-noise ratio in dB, ``10 log10(max(truth)^2 / mean((estimate - truth)^2))``.

    It is infinite where the two agree exactly.

    Examples
    --------
    >>> from mnpca.metrics import psnr
    >>> psnr([[0.9, 0.1]], [[1.0, 0.0]])
    20.0
    """
    estimate, truth = _alike(estimate, truth)
    mean_square = np.mean((estimate - truth) ** 2)
    return float(10 * np.log10(truth.max() ** 2 / mean_square)) if mean_square else float("inf")


def nmi(scores: Any, labels: Any, *, n_init: int = 20, random_state: RandomState = 0) -> float:
    """Return the normalized mutual information (times 100) of k-means on the scores and the labels.

    Each of `n_init` k-means runs (one random start each, as many clusters as labels) gives one
    value with the geometric mean of the entropies; their mean is returned, as in the paper.

    Examples
    --------
    >>> from mnpca.metrics import nmi
    >>> nmi([[0.0], [0.1], [9.0], [9.1]], [0, 0, 1, 1])
    100.0
    """
    rng = check_random_state(random_state)
    n_clusters = len(np.unique(labels))
    values = []
    for _ in range(n_init):
        seed = rng.randint(2**31 - 1)
        clusters = KMeans(n_clusters, n_init=1, random_state=seed).fit_predict(scores)
        values.append(normalized_mutual_info_score(labels, clusters, average_method="geometric"))
    return float(100 * np.mean(values))


def edge_recovery(estimate: Any, truth: Any, *, n_edges: int | None = None) -> Bunch:
    """Rates at which the edges of a true precision were found.

    Edges are the nonzero off-diagonal entries, one triangle. The MN-PCA paper counts the strongest
    150 of each precision alone.

    Parameters
    ----------
    estimate, truth : array or sparse matrix of shape (q, q)
        Estimated and true precision.
    n_edges : int, default=None
        Count this many edges of each precision at most, those with the largest absolute entries;
        None counts all.

    Returns
    -------
    Bunch
        tpr (recall), tnr, ppv (precision; nan where the estimate has no edge) and f1.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca.metrics import edge_recovery
    >>> truth = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    >>> edge_recovery(truth, truth).tpr
    1.0
    """
    estimate, truth = sp.coo_array(estimate), sp.coo_array(truth)
    _check_shapes(estimate, truth)
    size = truth.shape[0]
    true, found = _strongest_edges(truth, n_edges), _strongest_edges(estimate, n_edges)
    hits, absent = len(true & found), size * (size - 1) // 2 - len(true)
    return Bunch(
        tpr=_share(hits, len(true)),
        tnr=_share(absent - (len(found) - hits), absent),
        ppv=_share(hits, len(found)),
        f1=_share(2 * hits, len(true) + len(found)) if true else float("nan"),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _alike(estimate: Any, truth: Any) -> tuple[FloatArray, FloatArray]:
    """Return both as floating arrays: differences of unsigned integers, as in images, overflow."""
    estimate, truth = (np.asarray(matrix, dtype=np.float64) for matrix in (estimate, truth))
    _check_shapes(estimate, truth)
    return estimate, truth


def _check_shapes(estimate: Any, truth: Any) -> None:
    if estimate.shape != truth.shape:
        raise ValueError(
            f"estimate and truth must have one shape, got {estimate.shape} and {truth.shape}."
        )


def _strongest_edges(precision: sp.coo_array, n_edges: int | None) -> set[tuple[int, int]]:
    """Pairs (i, j), i < j, of the largest nonzero off-diagonal entries."""
    upper = sp.triu(precision, k=1, format="coo")
    upper.eliminate_zeros()
    row, col = upper.coords
    # Ties are broken by position, so that the choice does not depend on storage order.
    strongest = np.lexsort((col, row, -np.abs(upper.data)))[:n_edges]
    return set(zip(row[strongest].tolist(), col[strongest].tolist(), strict=True))
