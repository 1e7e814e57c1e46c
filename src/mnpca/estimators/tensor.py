"""PCA of an array with any number of axes, each with its own noise network."""

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca.estimators._axes import AxesEstimator
from mnpca.estimators._graph import precision_graph
from mnpca.estimators._validation import check_scores, representable
from mnpca.solvers.tensor.axes import unfold, weighted_by
from mnpca.solvers.tensor.fit import fit_tensor
from mnpca.solvers.tensor.matrix import fit_matrix
from mnpca.solvers.tensor.tucker import Tucker

STRUCTURES = ("graph", "diagonal", "identity")


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
    rank : int or sequence of int, default=2
        Components of every axis, or of each. No axis can have more than the product of the
        others; a matrix has one number, less than its rows and columns.
    noise : {"graph", "diagonal", "identity"} or a sequence of these, default="graph"
        Structure of the noise of every axis, or of each: a network, unequal variances only, or
        equal ones, as for an axis of replicates.
    center : bool, default=False
        Whether to estimate a mean slice along the first axis. Without one, the mean is a part of
        the signal.
    max_iter : int, default=9
        Most iterations with unequal variances only, before networks.
    tol : float, default=1e-2
        A stage ends when the signal changes by less than this share.
    random_state : int, RandomState instance or None, default=None
        As in `MNPCA`, for a matrix; with more axes nothing is random.
    verbose : int, default=0
        Whether to print every iteration.

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
    rank_ : tuple of int
        Components of every axis.
    shape_ : tuple of int
        Of the training array.
    objective_history_ : ndarray
        Log-likelihood less the price of the edges, after every iteration (for a matrix as in
        `MNPCA`).
    n_iter_ : int
        Iterations made.
    converged_ : bool
        Whether the signal settled. A ConvergenceWarning says so where it did not.
    n_features_in_ : int
        Length of the second axis.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca import TensorMNPCA
    >>> from mnpca.datasets import make_tensor_normal
    >>> data = make_tensor_normal((20, 15, 10), rank=2, random_state=0)
    >>> model = TensorMNPCA(rank=2).fit(data.Y)
    >>> [precision.shape for precision in model.precisions_]
    [(20, 20), (15, 15), (10, 10)]
    >>> model.transform(data.Y[:3]).shape
    (3, 2)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "rank": [Interval(Integral, 0, None, closed="left"), list, tuple, np.ndarray],
        "noise": [StrOptions(set(STRUCTURES)), list, tuple],
        "center": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        rank=2,
        *,
        noise="graph",
        center=False,
        max_iter=9,
        tol=1e-2,
        random_state=None,
        verbose=0,
    ):
        self.rank = rank
        self.noise = noise
        self.center = center
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, callback=None, checkpoint=None, resume_from=None):
        """Estimate the signal and the noise of every axis.

        Parameters
        ----------
        X : array-like with two axes or more
            Data; the first axis are the samples that `transform` takes.
        y : None
            Ignored.
        callback : callable, default=None
            Called with a `mnpca.solvers.progress.Progress` after every iteration.
        checkpoint : path-like, default=None
            File in which the state of the fit is kept.
        resume_from : path-like, default=None
            Checkpoint of the same fit to go on from.

        Returns
        -------
        self
        """
        X = self._validate_array(X, reset=True)
        ranks, structures = self._ranks(X.shape), self._structures(X.ndim)
        options = {"center": self.center, "max_iter": self.max_iter, "tol": self.tol}
        data = X.astype(np.float64, copy=False)
        with self._progress(X, callback, checkpoint, resume_from) as (report, resume):
            if X.ndim == 2:
                seed = self._seed()
                options |= {"random_state": seed, "report": report, "resume": resume}
                fit = fit_matrix(data, ranks[0], structures, **options)
            else:
                options |= {"report": report, "resume": resume}
                fit = fit_tensor(data, ranks, structures, **options)
            self.shape_ = X.shape
            self._store_signal(fit.signal)
            self.components_, self.singular_values_ = fit.components()
            self.precisions_ = [sp.csr_array(side.precision) for side in fit.noise]
            self._store_progress(fit)
        return self

    def _ranks(self, shape):
        """Return one rank per axis, or say which one cannot be."""
        ranks = [self.rank] * len(shape) if np.ndim(self.rank) == 0 else list(self.rank)
        if len(ranks) != len(shape):
            raise ValueError(f"rank={self.rank!r} needs one number for each of {len(shape)} axes.")
        for axis, (rank, size) in enumerate(zip(ranks, shape, strict=True)):
            others = int(np.prod(ranks[:axis] + ranks[axis + 1 :]))
            if not (isinstance(rank, Integral) and 0 <= rank <= min(size, max(others, 0))):
                raise ValueError(
                    f"rank {rank} of axis {axis} must be a whole number between 0 and {size}, and "
                    f"at most the product of the other ranks, {others}."
                )
        if len(shape) == 2:
            # As many components as items would leave no noise.
            return [min(rank, min(shape) - 1) for rank in ranks]
        return [int(rank) for rank in ranks]

    def _structures(self, n_axes):
        """Return one noise structure per axis."""
        structures = [self.noise] * n_axes if isinstance(self.noise, str) else list(self.noise)
        if len(structures) != n_axes or any(s not in STRUCTURES for s in structures):
            raise ValueError(
                f"noise={self.noise!r} must be one of {STRUCTURES}, or a list of {n_axes} of these."
            )
        return structures

    def _seed(self):
        if self.random_state is None:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _store_signal(self, signal):
        self.core_ = signal.core
        self.factors_ = list(signal.factors)
        self.rank_ = signal.core.shape
        zeros = np.zeros(self.shape_[1:])
        self.mean_ = zeros if signal.mean is None else signal.mean

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def transform(self, X):
        """Project slices of the first axis on the components by generalized least squares.

        Parameters
        ----------
        X : array-like of shape (n, d_2, ..., d_K)
            Slices, seen or unseen.

        Returns
        -------
        ndarray of shape (n, r_1)
        """
        check_is_fitted(self)
        X = self._validate_array(X, reset=False)
        return representable(X.dtype, self._project, X - self.mean_)

    def _project(self, centered):
        filtered = weighted_by(centered, [None, *self.precisions_[1:]])
        return unfold(filtered, 0) @ unfold(self.components_, 0).T

    def inverse_transform(self, X):
        """Return the slices that have the given scores, mean included."""
        check_is_fitted(self)
        least = min(1, self._n_features_out)
        X = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=least)
        check_scores(self, X)
        slices = np.tensordot(X, self.components_, axes=1) + self.mean_
        return slices.astype(X.dtype, copy=False)

    def denoise(self):
        """Return the estimated signal of the training array, mean included."""
        check_is_fitted(self)
        return Tucker(self.core_, tuple(self.factors_), self.mean_).dense()

    def noise_graph(self, axis):
        """Return the noise network of one axis as a networkx graph.

        Parameters
        ----------
        axis : int
            Number of the axis, from 0.

        Returns
        -------
        networkx.Graph
            Nodes are positions on the axis; edges carry ``precision`` and
            ``partial_correlation``.
        """
        check_is_fitted(self)
        if not (isinstance(axis, Integral) and -len(self.shape_) <= axis < len(self.shape_)):
            raise ValueError(f"axis must be 0 to {len(self.shape_) - 1}, got {axis!r}.")
        return precision_graph(self.precisions_[axis])
