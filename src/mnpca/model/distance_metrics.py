"""Metrics from the distances between items, for generalized PCA without a noise estimate.

Two choices of Allen, Grosenick and Taylor (2014) as the MN-PCA paper compares with them. Both take
the Chebyshev distance ``D_ij = max_l |Y_il - Y_jl|`` between rows (of Y' for columns).
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import pdist, squareform

from mnpca._typing import FloatArray
from mnpca.model.metric import MetricError

SMALLEST_DENSITY = 1e-4


def smooth_metric(items: FloatArray) -> FloatArray:
    """Return ``exp(-D_ij^2 / 2)``.

    It need not be positive semi-definite; generalized PCA then has no result and says so.

    Parameters
    ----------
    items : array of shape (q, d)
        One row for each item.
    """
    smooth: FloatArray = np.exp(-(squareform(pdist(items, "chebyshev")) ** 2) / 2)
    return smooth


def laplacian_metric(items: FloatArray, density: float = 0.01) -> sp.csr_array:
    """Return the Laplacian of the graph of near items, divided by its largest eigenvalue.

    Items are joined where their distance is below the `density` quantile of all distances, with
    weight 1/D (items that coincide count as being as close as the closest that do not).

    Parameters
    ----------
    items : array of shape (q, d)
        One row for each item.
    density : float, default=0.01
        Share of the pairs to join, at least 1e-4. The paper takes the share of nonzeros of the
        precision that MN-PCA estimated for the same items.
    """
    distances = pdist(items, "chebyshev")
    q = len(items)
    window = np.quantile(distances, max(density, SMALLEST_DENSITY)) if q > 1 else 0.0
    near = np.flatnonzero(distances < window)
    if not len(near):
        raise MetricError(
            f"No two items are closer than the {max(density, SMALLEST_DENSITY):g} quantile of "
            "their distances, so the Laplacian is zero; take a larger density."
        )
    closest = distances[distances > 0].min()
    row, col = np.triu_indices(q, k=1)
    weights = 1.0 / np.maximum(distances[near], closest)
    upper = sp.coo_array((weights, (row[near], col[near])), shape=(q, q))
    adjacency = sp.csr_array(upper + upper.T)
    laplacian = sp.diags_array(adjacency.sum(axis=1)) - adjacency
    return sp.csr_array(laplacian / _largest_eigenvalue(sp.csr_array(laplacian)))


def _largest_eigenvalue(matrix: sp.csr_array) -> float:
    q = matrix.shape[0]
    if q <= 500:
        return float(np.linalg.eigvalsh(matrix.toarray())[-1])
    start = np.random.default_rng(0).standard_normal(q)
    return float(eigsh(matrix, k=1, which="LA", v0=start, return_eigenvectors=False)[0])
