"""Effects of known covariates, by generalized least squares under the noise.

``Y = Z G + H C' + rest + E`` with Z (n x r) known for the rows and C (p x s) for the columns.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mnpca._typing import FloatArray, Precision


class Effects(NamedTuple):
    """Coefficients: G (r x p) of the row covariates and H (n x s) of the column covariates."""

    row_coef: FloatArray
    col_coef: FloatArray


@dataclass(frozen=True)
class Covariates:
    """Known covariates Z (n x r) and C (p x s), and how their effects are estimated.

    With `intercept` the rest of the model has a mean row. A mean is then estimated beside G, so
    that it does not go into G.
    """

    row: FloatArray
    col: FloatArray
    intercept: bool

    @property
    def any(self) -> bool:
        """Whether there is a covariate at all."""
        return bool(self.row.shape[1] + self.col.shape[1] > 0)

    def nothing(self) -> Effects:
        """Return effects of size zero."""
        n, p = len(self.row), len(self.col)
        return Effects(np.zeros((self.row.shape[1], p)), np.zeros((n, self.col.shape[1])))

    def estimate(
        self, matrix: FloatArray, row_precision: Precision, col_precision: Precision
    ) -> Effects:
        """Return ``G = (Z'AZ)^-1 Z'A Y`` and ``H = (Y - Z G) B C (C'BC)^-1``.

        What Z and C explain together goes to G. Of coefficients that collinear covariates do not
        determine, those of least length are taken.
        """
        n, p = matrix.shape
        row_coef: FloatArray = np.zeros((0, p))
        if self.row.shape[1]:
            design = np.column_stack([self.row, np.ones(n)]) if self.intercept else self.row
            row_coef = _least_squares(design, row_precision, matrix)[: self.row.shape[1]]
        col_coef: FloatArray = np.zeros((n, 0))
        if self.col.shape[1]:
            rest = matrix - self.row @ row_coef
            col_coef = _least_squares(self.col, col_precision, rest.T).T
        return Effects(row_coef, col_coef)

    def dense(self, effects: Effects) -> FloatArray:
        """Return ``Z G + H C'``."""
        total: FloatArray = self.row @ effects.row_coef + effects.col_coef @ self.col.T
        return total

    def without(
        self, matrix: FloatArray, row_precision: Precision, col_precision: Precision
    ) -> FloatArray:
        """Return the matrix less its own covariate effects; itself where there is no covariate."""
        if not self.any:
            return matrix
        rest: FloatArray = matrix - self.dense(self.estimate(matrix, row_precision, col_precision))
        return rest


def _least_squares(design: FloatArray, precision: Precision, matrix: FloatArray) -> FloatArray:
    """Return ``(Z'PZ)^+ Z'P Y``; columns of Z are scaled first, so that units do not matter."""
    size = np.sqrt(np.mean(design**2, axis=0))
    design = design / np.where(size > 0, size, 1.0)
    weighted = precision @ design
    gram = np.linalg.pinv(design.T @ weighted, rcond=1e-10, hermitian=True)
    coef: FloatArray = gram @ (weighted.T @ matrix)
    return coef / np.where(size > 0, size, 1.0)[:, None]
