"""Probabilistic PCA, in closed form."""

from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.decomposition import PCA
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data


class PPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Probabilistic PCA by maximum likelihood: ``y = W x + mean + e``, x and e white Gaussian.

    With the leading eigenpairs (l, U) of the covariance and s2 the mean of the others,
    ``W = U (L - s2 I)^(1/2)``; scores are posterior means
    ``E(x | y) = (W'W + s2 I)^-1 W' (y - mean)`` (Tipping and Bishop 1999). They are the scores of
    PCA with every axis rescaled.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, fewer than features and rows.

    Attributes
    ----------
    loadings_ : ndarray of shape (n_features, n_components)
        W.
    mean_ : ndarray of shape (n_features,)
        Mean row.
    noise_variance_ : float
        s2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from reproduction.baselines import PPCA
    >>> PPCA(2).fit_transform(load_iris().data).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")]
    }

    def __init__(self, n_components=2):
        self.n_components = n_components

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit the model to the rows of X."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        pca = PCA(self.n_components, svd_solver="full").fit(X)
        self.mean_ = pca.mean_
        self.noise_variance_ = float(pca.noise_variance_)
        excess = np.maximum(pca.explained_variance_ - self.noise_variance_, 0.0)
        self.loadings_ = pca.components_.T * np.sqrt(excess)
        return self

    @property
    def _n_features_out(self):
        return self.loadings_.shape[1]

    def transform(self, X):
        """Return the posterior mean of the scores."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        gram = self.loadings_.T @ self.loadings_
        gram += self.noise_variance_ * np.eye(len(gram))
        return np.linalg.solve(gram, self.loadings_.T @ (X - self.mean_).T).T
