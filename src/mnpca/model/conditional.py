"""Matrix normal noise given some of its cells.

With A and B the precisions among rows and columns, the missing cells m of E given the observed
ones o are Gaussian with precision ``P_mm``, P = B kron A, and mean ``-P_mm^-1 P_mo e_o``. P is
never formed.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from mnpca._components import blocks_by_size, root
from mnpca._typing import BoolArray, FloatArray, Precision

#: Steps of conjugate gradients, at most.
MOST_STEPS = 500
#: Conditional variances are kept below this multiple of those given all other cells.
LARGEST_INFLATION = 20.0


class MissingNoise:
    """The distribution of the noise in missing cells (True) given that in all others.

    Cells are listed row by row, as ``matrix[missing]`` lists them.
    """

    def __init__(
        self, missing: BoolArray, row_precision: Precision, col_precision: Precision
    ) -> None:
        self.missing = missing
        self.row_precision = sp.csr_array(row_precision)
        self.col_precision = sp.csr_array(col_precision)
        self._rows, self._cols = np.nonzero(missing)
        row_weight, col_weight = row_precision.diagonal(), col_precision.diagonal()
        self._weights: FloatArray = row_weight[self._rows] * col_weight[self._cols]

    @property
    def independent(self) -> bool:
        """Whether neither side has a network; observed cells then carry no information."""
        n, p = self.missing.shape
        return bool(self.row_precision.nnz <= n and self.col_precision.nnz <= p)

    def mean(
        self,
        residual: FloatArray,
        start: FloatArray | None = None,
        *,
        tol: float = 1e-3,
    ) -> FloatArray:
        """Return the conditional mean of every missing cell, given the noise of the observed ones.

        It minimizes ``tr(A E B E')`` over the missing cells. Conjugate gradients, with the diagonal
        ``a_ii b_jj`` of P as preconditioner, go until the gradient has fallen to the share `tol` of
        its size at zero.
        """
        size = len(self._rows)
        if self.independent or size == 0:
            return np.zeros(size)
        pull = -self._product(np.where(self.missing, 0.0, residual))[self.missing]
        root = np.sqrt(self._weights)
        scaled = LinearOperator((size, size), lambda x: self._times(x / root) / root, dtype=float)
        begin = None if start is None else start * root
        cells, _ = cg(scaled, pull / root, begin, rtol=tol, maxiter=MOST_STEPS)
        return np.asarray(cells / root)

    def draw(self, residual: FloatArray, noise: FloatArray, *, tol: float = 1e-3) -> FloatArray:
        """Return a draw of the missing cells from their conditional distribution.

        For unconditional noise E (`sample_noise`), ``E + E[. | residual - E at the observed
        cells]`` has the conditional distribution: mean and covariance are right, since the map from
        the observed cells to the conditional mean is linear.
        """
        drawn: FloatArray = noise[self.missing]
        return drawn + self.mean(residual - noise, tol=tol)

    def variances(self) -> FloatArray:
        """Approximate conditional variances of the missing cells.

        The diagonal of ``P_mm^-1`` as ``1 / (P_aa - sum_b P_ab^2 / P_bb)`` over the other missing
        cells b: exact where missing cells are linked at most in pairs, a little small beyond.
        """
        alone = np.zeros(self.missing.shape)
        alone[self.missing] = 1.0 / self._weights
        row_squares = self.row_precision.multiply(self.row_precision).tocsr()
        col_squares = self.col_precision.multiply(self.col_precision).tocsr()
        influence = np.asarray((row_squares @ alone) @ col_squares)[self.missing] - self._weights
        # Where nearly everything around a cell is missing the formula leaves its range.
        left = np.maximum(self._weights - influence, self._weights / LARGEST_INFLATION)
        return np.asarray(1.0 / left)

    def _product(self, noise: FloatArray) -> FloatArray:
        return np.asarray((self.row_precision @ noise) @ self.col_precision)

    def _times(self, cells: FloatArray) -> FloatArray:
        """Return ``P_mm v``."""
        noise = np.zeros(self.missing.shape)
        noise[self.missing] = cells
        return self._product(noise)[self.missing]


def sample_noise(
    row_precision: Precision, col_precision: Precision, rng: np.random.Generator
) -> FloatArray:
    """Draw ``E ~ MN(0, inv A, inv B)``."""
    white = rng.standard_normal((row_precision.shape[0], col_precision.shape[0]))
    rows, cols = root(row_precision), root(col_precision)
    return cols.solve_adjoint(rows.solve_adjoint(white).T).T


def noise_variances(precision: Precision) -> FloatArray:
    """Return the diagonal of ``inv P``."""
    precision = sp.csr_array(precision)
    variances: FloatArray = 1.0 / precision.diagonal()
    for items, block in blocks_by_size(precision):
        variances[items] = np.einsum("cii->ci", np.linalg.inv(block))
    return variances
