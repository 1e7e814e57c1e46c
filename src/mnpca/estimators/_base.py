"""What the estimators of a matrix share: their fit, and all that a fitted model answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca._typing import FloatArray
from mnpca.engines import is_dask, reads_in_blocks
from mnpca.engines.arrays import is_foreign_array, on_host, to_numpy
from mnpca.estimators import _array_api as array_api
from mnpca.estimators import _incomplete as incomplete
from mnpca.estimators._edges import NetworksMixin
from mnpca.estimators._files import ReportingEstimator, SaveMixin
from mnpca.estimators._input import (
    Accepts,
    check_scores,
    checked_rows,
    floating_matrix,
    representable,
    training_matrix,
    unstack,
    unstacked_scores,
)
from mnpca.model.low_rank import LowRank
from mnpca.model.rows import (
    RowModel,
    fit_row_model,
    gls_scores,
    gls_weights,
    row_log_likelihood,
    squared_length,
)
from mnpca.solvers.missing import Incomplete
from mnpca.solvers.progress import Report, State


class MatrixNormalEstimator(
    SaveMixin, NetworksMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """An estimator of Y = mean + X W' + E, E ~ MN(inv A, inv B).

    A subclass's ``fit`` estimates the parts and hands them to `_store_fit`; everything a user
    asks afterwards is answered from the fitted attributes alone.
    """

    center: Any

    @property
    def _accepts(self) -> Accepts:
        return Accepts()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts.sparse
        tags.input_tags.three_d_array = self._accepts.several
        tags.input_tags.allow_nan = self._accepts.missing
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _training_matrix(self, X: Any) -> Any:
        """Check the training matrix; every fit begins with this."""
        X, n_matrices = training_matrix(self, X, self._accepts)
        if self._accepts.several:
            self.n_matrices_ = n_matrices
        return X

    def _as_fitted(self, rows: Any) -> Any:
        """Give rows of the training data the first axis that these had, if any."""
        return unstack(rows, getattr(self, "n_matrices_", None))

    def _store_fit(
        self,
        X: Any,
        *,
        mean: FloatArray,
        low_rank: LowRank,
        components: FloatArray,
        singular_values: FloatArray,
        row_precision: Any,
        col_precision: Any,
    ) -> None:
        """Set the fitted attributes that all estimators share.

        The mean is zero where the fit does not center, and left out of `low_rank`. Components are
        orthonormal in the metric B; precisions are in the gauge ``logdet A = 0``, given metrics as
        they are.
        """
        self.mean_ = mean
        self.low_rank_ = low_rank
        self.components_ = components
        self.singular_values_ = singular_values
        self.n_components_ = len(components)
        self.row_precision_, self.col_precision_ = (
            each if isinstance(each, LinearOperator) else sp.csr_array(each)
            for each in (row_precision, col_precision)
        )
        model = self._estimated_rows(X)
        self.noise_variance_ = model.noise_variance
        self.score_covariance_ = model.score_covariance

    def _estimated_rows(self, X: Any) -> RowModel:
        """Estimate the distribution of an unseen row from the training rows."""
        loadings, precision = self.components_.T, self.col_precision_
        in_blocks = self._accepts.blocks and reads_in_blocks(X)
        if sp.issparse(X) or (isinstance(X, np.ndarray) and not in_blocks):
            scores = gls_scores(X, precision, loadings, self.mean_)
            total = squared_length(X, self.mean_, precision)
        else:
            weights = gls_weights(precision, loadings)
            scores, total = array_api.training_moments(X, self.mean_, weights, precision)
        # A mean of zero that was estimated costs a row, too; center may be "auto".
        n_free = X.shape[0] - (self.center is True or bool(np.any(self.mean_)))
        return fit_row_model(scores, total, n_free, precision, loadings)

    def _row_distribution(self) -> RowModel:
        """Return the distribution of an unseen row with the mean taken off."""
        check_is_fitted(self)
        return RowModel(
            self.col_precision_,
            on_host(self.components_).T,
            on_host(self.score_covariance_),
            float(self.noise_variance_),
            float(getattr(self, "degrees_of_freedom_", np.inf)),
        )

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def transform(self, X: Any) -> Any:
        """Project rows on the components by generalized least squares.

        ``(X - mean) B W (W'BW)^-1``: the noise network among columns is taken into account, the
        training rows get no special treatment.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to project, seen or unseen.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self._project(*checked_rows(self, X, self._accepts))

    def _project(self, rows: Any, n_matrices: int | None) -> Any:
        """Return the scores of complete rows."""
        loadings, mean = on_host(self.components_).T, on_host(self.mean_)
        if is_foreign_array(rows) or reads_in_blocks(rows):
            return array_api.project(rows, gls_weights(self.col_precision_, loadings), mean)
        scores = representable(rows.dtype, gls_scores, rows, self.col_precision_, loadings, mean)
        return unstacked_scores(self, scores, n_matrices)

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows that have the given scores, ``X W' + mean``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores, with a first axis for the matrices where `transform` gives them one.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the type of the scores, float64 where they are whole numbers.
        """
        check_is_fitted(self)
        if is_foreign_array(X) or is_dask(X):
            X = floating_matrix(X)
        else:
            X = check_array(
                X,
                dtype=[np.float64, np.float32],
                ensure_min_features=min(1, self.n_components_),  # a model may have no component
                allow_nd=self._accepts.several,
            )
        check_scores(self, X)
        return array_api.from_scores(X, on_host(self.components_), on_host(self.mean_))

    def denoise(self) -> Any:
        """Return the estimated signal of the training matrix, mean included.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            With a first axis for the matrices where the model was fitted to several.
        """
        check_is_fitted(self)
        return self._dense(self.low_rank_, lambda rows: rows + self.mean_)

    def _dense(self, low_rank: LowRank, function: Callable[[Any], Any]) -> Any:
        """Return a function of the rows of a low-rank matrix, in the form of the training data."""
        chunks = getattr(self, "row_chunks_", None)
        if chunks is not None:
            return array_api.low_rank_blocks(*low_rank, chunks, function)
        return self._as_fitted(function(LowRank(*low_rank).dense()))

    def score_samples(self, X: Any) -> Any:
        """Log-likelihood of each row, taken as a new one.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._densities(*checked_rows(self, X, self._accepts))

    def _densities(self, rows: Any, n_matrices: int | None) -> Any:
        """Return the log-likelihoods of complete rows."""
        mean, model = on_host(self.mean_), self._row_distribution()
        if is_foreign_array(rows) or reads_in_blocks(rows) or sp.issparse(rows):
            return array_api.log_likelihood(rows, mean, model)
        values = representable(np.float64, row_log_likelihood, rows - mean, model)
        return unstack(values, n_matrices)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood per row of held-out rows."""
        return _mean(self.score_samples(X))

    def get_covariance(self) -> FloatArray:
        """Return the covariance of an unseen row, ``W C W' + s2 inv(B)``, as `score` assumes it.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Formed as a dense matrix.
        """
        return self._row_distribution().covariance()

    def get_precision(self) -> FloatArray:
        """Return the inverse of `get_covariance`, by Woodbury's identity.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        return self._row_distribution().precision()

    @property
    def explained_variance_(self) -> FloatArray:
        """Variance of a row's scores along each component, as `transform` returns them."""
        return self._row_distribution().score_variances()

    @property
    def explained_variance_ratio_(self) -> FloatArray:
        """Share of each component in the variance of a row, ``tr(B S)``, S its covariance.

        The noise precision B is the measure of both, so that a share compares with the noise. With
        the identity for B these are the shares of PCA.
        """
        return self.explained_variance_ / self._row_distribution().total_variance()


class NoiseEstimator(ReportingEstimator, MatrixNormalEstimator):
    """An estimator of signal and noise, also with missing values and covariates.

    A subclass has ``_estimate(X, problem, report, resume)``: it fits the matrix X or, where X has
    missing values or covariates, the `Incomplete` problem, whose outcome it hands to
    `_incomplete.store_outcome`.
    """

    missing: str
    verbose: int

    def _prepare(
        self, X: Any, row_covariates: Any, col_covariates: Any
    ) -> tuple[tuple[Any, Incomplete | None], Any]:
        X = self._training_matrix(X)
        forgotten: Any = None
        self.missing_ = self.completed_ = self.completed_std_ = forgotten
        self.row_coef_ = self.col_coef_ = self.col_covariates_ = forgotten
        self.row_covariates_ = self.row_covariates_mean_ = forgotten
        data, problem = self._as_fitted(X), None
        given = (row_covariates, col_covariates)
        has_covariates = any(each is not None for each in given)
        # The smallest entry is NaN where any is; a mask of all of X is made only where needed.
        if has_covariates or (isinstance(X, np.ndarray) and np.isnan(X.min())):
            problem = incomplete.as_problem(self, X, *given)
        if has_covariates:
            data = [data, *(None if each is None else np.asarray(each) for each in given)]
        return (X, problem), data

    def _fit(
        self, training: tuple[Any, Incomplete | None], report: Report, resume: State | None
    ) -> None:
        X, problem = training
        self._estimate(X, problem, report, resume)
        if is_foreign_array(X):
            array_api.place_results(self, X)

    def _is_complete(self, rows: Any, row_covariates: Any) -> bool:
        """Whether rows have no missing values, and neither they nor the model have covariates."""
        covariates = (row_covariates, self.row_covariates_, self.col_covariates_)
        if any(each is not None for each in covariates):
            return False
        # Rows outside NumPy's memory were checked to have no missing values.
        return not isinstance(rows, np.ndarray) or not np.isnan(rows).any()

    def fit_transform(
        self, X: Any, y: Any = None, *, row_covariates: Any = None, **fit_params: Any
    ) -> Any:
        """Fit the model and project its rows; parameters are those of `fit`."""
        self.fit(X, y, row_covariates=row_covariates, **fit_params)
        return self.transform(X, row_covariates=row_covariates)

    def transform(self, X: Any, *, row_covariates: Any = None) -> Any:
        """Project rows on the components by generalized least squares.

        ``(X - mean) B W (W'BW)^-1``: the noise network among columns is taken into account, the
        training rows get no special treatment. A row with missing values is projected from its
        observed cells, with the precision that these have by themselves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to project, seen or unseen; NaN marks missing values where ``missing="em"``.
            Several matrices of them, where `fit` takes these.
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Covariates of these rows, for a model that was fitted with them.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            With a first axis for the matrices where X has one.
        """
        rows, n_matrices = checked_rows(self, X, self._accepts)
        if self._is_complete(rows, row_covariates):
            return self._project(rows, n_matrices)
        scores = incomplete.scores(self, rows, row_covariates)
        return unstacked_scores(self, scores, n_matrices)

    def score_samples(self, X: Any, *, row_covariates: Any = None) -> Any:
        """Log-likelihood of each row, taken as a new one, from its observed cells.

        Parameters are those of `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
            With a first axis for the matrices where X has one.
        """
        rows, n_matrices = checked_rows(self, X, self._accepts)
        if self._is_complete(rows, row_covariates):
            return self._densities(rows, n_matrices)
        return unstack(incomplete.log_likelihood(self, rows, row_covariates), n_matrices)

    def score(self, X: Any, y: Any = None, *, row_covariates: Any = None) -> float:
        """Mean log-likelihood per row of held-out rows."""
        return _mean(self.score_samples(X, row_covariates=row_covariates))

    def impute(self, X: Any = None, *, row_covariates: Any = None, return_std: bool = False) -> Any:
        """Return a matrix with conditional means in place of its missing values.

        A conditional mean is made of signal, covariate effects and the part of the noise that the
        observed cells determine. Standard errors hold the uncertainty of signal and noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            New rows, filled one by one under the fitted distribution of a row. None is the
            training matrix, whose rows also help each other through their network.
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Covariates of new rows, for a model that was fitted with them.
        return_std : bool, default=False
            Whether to return the standard error of every entry too; observed entries have 0.

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features)
            Only with `return_std`.
        """
        check_is_fitted(self)
        if X is None and self.completed_ is None:
            raise ValueError(
                "The training matrix had no missing values, so there is nothing to impute. "
                "Pass the rows to complete as X."
            )
        if X is None:
            filled, std = self.completed_.copy(), self.completed_std_.copy()
        else:
            X = X.toarray() if sp.issparse(X) else X
            rows, n_matrices = checked_rows(self, X, self._accepts)
            both = incomplete.filled(self, rows, row_covariates)
            filled, std = (unstack(each, n_matrices) for each in both)
        return (filled, std) if return_std else filled


def _mean(densities: Any) -> float:
    return float(np.mean(np.asarray(densities) if is_dask(densities) else to_numpy(densities)))
