"""Dimension folding: PCA of several matrices with common row and column loadings."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca._typing import FloatArray
from mnpca.estimators._axes import AxesEstimator
from mnpca.estimators._input import stack, unstack
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.solvers.tensor.fit import TensorFit, fit_tensor


@dataclass(eq=False, repr=False)
class DimensionFoldingPCA(AxesEstimator):
    """PCA of several matrices that share row loadings, column loadings and both noise networks.

    Estimates ``Y_i = M + X Z_i W' + E_i`` with ``E_i ~ MN(0, inv A, inv B)``: every matrix is a
    small matrix Z_i of its own, seen through common loadings X of the rows and W of the columns.
    The loadings minimize ``sum_i tr(A (Y_i - M - X Z_i W') B (Y_i - M - X Z_i W')')``, X and W in
    turn; A and B come from the residual plus what the signal has absorbed of the noise. With
    ``noise="identity"`` this is GLRAM, the two-sided two-dimensional PCA.

    Parameters
    ----------
    n_row_components, n_col_components : int, default=2
        Size of the small matrices Z_i.
    noise : {"graph", "diagonal", "identity"}, default="graph"
        Structure of the noise on both sides: networks, unequal variances only, or equal ones.
    center : bool, default=True
        Whether there is a mean matrix M.
    {stages}
    {verbose}

    Attributes
    ----------
    row_components_ : ndarray of shape (n_row_components, n_rows)
        X', orthonormal in the metric ``row_precision_``; the largest absolute loading of each is
        positive.
    col_components_ : ndarray of shape (n_col_components, n_columns)
        W', orthonormal in the metric ``col_precision_``.
    cores_ : ndarray of shape (n_matrices, n_row_components, n_col_components)
        Z_i of the training matrices.
    mean_ : ndarray of shape (n_rows, n_columns)
        M, zeros without `center`.
    row_precision_, col_precision_ : csr_array
        A and B, scaled so that ``logdet A = 0``.
    {axes}

    References
    ----------
    .. [1] J. Ye, "Generalized low rank approximations of matrices" (2005), Machine Learning 61.
    .. [2] B. Li, M. K. Kim and N. Altman, "On dimension folding of matrix- or array-valued
       statistical objects" (2010), Annals of Statistics 38.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import DimensionFoldingPCA
    >>> from mnpca.datasets import make_tensor_normal
    >>> data = make_tensor_normal((30, 20, 15), 2, random_state=0)
    >>> model = DimensionFoldingPCA(2, 2).fit(data.Y)
    >>> model.transform(data.Y).shape
    (30, 2, 2)
    >>> model.denoise().shape
    (30, 20, 15)
    """

    n_row_components: int = 2
    n_col_components: int = 2
    _: KW_ONLY
    noise: str = "graph"
    center: bool = True
    max_iter: int = 9
    tol: float = 1e-2
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_row_components": [Interval(Integral, 1, None, closed="left")],
        "n_col_components": [Interval(Integral, 1, None, closed="left")],
        "noise": [StrOptions({"graph", "diagonal", "identity"})],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags

    def _validate_array(self, X: Any, *, reset: bool) -> FloatArray:
        rows, n_matrices = stack(X)
        if n_matrices is None:
            raise ValueError(
                "X must be several matrices: an array of shape (n_matrices, n_rows, n_columns) or "
                f"a list of matrices; got {np.ndim(X)} axes. For one matrix use MNPCA."
            )
        return super()._validate_array(unstack(np.asarray(rows), n_matrices), reset=reset)

    def _estimate(self, data: FloatArray, **options: Any) -> TensorFit:
        n_matrices, n, p = data.shape
        asked = (self.n_row_components, self.n_col_components)
        most = (min(n, n_matrices * asked[1]), min(p, n_matrices * asked[0]))
        for name, rank, bound in zip(("row", "col"), asked, most, strict=True):
            if rank > bound:
                raise ValueError(
                    f"n_{name}_components={rank} is more than {n_matrices} matrices of {n} x {p} "
                    f"have. Use at most {bound}."
                )
        structures: list[Any] = ["unit", self.noise, self.noise]
        return fit_tensor(data, [None, *asked], structures, **options)

    def _store_fit(self, fit: TensorFit, precisions: list[Any]) -> None:
        self.cores_ = fit.signal.core
        row_factor, col_factor = (np.asarray(factor) for factor in fit.signal.factors[1:])
        self.row_components_, self.col_components_ = row_factor.T, col_factor.T
        self.row_precision_, self.col_precision_ = precisions[1:]

    def transform(self, X: Any) -> FloatArray:
        """Return the small matrices ``Z_i = X'A (Y_i - M) B W``, by generalized least squares.

        Parameters
        ----------
        X : array-like of shape (n_matrices, n_rows, n_columns), or list of matrices
            Matrices, seen or unseen.

        Returns
        -------
        ndarray of shape (n_matrices, n_row_components, n_col_components)
        """
        return self._scores(X)

    def _project(self, centered: FloatArray) -> FloatArray:
        left = self.row_components_ @ self.row_precision_
        return left @ centered @ (self.col_precision_ @ self.col_components_.T)

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return the matrices ``M + X Z_i W'`` that have the given small matrices Z_i."""
        check_is_fitted(self)
        X = check_array(X, dtype=[np.float64, np.float32], allow_nd=True)
        small = (len(self.row_components_), len(self.col_components_))
        if X.shape[-2:] != small:
            raise ValueError(
                f"X must hold matrices of shape {small}, got shape {X.shape}. Pass what transform "
                "returns."
            )
        matrices = self.row_components_.T @ X @ self.col_components_ + self.mean_
        return matrices.astype(X.dtype, copy=False)

    def denoise(self) -> FloatArray:
        """Return the estimated signal of the training matrices, mean included."""
        check_is_fitted(self)
        return self.inverse_transform(self.cores_)
