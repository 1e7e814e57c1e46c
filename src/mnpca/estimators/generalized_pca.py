"""Generalized PCA with given metrics, as a scikit-learn estimator."""

import contextlib
import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import RandomState
from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.estimators._input import Accepts, seed_of
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.model.gpca import DENSE_LIMIT, DEPTH, OVERSAMPLING, GpcaSolver, gpca
from mnpca.model.metric import Metric, as_metric, laplacian_metric, smooth_metric
from mnpca.model.sparse_data import centered
from mnpca.selection.rank import choose_rank

_METRIC = [None, "array-like", "sparse matrix", LinearOperator, StrOptions({"laplacian", "smooth"})]


@dataclass(eq=False, repr=False)
class GeneralizedPCA(MatrixNormalEstimator):
    """PCA in given metrics of the samples and of the features.

    Finds ``U D V'`` closest to the data in the metrics A among rows and B among columns:
    ``min tr((Y - U D V') B (Y - U D V')' A)`` with ``U'AU = I``, ``V'BV = I`` and ``D >= 0``
    [1]_. With the inverse covariances of the noise as metrics it is the maximum likelihood
    estimate of a low-rank signal; with identities it is PCA.

    Parameters
    ----------
    n_components : int, float, "paper" or None, default=None
        Number of components; the fewest with at least a share, between 0 and 1, of the data's sum
        of squares in both metrics; the paper's rule for the cumulative share of variance; or all.
    row_metric, col_metric : None, array-like, sparse matrix, LinearOperator, "laplacian" or \
"smooth", default=None
        Positive semi-definite A and B. None is the identity and a 1-D array a diagonal.
        "laplacian" and "smooth" are made from the Chebyshev distances between the rows (columns)
        of X: the Laplacian of the graph of the 1% nearest pairs, and ``exp(-distance^2 / 2)``;
        see `mnpca.model.metric` to make them with other settings.
    center : bool, default=True
        Whether to subtract the mean of every column.
    solver : {"auto", "factor", "krylov", "power"}, default="auto"
        "factor" takes the SVD of the data multiplied by factors of the metrics. "krylov" needs
        products with X and the metrics only: for large sparse X, for operators, and for few
        components of large data. "power" is the generalized power method, for all components at
        once: it needs a fifth of the memory of "krylov" and more rounds. "auto" takes the first or
        the second.
    max_iter : int, default=1000
        Largest number of rounds of the iterative solvers.
    tol : float, default=1e-12
        Relative accuracy of the iterative solvers.
    random_state : int, RandomState instance or None, default=None
        Start of the iterative solvers, on which the result depends within `tol` only; None is a
        fixed start.
    verbose : int, default=0
        Whether to print the number of iterations.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        V', orthonormal in the metric B; the largest absolute loading of each is positive. Where X
        has fewer dimensions than components, those left over may be zero.
    singular_values_ : ndarray of shape (n_components,)
        D.
    low_rank_ : LowRank
        Factors U D and V of the approximation of X.
    mean_ : ndarray of shape (n_features,)
        Subtracted mean, or zeros.
    row_precision_, col_precision_ : sparse array or LinearOperator
        The metrics.
    {explained}
    {row_distribution}
    {convergence}
    {names}

    References
    ----------
    .. [1] G. I. Allen, L. Grosenick and J. Taylor, "A generalized least-square matrix
       decomposition", Journal of the American Statistical Association, 109 (2014).

    Examples
    --------
    >>> from mnpca import GeneralizedPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.metrics import psnr
    >>> data = make_paper_small(c=32, seed=0)
    >>> model = GeneralizedPCA(2, row_metric=data.row_precision, col_metric=data.col_precision)
    >>> plain = GeneralizedPCA(2)
    >>> psnr(model.fit(data.Y).denoise(), data.signal) > 14
    True
    >>> psnr(plain.fit(data.Y).denoise(), data.signal) < 12
    True
    """

    n_components: float | str | None = None
    _: KW_ONLY
    row_metric: Any = None
    col_metric: Any = None
    center: bool = True
    solver: str = "auto"
    max_iter: int = 1000
    tol: float = 1e-12
    random_state: RandomState = None
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"paper"}),
            None,
        ],
        "row_metric": _METRIC,
        "col_metric": _METRIC,
        "solver": [StrOptions({"auto", "factor", "krylov", "power"})],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    @property
    def _accepts(self) -> Accepts:
        return Accepts(sparse=True)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Data. A sparse matrix is made dense only where it is no larger than the basis of the
            Krylov solver, or to make a named metric from it.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        X = self._training_matrix(X)
        share = self.n_components if isinstance(self.n_components, float) else None
        data, mean = centered(X, self.center)
        rank = choose_rank(None if share else self.n_components, data)
        metrics = (
            as_metric(_made_from(X, self.row_metric), X.shape[0], "row_metric"),
            as_metric(_made_from(X.T, self.col_metric), X.shape[1], "col_metric"),
        )
        solver = self._choose_solver(X, rank, metrics)
        if solver != "factor":
            for metric in metrics:
                metric.check()
        parts = gpca(
            data,
            rank,
            *metrics,
            solver=solver,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed_of(self.random_state),
        )
        if share:
            parts = parts.leading(share)
        self.n_iter_, self.converged_ = parts.n_iter, parts.converged
        if self.verbose:
            print(f"[{type(self).__name__}] {solver}: {self.n_iter_} iterations")
        if not self.converged_:
            warnings.warn(
                f'GeneralizedPCA(solver="{solver}") did not reach tol={self.tol:g} in '
                f"max_iter={self.max_iter} iterations. Increase max_iter or tol, or use "
                'solver="factor" with a dense X.',
                ConvergenceWarning,
                stacklevel=2,
            )
        self._store_fit(
            X,
            mean=mean,
            low_rank=parts.low_rank(),
            components=parts.right.T,
            singular_values=parts.singular_values,
            row_precision=metrics[0].stored(),
            col_precision=metrics[1].stored(),
        )
        return self

    def score_samples(self, X: Any) -> Any:
        """Log-likelihood of each row, taken as a new one.

        Needs a positive definite `col_metric` that is not a LinearOperator: others are not inverse
        covariances.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if not isinstance(self.col_precision_, LinearOperator):
            with contextlib.suppress(np.linalg.LinAlgError):
                return super().score_samples(X)
        raise ValueError(
            "col_metric must be a positive definite matrix for a likelihood; a semi-definite "
            "metric or an operator is no inverse covariance."
        )

    def _choose_solver(self, X: Any, rank: int, metrics: tuple[Metric, Metric]) -> GpcaSolver:
        if self.solver == "factor" and sp.issparse(X):
            raise ValueError(
                'solver="factor" would make the sparse X dense; use "auto", or X.toarray().'
            )
        if self.solver != "auto":
            return cast(GpcaSolver, self.solver)
        few = rank <= min(X.shape) // 10 and min(X.shape) > DENSE_LIMIT
        # A sparse X no larger than Krylov's basis may become dense.
        large = sp.issparse(X) and max(X.shape) > (DEPTH + 1) * (rank + OVERSAMPLING)
        operators = any(metric.is_operator for metric in metrics)
        return "krylov" if operators or few or large else "factor"


def _made_from(items: Any, metric: Any) -> Any:
    """Return the metric itself, or the one of that name between the rows of `items`."""
    if not isinstance(metric, str):
        return metric
    items = items.toarray() if sp.issparse(items) else items
    return laplacian_metric(items) if metric == "laplacian" else smooth_metric(items)
