"""Gaussian process latent variable model."""

from numbers import Integral
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.optimize
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from reproduction.baselines._kernel_system import squared_distances


class GPLVM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Gaussian process latent variable model with a Gaussian kernel (Lawrence 2005).

    Every feature is a Gaussian process of the latent positions x with covariance
    ``K = s exp(-|x - x'|^2 / 2) + v I``; positions are standard normal a priori. Positions and
    the logarithms of s and v maximize the posterior,

        p/2 logdet K + 1/2 tr(K^-1 Y Y') + 1/2 |X|^2 -> min,

    by L-BFGS from the scaled scores of PCA. Positions of unseen rows maximize their predictive
    density, from the position of the nearest training row.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the latent space.
    max_rows : int, default=500
        Rows that the processes are fitted to; of more rows, a random choice (an iteration costs
        the third power of this number). The others are placed as unseen rows are.
    max_iter : int, default=100
        L-BFGS iterations.
    random_state : int, RandomState instance or None, default=None
        Source of the choice of rows.

    Attributes
    ----------
    latent_ : ndarray of shape (n_fitted, n_components)
        Latent positions of the rows that the processes were fitted to.
    objective_ : float
        Final value of the objective.
    n_iter_ : int
        Iterations used.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, n_components=2, *, max_rows=500, max_iter=100, random_state=None):
        self.n_components = n_components
        self.max_rows = max_rows
        self.max_iter = max_iter
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit latent positions and kernel to the rows of X."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.mean_ = X.mean(axis=0)
        self._rows = self._choose(X - self.mean_)
        start = PCA(self.n_components, svd_solver="full").fit_transform(self._rows)
        start /= np.where(start.std(axis=0) > 0, start.std(axis=0), 1.0)
        variance = max(float(self._rows.var()), np.finfo(float).tiny)
        result = scipy.optimize.minimize(
            _objective,
            np.concatenate([start.ravel(), np.log([variance, 0.1 * variance])]),
            args=(self._rows, self.n_components),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter},
        )
        self.latent_ = result.x[:-2].reshape(start.shape)
        self.signal_variance_, self.noise_variance_ = np.exp(result.x[-2:]).tolist()
        self.objective_, self.n_iter_ = float(result.fun), int(result.nit)
        return self

    def _choose(self, rows):
        if len(rows) <= self.max_rows:
            return rows
        chosen = check_random_state(self.random_state).choice(
            len(rows), self.max_rows, replace=False
        )
        return rows[np.sort(chosen)]

    @property
    def _n_features_out(self):
        return self.latent_.shape[1]

    def fit_transform(self, X, y=None):
        """Fit, and return the latent positions of all rows of X."""
        self.fit(X)
        return self.latent_ if len(self._rows) == len(X) else self.transform(X)

    def transform(self, X):
        """Return the latent positions that maximize the density of each row."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        rows = X - self.mean_
        nearest = squared_distances(rows, self._rows).argmin(axis=1)
        start = self.latent_[nearest]
        covariance = self.signal_variance_ * _correlation(self.latent_, self.latent_)
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        inverse = scipy.linalg.inv(covariance)
        result = scipy.optimize.minimize(
            _placing,
            start.ravel(),
            args=(rows, self, inverse, inverse @ self._rows),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 30},
        )
        return result.x.reshape(start.shape)


def _correlation(left, right):
    return np.exp(-0.5 * squared_distances(left, right))


def _objective(parameters, rows, k):
    """Negative log posterior of positions and kernel, and its gradient."""
    n, p = rows.shape
    latent = parameters[:-2].reshape(n, k)
    signal, noise = np.exp(parameters[-2:])
    smooth = signal * _correlation(latent, latent)
    covariance = smooth.copy()
    # The tiny share keeps the Cholesky factorization alive when the noise is optimized away.
    covariance[np.diag_indices(n)] += noise + 1e-8 * signal
    factor = scipy.linalg.cholesky(covariance, lower=True)
    inverse = scipy.linalg.cho_solve((factor, True), np.eye(n))
    weighted = inverse @ rows
    value = p * np.log(np.diag(factor)).sum() + 0.5 * np.sum(weighted * rows)
    value += 0.5 * np.sum(latent**2)
    slope = 0.5 * (p * inverse - weighted @ weighted.T)  # derivative by the covariance
    pull = slope * smooth
    by_latent = 2 * (pull @ latent - pull.sum(axis=1)[:, None] * latent) + latent
    by_signal = pull.sum() + 1e-8 * signal * np.trace(slope)
    by_noise = noise * np.trace(slope)
    return value, np.concatenate([by_latent.ravel(), [by_signal, by_noise]])


def _placing(parameters, rows, model, inverse, weights):
    """Negative log predictive density of unseen rows at given positions, and its gradient.

    Row y at x has mean ``m = W'k`` (W the weights) and variance ``v = s + v0 - k' K^-1 k``, with
    ``k_j = s exp(-|x - x_j|^2 / 2)``, whose derivative by x is ``k_j (x_j - x)``.
    """
    latent = parameters.reshape(len(rows), -1)
    p = rows.shape[1]
    cross = model.signal_variance_ * _correlation(latent, model.latent_)
    seen = cross @ inverse
    variance = model.signal_variance_ + model.noise_variance_ - np.sum(seen * cross, axis=1)
    variance = np.maximum(variance, model.noise_variance_)
    residual = rows - cross @ weights
    square = np.sum(residual**2, axis=1)
    value = 0.5 * np.sum(square / variance + p * np.log(variance)) + 0.5 * np.sum(latent**2)
    by_variance = 0.5 * (p / variance - square / variance**2)
    by_cross = -(residual / variance[:, None]) @ weights.T - 2 * by_variance[:, None] * seen
    pull = by_cross * cross
    gradient = pull @ model.latent_ - pull.sum(axis=1)[:, None] * latent + latent
    return value, gradient.ravel()
