"""PCA of an array with any number of axes, each with its own noise network."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca._typing import FloatArray, RandomState
from mnpca.estimators._axes import AxesEstimator
from mnpca.estimators._input import check_scores, noise_structures, seed_of
from mnpca.estimators._shared import CONSTRAINTS
from mnpca.solvers.tensor.fit import TensorFit, fit_matrix, fit_tensor
from mnpca.solvers.tensor.tucker import Tucker, mapped, unfold

STRUCTURES = ("graph", "diagonal", "identity")


@dataclass(eq=False, repr=False)
class TensorMNPCA(ClassNamePrefixFeaturesOutMixin, AxesEstimator):
    """PCA for correlated noise of an array with K axes, with a noise network on every axis.

    Estimates ``T = mean + core x_1 F_1 ... x_K F_K + E`` (a Tucker decomposition) with
    ``vec E ~ N(0, inv P_1 x ... x inv P_K)``: a low-rank signal, and one sparse precision P_k per
    axis (tensor normal noise, a Kronecker product). Signal and noise are estimated in turn: the
    signal by higher-order orthogonal iteration in the metrics of the noise, the noise from the
    residual plus what the signal has absorbed of it. Edges enter by score tests and are refitted
    without a penalty. A matrix (K = 2) is fitted by the solver of `MNPCA`, with the same result.

    Parameters
    ----------
    n_components : int or sequence of int, default=2
        Components of every axis, or of each. No axis can have more than the product of the
        others; a matrix has one number, less than its rows and columns.
    noise : {"graph", "diagonal", "identity"} or a sequence of these, default="graph"
        Structure of the noise of every axis, or of each: a network, unequal variances only, or
        equal ones, as for an axis of replicates.
    center : bool, default=False
        Whether to estimate a mean slice along the first axis. Without one, the mean is a part of
        the signal, which a Tucker decomposition describes as well.
    {stages}
    random_state : int, RandomState instance or None, default=None
        As in `MNPCA`, for a matrix; with more axes nothing is random.
    {verbose}

    Attributes
    ----------
    core_ : ndarray of shape (r_1, ..., r_K)
        Core, its unfoldings with orthogonal rows, longest first.
    factors_ : list of ndarray of shape (d_k, r_k)
        Loadings of every axis, orthonormal in the metric ``precisions_[k]``; the largest absolute
        loading of each is positive.
    components_ : ndarray of shape (r_1, d_2, ..., d_K)
        What the scores of the first axis multiply: slices, orthonormal in the metrics of the other
        axes.
    singular_values_ : ndarray of shape (r_1,)
        Lengths of the core's slices along the first axis; for a matrix as in `MNPCA`.
    mean_ : ndarray of shape (d_2, ..., d_K)
        Mean slice, zeros without `center`.
    precisions_ : list of csr_array
        P_1, ..., P_K, scaled so that ``logdet P_k = 0`` for all but the last.
    n_components_ : tuple of int
        Components of every axis.
    {axes}
    n_features_in_ : int
        Length of the second axis.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import TensorMNPCA
    >>> from mnpca.datasets import make_tensor_normal
    >>> data = make_tensor_normal((20, 15, 10), 2, random_state=0)
    >>> model = TensorMNPCA(2).fit(data.Y)
    >>> [precision.shape for precision in model.precisions_]
    [(20, 20), (15, 15), (10, 10)]
    >>> model.transform(data.Y[:3]).shape
    (3, 2)
    """

    n_components: int | Sequence[int] = 2
    _: KW_ONLY
    noise: str | Sequence[str] = "graph"
    center: bool = False
    max_iter: int = 9
    tol: float = 1e-2
    random_state: RandomState = None
    verbose: int = 0

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        **CONSTRAINTS,
        "n_components": [Interval(Integral, 0, None, closed="left"), list, tuple, np.ndarray],
        "noise": [StrOptions(set(STRUCTURES)), list, tuple],
    }

    def _estimate(self, data: FloatArray, **options: Any) -> TensorFit:
        ranks, several = self._ranks(data.shape), f"a list of {data.ndim} of these"
        structures = noise_structures(self.noise, STRUCTURES, data.ndim, several)
        if data.ndim > 2:
            return fit_tensor(data, ranks, structures, **options)
        seed = seed_of(self.random_state)
        return fit_matrix(data, ranks[0], structures, random_state=seed, **options)

    def _store_fit(self, fit: TensorFit, precisions: list[Any]) -> None:
        self.core_ = fit.signal.core
        self.factors_ = list(fit.signal.factors)
        self.precisions_ = precisions
        self.n_components_ = self.core_.shape
        self.components_, self.singular_values_ = fit.components

    def _ranks(self, shape: tuple[int, ...]) -> list[int]:
        """Return one rank per axis, or say which one cannot be."""
        asked: Any = self.n_components
        ranks = [asked] * len(shape) if np.ndim(asked) == 0 else list(asked)
        if len(ranks) != len(shape):
            raise ValueError(
                f"n_components={asked!r} needs one number for each of {len(shape)} axes."
            )
        for axis, (rank, size) in enumerate(zip(ranks, shape, strict=True)):
            others = int(np.prod(ranks[:axis] + ranks[axis + 1 :]))
            if not (isinstance(rank, Integral) and 0 <= int(rank) <= min(size, max(others, 0))):
                raise ValueError(
                    f"n_components={rank} of axis {axis} must be a whole number between 0 and "
                    f"{size}, and at most the product of the others, {others}."
                )
        if len(shape) == 2:
            # As many components as items would leave no noise.
            return [min(rank, min(shape) - 1) for rank in ranks]
        return [int(rank) for rank in ranks]

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def transform(self, X: Any) -> FloatArray:
        """Project slices of the first axis on the components by generalized least squares.

        Parameters
        ----------
        X : array-like of shape (n, d_2, ..., d_K)
            Slices, seen or unseen.

        Returns
        -------
        ndarray of shape (n, r_1)
        """
        return self._scores(X)

    def _project(self, centered: FloatArray) -> FloatArray:
        filtered = mapped(centered, [None, *(P.__matmul__ for P in self.precisions_[1:])])
        return unfold(filtered, 0) @ unfold(self.components_, 0).T

    def inverse_transform(self, X: Any) -> FloatArray:
        """Return the slices that have the given scores, mean included."""
        check_is_fitted(self)
        least = min(1, self._n_features_out)
        X = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=least)
        check_scores(self, X)
        slices = np.tensordot(X, self.components_, axes=1) + self.mean_
        return slices.astype(X.dtype, copy=False)

    def denoise(self) -> FloatArray:
        """Return the estimated signal of the training array, mean included."""
        check_is_fitted(self)
        return Tucker(self.core_, tuple(self.factors_), self.mean_).dense()
