"""What every estimator of the model offers once it is fitted."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mnpca.engines import engine_for, is_dask, reads_in_blocks
from mnpca.engines.arrays import is_foreign_array, to_numpy
from mnpca.estimators import _blocks
from mnpca.estimators._array_api import (
    checked_rows,
    floating_matrix,
    log_likelihood,
    on_host,
    placed,
    project,
    training_moments,
)
from mnpca.estimators._progress import ProgressMixin
from mnpca.estimators._saving import SaveMixin
from mnpca.estimators._several import check_output, names_of_one, refuse_several, stack, unstack
from mnpca.estimators._validation import (
    check_scores,
    plain,
    representable,
    validate_elsewhere,
    validate_training,
)
from mnpca.model.likelihood import row_log_likelihood
from mnpca.model.low_rank import LowRank
from mnpca.model.projection import gls_scores, gls_transform

ROWS_AT_ONCE = 1024


class MatrixNormalEstimator(
    SaveMixin, ProgressMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """The shared face of the estimators of Y = mean + X W' + E, E ~ MN(inv A, inv B).

    A subclass's ``fit`` estimates the pieces and hands them to `_store_fit`; everything a user
    asks afterwards is answered here from the fitted attributes alone.
    """

    # Whether X may be a scipy.sparse matrix; it is never made dense then.
    _sparse_input = False
    # Whether X may be several matrices that share both noise networks and the loadings.
    _several_input = False
    # Whether X may live outside NumPy (torch, CuPy, ...), where it then stays.
    _elsewhere_input = False
    # Whether X may stay outside memory (a mapped file, a dask array) and be read in blocks.
    _blocks_input = False
    # Whether NaN in X marks a missing value.
    _holes_allowed = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse_input
        tags.input_tags.three_d_array = self._several_input
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_training(self, X):
        """Check the training matrix; every fit begins with this. See `validate_training`.

        Several matrices come back one under the other; `n_matrices_` is their number.
        """
        X, n_matrices = self._stacked(X)
        if (self._elsewhere_input and is_foreign_array(X)) or self._stays_outside_memory(X):
            X = validate_elsewhere(self, X)
        else:
            X = validate_training(
                self, X, accept_sparse=self._sparse_input, allow_nan=self._holes_allowed
            )
        if self._several_input:
            self.n_matrices_ = n_matrices
        if n_matrices is not None and hasattr(self, "sample_names_in_"):
            self.sample_names_in_ = names_of_one(self.sample_names_in_, n_matrices)
        return X

    def _stays_outside_memory(self, X):
        """Tell whether a training matrix is read in blocks; a mapped file with holes is not."""
        if not (self._blocks_input and reads_in_blocks(X)):
            return False
        if is_dask(X) or not self._holes_allowed:
            return True
        return not np.isnan(engine_for(X).extremes()).any()

    def _stacked(self, X):
        """Return several matrices one under the other, and their number (None for one)."""
        if self._several_input:
            return stack(X)
        refuse_several(self, X)
        return X, None

    def _scores_as_given(self, scores, n_matrices):
        """Give scores the first axis that their data had, if any."""
        if n_matrices is not None:
            check_output(self)
        return unstack(scores, n_matrices)

    def _as_fitted(self, rows):
        """Give rows of the training data the first axis that these had, if any."""
        return unstack(rows, getattr(self, "n_matrices_", None))

    def _validate_rows(self, X):
        """Check rows to project or to score."""
        X = plain(X, keep_sparse=self._sparse_input)
        if is_foreign_array(X) or reads_in_blocks(X):
            return checked_rows(self, X)
        return validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr" if self._sparse_input else False,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if self._holes_allowed else True,
        )

    def _store_fit(
        self, X, *, mean, low_rank, components, singular_values, row_precision, col_precision
    ):
        """Set the fitted attributes that all estimators share.

        Parameters
        ----------
        X : array of shape (n, p)
            Training matrix.
        mean : array of shape (p,)
            Estimated mean row (zeros when the fit does not center).
        low_rank : LowRank
            Factors of the denoised training matrix, the mean left out.
        components : array of shape (k, p)
            Loadings W', orthonormal in the metric B, signs fixed.
        singular_values : array of shape (k,)
            Generalized singular values.
        row_precision, col_precision : arrays, sparse arrays or LinearOperators
            A and B; estimates in the gauge ``logdet A = 0``, given metrics as they are.
        """
        self.mean_ = mean
        self.low_rank_ = low_rank
        self.components_ = components
        self.singular_values_ = singular_values
        self.n_components_ = len(components)
        self.row_precision_ = _as_stored(row_precision)
        self.col_precision_ = _as_stored(col_precision)
        self._store_row_distribution(X)

    def _store_row_distribution(self, X):
        """Estimate the distribution of an unseen row: noise variance and score covariance.

        The generalized least squares scores of the training rows have covariance
        C + s2 (W'BW)^-1; the noise variance s2 is the residual's mean square in the metric B.
        """
        n, p = X.shape
        weighted = self.col_precision_ @ self.components_.T
        gram = self.components_ @ weighted
        in_blocks = self._blocks_input and reads_in_blocks(X)
        if (isinstance(X, np.ndarray) and not in_blocks) or sp.issparse(X):
            scores = gls_scores(X, self.col_precision_, self.components_.T, self.mean_)
            total = self._squared_length(X)
        else:
            scores, total = training_moments(X, self.mean_, weighted, self.col_precision_)
            scores = scores @ np.linalg.pinv(gram, hermitian=True)
        explained = float(np.sum((scores @ gram) * scores))
        # A mean of zero that was estimated costs a row, too; center may be "auto".
        rows_left = n - 1 if self.center is True or np.any(self.mean_) else n
        left_over = max(rows_left * (p - self.n_components_), 1)
        floor = np.finfo(float).eps * max(total, np.finfo(float).tiny) / max(n * p, 1)
        self.noise_variance_ = max((total - explained) / left_over, floor)
        covariance = scores.T @ scores / max(rows_left, 1)
        covariance -= self.noise_variance_ * np.linalg.pinv(gram, hermitian=True)
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        self.score_covariance_ = (vectors * np.maximum(values, 0.0)) @ vectors.T

    def _squared_length(self, X):
        """Return ``tr(R B R')`` with R the centered rows, a batch of rows at a time."""
        total = 0.0
        for batch in gen_batches(X.shape[0], ROWS_AT_ONCE):
            rows = _dense(X[batch]) - self.mean_
            total += float(np.vdot(rows.T, self.col_precision_ @ rows.T))
        return total

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def transform(self, X):
        """Project rows on the components by generalized least squares.

        ``(X - mean) B W (W'BW)^-1``: the noise network among columns is taken into account, the
        training rows get no special treatment.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows to project, seen or unseen; or several matrices of them, where `fit` takes these.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            With a first axis for the matrices where X has one.
        """
        check_is_fitted(self)
        X, n_matrices = self._stacked(X)
        X = self._validate_rows(X)
        loadings, mean = on_host(self.components_).T, on_host(self.mean_)
        if is_foreign_array(X):
            return project(X, gls_transform(self.col_precision_, loadings), mean)
        if reads_in_blocks(X):
            return _blocks.project(X, gls_transform(self.col_precision_, loadings), mean)
        scores = representable(X.dtype, gls_scores, X, self.col_precision_, loadings, mean)
        return self._scores_as_given(scores, n_matrices)

    def inverse_transform(self, X):
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
                allow_nd=self._several_input,
            )
        check_scores(self, X)
        components, mean = on_host(self.components_), on_host(self.mean_)
        if is_foreign_array(X):
            return X @ placed(components, X) + placed(mean, X)

        def rows(scores):
            return (scores @ components + mean).astype(scores.dtype, copy=False)

        return _blocks.each_block(X, rows, len(mean)) if is_dask(X) else rows(X)

    def denoise(self):
        """Return the estimated signal of the training matrix, mean included.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            With a first axis for the matrices where the model was fitted to several.
        """
        check_is_fitted(self)
        return self._as_fitted(self._dense_signal(self.low_rank_, lambda rows: rows + self.mean_))

    def _dense_signal(self, low_rank, function):
        """Return a function of the rows of a low-rank matrix; in dask where X was a dask array."""
        chunks = getattr(self, "row_chunks_", None)
        if chunks is None:
            return function(LowRank(*low_rank).dense())
        return _blocks.low_rank_blocks(*low_rank, chunks, function)

    def score_samples(self, X):
        """Log-likelihood of each row, seen as a new one.

        Returns
        -------
        ndarray of shape (n_samples,)
            With a first axis for the matrices where X has one.
        """
        check_is_fitted(self)
        X, n_matrices = self._stacked(X)
        X = self._validate_rows(X)
        mean = on_host(self.mean_)
        model = (
            self.col_precision_,
            on_host(self.components_).T,
            on_host(self.score_covariance_),
            self.noise_variance_,
        )
        if is_foreign_array(X):
            return log_likelihood(X, mean, *model)
        if reads_in_blocks(X):
            return _blocks.log_likelihood(X, mean, *model)
        values = representable(np.float64, row_log_likelihood, _dense(X) - mean, *model)
        return unstack(values, n_matrices)

    def score(self, X, y=None):
        """Mean log-likelihood per row of held-out rows."""
        densities = self.score_samples(X)
        return float(np.mean(np.asarray(densities) if is_dask(densities) else to_numpy(densities)))

    def get_covariance(self):
        """Return the covariance of an unseen row, ``W C W' + s2 inv(B)``, as `score` assumes it.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Formed as a dense matrix.
        """
        check_is_fitted(self)
        loadings = on_host(self.components_).T
        noise = np.linalg.inv(_dense(self.col_precision_))
        return (
            loadings @ on_host(self.score_covariance_) @ loadings.T + self.noise_variance_ * noise
        )

    def get_precision(self):
        """Return the inverse of `get_covariance`, by Woodbury's identity.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        noise = _dense(self.col_precision_) / self.noise_variance_
        loadings = on_host(self.components_).T
        weighted = noise @ loadings
        C = on_host(self.score_covariance_)
        inner = np.eye(len(C)) + C @ (loadings.T @ weighted)
        return noise - weighted @ np.linalg.solve(inner, C @ weighted.T)

    def noise_graph(self, side):
        """Return a noise network as a networkx graph.

        Parameters
        ----------
        side : {"rows", "columns"}
            Samples or features.

        Returns
        -------
        networkx.Graph
            Nodes carry the names of the samples or features (their numbers where the data had
            none); edges carry ``precision`` and ``partial_correlation``.
        """
        from mnpca.estimators._graph import noise_graph

        check_is_fitted(self)
        return noise_graph(self, side)


def _dense(X):
    return X.toarray() if sp.issparse(X) else X


def _as_stored(precision):
    return precision if isinstance(precision, LinearOperator) else sp.csr_array(precision)
