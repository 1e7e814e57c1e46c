"""Signs that a residual is white, or is not, once the noise networks are taken out."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mnpca.model.sparse import blocks

#: Correlations and singular values are taken of at most this many rows and columns.
LARGEST = 2000


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

    def share_above(self, side, deviations=3.0):
        """Share of pairs whose correlation is beyond so many standard deviations of white noise.

        White noise has 0.27% of its pairs beyond three.
        """
        values = self.row_correlations if side == "rows" else self.column_correlations
        other = self.shape[1] if side == "rows" else self.shape[0]
        return float(np.mean(np.abs(values) > deviations / np.sqrt(other))) if len(values) else 0.0


def whiten(matrix, row_precision, col_precision):
    """Return ``Fa' M Fb`` with A = Fa Fa' and B = Fb Fb', white if M is MN(0, inv A, inv B)."""
    return _whiten_rows(_whiten_rows(matrix, row_precision).T, col_precision).T


def correlations(matrix):
    """Take the signs of correlation of a matrix.

    A matrix with more than 2000 rows or columns is thinned to so many, evenly spread.
    """
    rows, columns = (np.linspace(0, q - 1, min(q, LARGEST)).astype(int) for q in matrix.shape)
    matrix = matrix[np.ix_(rows, columns)]
    size = np.sqrt(np.mean(matrix**2))
    matrix = matrix / size if size > 0 else matrix
    return Correlations(
        row_correlations=_correlations(matrix),
        column_correlations=_correlations(matrix.T),
        singular_values=np.linalg.svd(matrix, compute_uv=False),
        shape=matrix.shape,
    )


def marchenko_pastur(singular_values, shape):
    """Density of the singular values of a white n x p matrix with unit variance.

    With m <= M the two dimensions and t = s^2 / M, the density of t is
    ``sqrt((t+ - t)(t - t-)) / (2 pi (m/M) t)`` between ``t± = (1 ± sqrt(m/M))^2``.
    """
    small, large = sorted(shape)
    ratio = small / large
    t = np.asarray(singular_values, dtype=float) ** 2 / large
    lower, upper = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    inside = np.maximum((upper - t) * (t - lower), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.sqrt(inside) / (2 * np.pi * ratio * t)
    return np.where(t > 0, density, 0.0) * 2 * np.asarray(singular_values) / large


def _whiten_rows(matrix, precision):
    precision = sp.csr_array(precision)
    white = np.sqrt(precision.diagonal())[:, None] * matrix
    for items, block in blocks(precision):
        white[items] = scipy.linalg.cholesky(block, lower=True).T @ matrix[items]
    return white


def _correlations(matrix):
    """Correlations (without centering) of all pairs of rows."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = matrix / np.where(length > 0, length, 1.0)
    return (unit @ unit.T)[np.triu_indices(len(matrix), k=1)]
