"""Signs that the residual of a fit is white, or is not, and its singular values."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray
from mnpca.estimators._array_api import on_host
from mnpca.model.whiteness import correlation_matrix, whiten

#: Correlations and singular values are taken of at most this many rows and columns.
LARGEST = 2000


def training_view(model: Any, X: Any) -> tuple[Any, FloatArray]:
    """Return a model and its training matrix in NumPy, completed and without covariate effects.

    What is left is the signal and the noise that the diagnostics are about.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators of a low-rank signal and two noise networks.
    X : array-like of shape (n, p)
        The matrix that it was fitted to.
    """
    check_is_fitted(model)
    if not hasattr(model, "row_precision_"):
        raise TypeError(
            "Only models of one matrix with two noise networks have these diagnostics; a "
            f"{type(model).__name__} is none."
        )
    X = np.asarray(on_host(X), dtype=float)
    if X.ndim != 2:
        raise ValueError(
            f"X must be one matrix, and it has {X.ndim} axes; for several matrices see the "
            "estimator's model_check_."
        )
    shape = (model.row_precision_.shape[0], model.col_precision_.shape[0])
    if X.shape != shape:
        raise ValueError(
            f"X must be the training matrix, {shape[0]} x {shape[1]}, and is "
            f"{X.shape[0]} x {X.shape[1]}."
        )
    model = _in_memory(model)
    if getattr(model, "completed_", None) is not None:
        X = model.completed_.astype(float)
    if getattr(model, "row_covariates_", None) is not None:
        X = X - (model.row_covariates_ - model.row_covariates_mean_) @ model.row_coef_
    if getattr(model, "col_covariates_", None) is not None:
        X = X - model.col_coef_ @ model.col_covariates_.T
    model.row_covariates_ = model.row_covariates_mean_ = model.col_covariates_ = None
    if np.isnan(X).any():
        raise ValueError("X has missing values that the training matrix did not have.")
    return model, X


def _in_memory(model: Any) -> Any:
    """Return a copy whose arrays are NumPy's and whose results are computed at once."""
    model = copy.copy(model)
    vars(model).update({name: on_host(value) for name, value in vars(model).items()})
    if hasattr(model, "row_chunks_"):
        model.row_chunks_ = None
    return model


@dataclass(frozen=True)
class Correlations:
    """Signs of correlation in a matrix.

    Attributes
    ----------
    row_correlations, column_correlations : arrays
        Correlations of all pairs of rows and of columns; around 0 with standard deviations
        1 / sqrt(p) and 1 / sqrt(n) if the matrix is white.
    singular_values : array
        Of the matrix scaled to unit mean square; between sqrt(n) - sqrt(p) and
        sqrt(n) + sqrt(p), by the Marchenko-Pastur law, if it is white.
    shape : tuple of int
        Shape (n, p) of the matrix they were taken of.
    """

    row_correlations: np.ndarray
    column_correlations: np.ndarray
    singular_values: np.ndarray
    shape: tuple[int, int]

    def share_above(self, side: str, deviations: float = 3.0) -> float:
        """Share of pairs whose correlation is beyond so many standard deviations of white noise.

        White noise has 0.27% of its pairs beyond three.
        """
        values = self.row_correlations if side == "rows" else self.column_correlations
        other = self.shape[1] if side == "rows" else self.shape[0]
        return float(np.mean(np.abs(values) > deviations / np.sqrt(other))) if len(values) else 0.0


def correlations(matrix: FloatArray) -> Correlations:
    """Take the signs of correlation of a matrix.

    A matrix with more than 2000 rows or columns is thinned to so many at even distances.
    """
    rows, columns = (np.linspace(0, q - 1, min(q, LARGEST)).astype(int) for q in matrix.shape)
    matrix = matrix[np.ix_(rows, columns)]
    size = np.sqrt(np.mean(matrix**2))
    matrix = matrix / size if size > 0 else matrix
    return Correlations(
        row_correlations=_pairs(matrix),
        column_correlations=_pairs(matrix.T),
        singular_values=np.linalg.svd(matrix, compute_uv=False),
        shape=matrix.shape,
    )


def _pairs(matrix: FloatArray) -> FloatArray:
    """Correlations of all pairs of rows."""
    return correlation_matrix(matrix)[np.triu_indices(len(matrix), k=1)]


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


def scree(model: Any, X: Any, *, count: int = 20) -> Scree:
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


def _leading(matrix: FloatArray, count: int) -> FloatArray:
    return randomized_svd(matrix, count, n_oversamples=20, n_iter=6, random_state=0)[1]
