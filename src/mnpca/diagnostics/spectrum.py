"""The singular values of the data before and after whitening, against the noise edge."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from mnpca.diagnostics.residual import whiten


@dataclass(frozen=True)
class Scree:
    """Leading singular values, in units of the noise edge.

    Attributes
    ----------
    generalized : array
        Of the whitened, centered data, divided by sqrt(n) + sqrt(p): white noise of unit variance
        stays below 1.
    plain : array
        Of the centered data, divided by the same edge and by the noise's root mean square.
    n_components : int
        Number of components the fit kept.
    """

    generalized: np.ndarray
    plain: np.ndarray
    n_components: int


def scree(model, X, *, count=20):
    """Return the leading `count` singular values of the training data, plain and generalized."""
    X = np.asarray(X, dtype=float)
    count = min(count, *X.shape)
    edge = np.sqrt(X.shape[0]) + np.sqrt(X.shape[1])
    residual = X - model.denoise()
    noise = np.sqrt(np.mean(residual**2)) or 1.0
    whitened = whiten(X - model.mean_, model.row_precision_, model.col_precision_)
    return Scree(
        generalized=_leading(whitened, count) / edge,
        plain=_leading(X - X.mean(axis=0), count) / (edge * noise),
        n_components=int(model.n_components_),
    )


def _leading(matrix, count):
    return randomized_svd(matrix, count, n_oversamples=20, n_iter=6, random_state=0)[1]
