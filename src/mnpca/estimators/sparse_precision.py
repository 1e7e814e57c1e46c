"""Sparse precision of samples, as a scikit-learn estimator."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from mnpca._typing import FloatArray
from mnpca.estimators._edges import EdgesMixin, NetworksMixin, stored
from mnpca.estimators._files import SaveMixin
from mnpca.estimators._input import Accepts, checked_rows, representable, training_matrix
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.model.sparse import logdet
from mnpca.noise.edges import score_edges
from mnpca.precision import choose_penalty, sparse_precision


@dataclass(eq=False, repr=False)
class SparsePrecision(EdgesMixin, NetworksMixin, SaveMixin, BaseEstimator):
    """Sparse inverse covariance of Gaussian samples (the graphical lasso).

    Minimizes ``-logdet(T) + tr(S T) + alpha sum_{i != j} |T_ij|``, S the covariance of the
    samples. The zeros of the precision T are pairs of features that are independent given all
    others.

    The penalty is in units of the covariance: bring features of different units to one scale
    first, for instance with `sklearn.preprocessing.StandardScaler`.

    Parameters
    ----------
    alpha : float, "bic" or "ebic", default="ebic"
        Penalty, or the criterion that chooses it: the Bayesian information criterion or its
        extension for many features.
    penalize_diagonal : bool, default=False
        Whether the diagonal is penalized too.
    center : bool, default=True
        Whether to subtract the mean of every column.
    tol : float, default=1e-4
        Largest duality gap, divided by the number of features.
    max_iter : int, default=1000
        Sweeps over the columns of a connected component of at most 100 features before
        second-order steps, which cost more, take over; the tolerance is the same.
    verbose : int, default=0
        1 prints the penalties tried and the result.

    Attributes
    ----------
    precision_ : scipy.sparse.csr_array of shape (n_features, n_features)
        Sparse precision.
    covariance_ : ndarray of shape (n_features, n_features)
        Its inverse.
    location_ : ndarray of shape (n_features,)
        Mean of the columns; zeros if ``center=False``.
    alpha_ : float
        The penalty used.
    alphas_, criterion_ : ndarray
        Penalties tried and the criterion at each; only if ``alpha`` names a criterion.
    objective_ : float
        Value of the problem at ``precision_``.
    duality_gap_ : float
        Bound on its distance from the optimum.
    edge_tests_ : dict
        The tests of the edges, which `edges` lists.
    n_iter_ : int
        Sweeps of the slowest connected component, at least 1.
    {names}

    See Also
    --------
    mnpca.sparse_precision : The same from a covariance matrix, with matrices of penalties.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import SparsePrecision
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> X[:, 1] += X[:, 0]
    >>> model = SparsePrecision(alpha="ebic").fit(X)
    >>> (model.precision_.toarray() != 0).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 0],
           [0, 0, 0, 1]])
    """

    alpha: float | str = "ebic"
    _: KW_ONLY
    penalize_diagonal: bool = False
    center: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"bic", "ebic"})],
        "penalize_diagonal": ["boolean"],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the precision.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples by rows.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        X = training_matrix(self, X, Accepts())[0].astype(np.float64, copy=False)
        self.location_ = X.mean(axis=0) if self.center else np.zeros(X.shape[1])
        centered = X - self.location_
        covariance = centered.T @ centered / len(X)
        _check_variances(covariance, X)
        options: dict[str, Any] = {
            "penalize_diagonal": self.penalize_diagonal,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }
        # What an earlier fit with a criterion left is forgotten.
        for name in ("alphas_", "criterion_"):
            self.__dict__.pop(name, None)
        if isinstance(self.alpha, str):
            choice = choose_penalty(covariance, len(X), self.alpha, **options)
            self.alphas_, self.criterion_ = choice.alphas, choice.criterion
            for alpha, value in zip(self.alphas_, self.criterion_, strict=False):
                if self.verbose:
                    print(f"[SparsePrecision] penalty {alpha:.4g}: {self.alpha} {value:.6f}")
            self.alpha_, result = choice.alpha, choice.result
        else:
            self.alpha_ = float(self.alpha)
            result = sparse_precision(covariance, self.alpha_, **options)
        self.precision_ = result.precision
        self.covariance_ = result.covariance
        self.objective_ = result.objective
        self.duality_gap_ = result.duality_gap
        self.n_iter_ = max(result.n_iter, 1)
        no_signal = np.zeros((X.shape[1], 0))
        tests = score_edges(centered.T, no_signal, self.precision_, len(X) - bool(self.center))
        self.edge_tests_ = {"columns": stored(tests)}
        if self.verbose:
            edges = (self.precision_.nnz - self.n_features_in_) // 2
            print(
                f"[SparsePrecision] penalty {self.alpha_:.4g}: {edges} edges, objective "
                f"{self.objective_:.6f}, duality gap at most {self.duality_gap_:.1e} after "
                f"{self.n_iter_} sweeps"
            )
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, seen or unseen.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = checked_rows(self, X, Accepts())[0]
        centered = X.astype(np.float64, copy=False) - self.location_
        distance = representable(
            np.float64, lambda rows: np.einsum("ij,ij->i", rows @ self.precision_, rows), centered
        )
        constant = X.shape[1] * np.log(2.0 * np.pi) - logdet(self.precision_)
        return -0.5 * (distance + constant)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood per row of held-out rows."""
        return float(np.mean(self.score_samples(X)))


def _check_variances(covariance: FloatArray, X: Any) -> None:
    """Refuse columns without variation, by name, before the solver does by number."""
    # Rounding leaves a constant column of size c a variance of about (eps c)^2.
    scale = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    constant = np.flatnonzero(np.diagonal(covariance) <= (1e-13 * scale) ** 2)
    if constant.size:
        raise ValueError(
            f"X has {constant.size} constant column(s), the first at {constant[0]}, whose "
            "precision is infinite: drop them."
        )
