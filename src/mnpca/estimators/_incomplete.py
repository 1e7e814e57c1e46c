"""Matrices with holes and known covariates: what the estimators that take them share."""

import copy

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca.engines import is_dask, reads_in_blocks
from mnpca.engines.arrays import is_foreign_array
from mnpca.estimators._array_api import on_host
from mnpca.estimators._several import unstack
from mnpca.estimators._validation import plain, representable
from mnpca.model.effects import Covariates
from mnpca.model.observed import (
    RowModel,
    observed_log_likelihood,
    observed_scores,
    predict_missing,
)
from mnpca.solvers.missing import Incomplete


class IncompleteMixin(TransformerMixin):  # so that set_output knows its transform
    """Adds holes (NaN) and covariates to an estimator with a parameter ``missing``.

    A fit asks `_incomplete_problem` whether its data have any of them; if so, it fits that
    problem, and hands the outcome to `_store_incomplete`.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._holes_allowed
        return tags

    @property
    def _holes_allowed(self):
        return self.missing == "em"

    def _incomplete_problem(self, X, row_covariates, col_covariates):
        """Return the problem of a matrix with holes or covariates, None for one without either.

        Forgets what an earlier fit knew of them.
        """
        self.missing_ = self.completed_ = self.completed_std_ = None
        self.row_coef_ = self.col_coef_ = None
        self.row_covariates_ = self.row_covariates_mean_ = self.col_covariates_ = None
        if is_foreign_array(X) or is_dask(X):
            _refuse(row_covariates, col_covariates, "data outside NumPy")
            return None
        # The smallest entry is NaN where any is; a mask of all of X is made only where needed.
        if not np.isnan(X.min()) and row_covariates is None and col_covariates is None:
            return None
        missing = np.isnan(X)
        if getattr(self, "n_matrices_", None) is not None:
            _refuse(row_covariates, col_covariates, "several matrices")
            raise ValueError(
                "X has missing values, and several matrices at once must be complete. Fit the "
                "matrices one by one, or fill the gaps first."
            )
        _check_observed(missing)
        row = _covariates(row_covariates, len(X), "row_covariates", "rows")
        col = _covariates(col_covariates, X.shape[1], "col_covariates", "columns")
        centered = self.center is not False
        _check_freedom(np.column_stack([row, np.ones(len(row))]) if centered else row, "row")
        _check_freedom(col, "col")
        if row_covariates is not None:
            self.row_covariates_ = row
            self.row_covariates_mean_ = row.mean(axis=0) if centered else np.zeros(row.shape[1])
            row = row - self.row_covariates_mean_
        if col_covariates is not None:
            self.col_covariates_ = col
        matrix = np.where(missing, 0.0, X.astype(np.float64, copy=False))
        return Incomplete(matrix, missing, Covariates(row, col, centered))

    def _fit_data(self, X, row_covariates, col_covariates):
        """Return what identifies the data of a fit in its checkpoints."""
        if row_covariates is None and col_covariates is None:
            return X
        given = (row_covariates, col_covariates)
        return [X, *(None if each is None else np.asarray(each) for each in given)]

    def _store_incomplete(self, X, outcome):
        """Set the attributes of holes and covariates from an `Outcome`."""
        if self.row_covariates_mean_ is not None:
            self.row_coef_ = outcome.effects.row_coef
        if self.col_covariates_ is not None:
            self.col_coef_ = outcome.effects.col_coef
        missing = np.isnan(X)
        if missing.any():
            self.missing_ = missing
            self.completed_ = np.where(missing, outcome.filled, X).astype(X.dtype)
            self.completed_std_ = np.where(missing, outcome.std, 0.0)

    def fit_transform(self, X, y=None, *, row_covariates=None, **fit_params):
        """Fit the model and project its rows; parameters are those of `fit`."""
        if row_covariates is None:
            return super().fit_transform(X, y, **fit_params)
        self.fit(X, y, row_covariates=row_covariates, **fit_params)
        return self.transform(X, row_covariates=row_covariates)

    def transform(self, X, *, row_covariates=None):
        """Project rows on the components by generalized least squares.

        ``(X - mean) B W (W'BW)^-1``: the noise network among columns is taken into account, the
        training rows get no special treatment. A row with holes is projected from its observed
        cells, with the precision that these have by themselves.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to project, seen or unseen; NaN marks holes where ``missing="em"``.
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Covariates of these rows, for a model that was fitted with them.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        if self._as_complete(X, row_covariates):
            return super().transform(X)
        X, offset, n_matrices = self._rows_and_offset(X, row_covariates, least=1)
        model = self.col_precision_, self._all_loadings()
        scores = representable(X.dtype, observed_scores, X - offset, *model)
        return self._scores_as_given(scores[:, : self.n_components_], n_matrices)

    def score_samples(self, X, *, row_covariates=None):
        """Log-likelihood of each row, seen as a new one; of its observed cells, if it has holes.

        Parameters are those of `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if self._as_complete(X, row_covariates):
            return super().score_samples(X)
        X, offset, n_matrices = self._rows_and_offset(X, row_covariates, least=1)
        model = self._row_model()
        values = representable(np.float64, observed_log_likelihood, X - offset, model)
        return unstack(values, n_matrices)

    def score(self, X, y=None, *, row_covariates=None):
        """Mean log-likelihood per row of held-out rows."""
        if row_covariates is None:
            return super().score(X)
        return float(np.mean(self.score_samples(X, row_covariates=row_covariates)))

    def impute(self, X=None, *, row_covariates=None, return_std=False):
        """Return a matrix whose holes are filled by their conditional means.

        Signal, covariate effects and the part of the noise that the observed cells around a hole
        tell. Standard errors hold the uncertainty of the signal and of the noise.

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
        if X is None:
            if self._known("completed_") is None:
                raise ValueError(
                    "The training matrix had no missing values, so there is nothing to impute. "
                    "Pass the rows to complete as X."
                )
            filled, std = self.completed_.copy(), self.completed_std_.copy()
            return (filled, std) if return_std else filled
        X, offset, n_matrices = self._rows_and_offset(X, row_covariates, least=0)
        filled, variances = predict_missing(X - offset, self._row_model())
        filled = np.where(np.isnan(X), filled + offset, X).astype(X.dtype, copy=False)
        filled = unstack(filled, n_matrices)
        return (filled, unstack(np.sqrt(variances), n_matrices)) if return_std else filled

    def plain_view(self, X):
        """Return a model without holes and covariates, and the training matrix that goes with it.

        For diagnostics of the fit: the matrix is completed, and covariate effects are taken off.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            The training matrix.
        """
        check_is_fitted(self)
        if self._known("completed_") is not None:
            X = self.completed_.astype(float)
        if self._known("row_covariates_") is None and self._known("col_covariates_") is None:
            return self, X
        plain = copy.copy(self)
        if self.row_covariates_ is not None:
            X = X - (self.row_covariates_ - self.row_covariates_mean_) @ self.row_coef_
        if self.col_covariates_ is not None:
            X = X - self.col_coef_ @ self.col_covariates_.T
        plain.row_covariates_ = plain.row_covariates_mean_ = plain.col_covariates_ = None
        return plain, X

    def _as_complete(self, X, row_covariates):
        """Tell whether rows need neither covariates nor care for holes."""
        if row_covariates is not None or self._known("row_covariates_mean_") is not None:
            return False
        if self._known("col_covariates_") is not None:
            return False
        return not (self._holes_allowed and _has_holes(X))

    def _rows_and_offset(self, X, row_covariates, *, least):
        """Return checked rows, their mean and covariate effects, and the number of matrices.

        `least` is the number of observed cells that every row must have.
        """
        if is_foreign_array(X) or is_dask(X):
            raise ValueError(
                "Covariates and missing values are understood in NumPy arrays only. Pass the rows "
                f"as one ({'X.compute()' if is_dask(X) else 'X.cpu().numpy() in torch'})."
            )
        X, n_matrices = self._stacked(X)
        X = self._validate_rows(X)
        empty = np.flatnonzero((~np.isnan(X)).sum(axis=1) < least)
        if len(empty):
            raise ValueError(
                f"Row {empty[0]} of X has no observed value, so it has no scores and no "
                "likelihood. Remove such rows; impute() gives their expected values."
            )
        offset = on_host(self.mean_)[None, :]
        means = self._known("row_covariates_mean_")
        if means is None:
            if row_covariates is not None:
                raise ValueError(
                    "row_covariates were given, but the model was fitted without. Leave them out, "
                    "or fit with row_covariates."
                )
        elif row_covariates is None:
            raise ValueError(
                "The model was fitted with row_covariates; pass those of these rows as "
                "row_covariates."
            )
        else:
            known = _covariates(row_covariates, len(X), "row_covariates", "rows")
            if known.shape[1] != len(means):
                raise ValueError(
                    f"row_covariates has {known.shape[1]} columns, the model was fitted with "
                    f"{len(means)}."
                )
            offset = offset + (known - means) @ self.row_coef_
        return X, offset, n_matrices

    def _known(self, name):
        """Return a fitted attribute that models of earlier versions do not have."""
        return getattr(self, name, None)

    def _all_loadings(self):
        """Return the loadings W, with those that column covariates are beside them."""
        loadings = on_host(self.components_).T
        known = self._known("col_covariates_")
        return loadings if known is None else np.column_stack([loadings, known])

    def _row_model(self):
        """Return the distribution of a new row, effects of column covariates included."""
        covariance = on_host(self.score_covariance_)
        if self._known("col_covariates_") is not None:
            effects = self.col_coef_.T @ self.col_coef_ / len(self.col_coef_)
            covariance = scipy.linalg.block_diag(covariance, effects)
        return RowModel(
            self.col_precision_, self._all_loadings(), covariance, float(self.noise_variance_)
        )


def _has_holes(X):
    """Tell whether array-like rows have a NaN; what is no matrix of numbers has none."""
    if is_foreign_array(X) or reads_in_blocks(X) or sp.issparse(X):
        return False
    try:
        return bool(np.isnan(np.asarray(plain(X), dtype=np.float64)).any())
    except (TypeError, ValueError):
        return False


def _covariates(values, size, name, side):
    """Return covariates as a matrix with a row per row or column of X."""
    if values is None:
        return np.zeros((size, 0))
    values = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    values = values[:, None] if values.ndim == 1 else values
    if len(values) != size:
        raise ValueError(
            f"{name} must have a row for each of the {size} {side} of X, got {len(values)}."
        )
    return values


def _check_freedom(design, side):
    """Refuse covariates that explain any data at all, noise included."""
    if design.shape[1] + 1 < len(design):
        return
    if np.linalg.matrix_rank(design) + 1 >= len(design):
        raise ValueError(
            f"{side}_covariates explain every possible X: they have as many independent columns "
            f"as X has {'rows' if side == 'row' else 'columns'}. Use fewer."
        )


def _check_observed(missing):
    """Refuse rows and columns without a single observation."""
    for axis, side in ((1, "Row"), (0, "Column")):
        empty = np.flatnonzero(missing.all(axis=axis))
        if len(empty):
            raise ValueError(
                f"{side} {empty[0]} of X has no observed value ({len(empty)} such in all): "
                "nothing can be estimated for it. Remove it first."
            )


def _refuse(row_covariates, col_covariates, what):
    """Refuse covariates where they are not supported."""
    for name, value in (("row_covariates", row_covariates), ("col_covariates", col_covariates)):
        if value is not None:
            raise ValueError(f"{name} cannot be combined with {what}. Remove the effects first.")
