"""Generalized PCA in metrics made from distances, as the paper compares with it."""

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from mnpca.estimators import GeneralizedPCA
from mnpca.model.metric import laplacian_metric, smooth_metric
from reproduction.baselines._in_metrics import ComponentsInMetrics
from reproduction.baselines.program import ProgramMNPCA

# More rows than this take the paper's program hours; a choice of them tells the density.
_MOST_ROWS = 1000


class PredefinedGPCA(ComponentsInMetrics):
    """Generalized PCA with the paper's Laplacian (L) or smoothing (S) metrics.

    A Laplacian joins as large a share of the pairs as the network of that side has that the
    paper's MN-PCA finds in the same data, so MN-PCA is fitted first.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    metrics : {"LL", "LS", "SL", "SS"}, default="LS"
        Metric among rows, then among columns.
    random_state : int, RandomState instance or None, default=0
        Of the 1000 rows that stand for more of them in the fit of MN-PCA.

    Attributes
    ----------
    gpca_ : GeneralizedPCA
        The fit in the two metrics.
    densities_ : tuple of float
        Share of nonzeros of MN-PCA's row and column precision; nan where no Laplacian needs it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from reproduction.baselines import PredefinedGPCA
    >>> PredefinedGPCA(2, metrics="LS").fit_transform(load_iris().data).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "metrics": [StrOptions({"LL", "LS", "SL", "SS"})],
        "random_state": ["random_state"],
    }

    def __init__(self, n_components=2, *, metrics="LS", random_state=0):
        self.n_components = n_components
        self.metrics = metrics
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit MN-PCA for the densities, make the metrics, take the components."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        self.densities_ = self._densities(X) if "L" in self.metrics else (np.nan, np.nan)
        row, col = (
            laplacian_metric(items, density) if letter == "L" else smooth_metric(items)
            for items, letter, density in zip((X, X.T), self.metrics, self.densities_, strict=True)
        )
        self.gpca_ = GeneralizedPCA(self.n_components, row_metric=row, col_metric=col).fit(X)
        return self

    def _densities(self, X):
        rows = check_random_state(self.random_state).permutation(len(X))[:_MOST_ROWS]
        program = ProgramMNPCA(self.n_components).fit(X[np.sort(rows)])
        precisions = program.row_precision_, program.col_precision_
        return tuple(precision.nnz / precision.shape[0] ** 2 for precision in precisions)
