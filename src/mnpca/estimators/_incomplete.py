"""Estimators of the noise: their common fit, missing values and known covariates."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from mnpca._typing import BoolArray, FloatArray
from mnpca.engines.arrays import is_foreign_array, on_host
from mnpca.estimators._array_api import place_results
from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.estimators._files import ReportingEstimator
from mnpca.estimators._input import checked_rows, representable, unstack
from mnpca.model.effects import Covariates
from mnpca.model.rows import RowModel, observed_scores, predict_missing, row_log_likelihood
from mnpca.solvers.missing import Incomplete, Outcome
from mnpca.solvers.progress import Report, State


class NoiseEstimator(ReportingEstimator, MatrixNormalEstimator):
    """An estimator of signal and noise with parameters ``missing`` and ``verbose``.

    A subclass has ``_estimate(X, problem, report, resume)``: it fits the matrix X or, where X has
    missing values or covariates, the `Incomplete` problem, whose outcome it hands to
    `_store_incomplete`.
    """

    missing: str
    verbose: int

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "missing": [StrOptions({"em", "error"})],
        "verbose": ["verbose"],
    }

    def _prepare(
        self, X: Any, row_covariates: Any, col_covariates: Any
    ) -> tuple[tuple[Any, Incomplete | None], Any]:
        self._check_parameters()
        X = self._training_matrix(X)
        problem = self._incomplete_problem(X, row_covariates, col_covariates)
        data = self._as_fitted(X)
        if row_covariates is not None or col_covariates is not None:
            given = (row_covariates, col_covariates)
            data = [data, *(None if each is None else np.asarray(each) for each in given)]
        return (X, problem), data

    def _fit(
        self, training: tuple[Any, Incomplete | None], report: Report, resume: State | None
    ) -> None:
        X, problem = training
        self._estimate(X, problem, report, resume)
        if is_foreign_array(X):
            place_results(self, X)

    def _check_parameters(self) -> None:
        """Refuse parameters that do not go together."""

    def _incomplete_problem(
        self, X: Any, row_covariates: Any, col_covariates: Any
    ) -> Incomplete | None:
        """Return the problem of a matrix with missing values or covariates, else None.

        Forgets what an earlier fit knew of them.
        """
        nothing: Any = None
        self.missing_ = self.completed_ = self.completed_std_ = nothing
        self.row_coef_ = self.col_coef_ = nothing
        self.row_covariates_ = self.row_covariates_mean_ = self.col_covariates_ = nothing
        given = {"row_covariates": row_covariates, "col_covariates": col_covariates}
        given = {name: values for name, values in given.items() if values is not None}
        # The smallest entry is NaN where any is; a mask of all of X is made only where needed.
        if not given and not (isinstance(X, np.ndarray) and np.isnan(X.min())):
            return None
        _check_one_dense(X, getattr(self, "n_matrices_", None) is not None, given)
        missing = np.isnan(X)
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

    def _store_incomplete(self, X: Any, outcome: Outcome) -> None:
        """Set the attributes of missing values and covariates from an `Outcome`."""
        if self.row_covariates_mean_ is not None:
            self.row_coef_ = outcome.effects.row_coef
        if self.col_covariates_ is not None:
            self.col_coef_ = outcome.effects.col_coef
        missing = np.isnan(X)
        if missing.any():
            self.missing_ = missing
            self.completed_ = np.where(missing, outcome.filled, X).astype(X.dtype)
            self.completed_std_ = np.where(missing, outcome.std, 0.0)

    def fit_transform(
        self, X: Any, y: Any = None, *, row_covariates: Any = None, **fit_params: Any
    ) -> Any:
        """Fit the model and project its rows; parameters are those of `fit`."""
        if row_covariates is None:
            return super().fit_transform(X, y, **fit_params)
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
        row_covariates : array-like of shape (n_samples, n_row_covariates), default=None
            Covariates of these rows, for a model that was fitted with them.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        rows, n_matrices = checked_rows(self, X, self._accepts)
        if self._as_complete(rows, row_covariates):
            return self._project(rows, n_matrices)
        offset, model = self._offset(rows, row_covariates, least=1), self._row_model()
        precision, loadings = model.col_precision, model.loadings
        scores = representable(rows.dtype, observed_scores, rows - offset, precision, loadings)
        return self._scores_as_given(scores[:, : self.n_components_], n_matrices)

    def score_samples(self, X: Any, *, row_covariates: Any = None) -> Any:
        """Log-likelihood of each row, taken as a new one, from its observed cells.

        Parameters are those of `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        rows, n_matrices = checked_rows(self, X, self._accepts)
        if self._as_complete(rows, row_covariates):
            return self._densities(rows, n_matrices)
        offset, model = self._offset(rows, row_covariates, least=1), self._row_model()
        values = representable(np.float64, row_log_likelihood, rows - offset, model)
        return unstack(values, n_matrices)

    def score(self, X: Any, y: Any = None, *, row_covariates: Any = None) -> float:
        """Mean log-likelihood per row of held-out rows."""
        if row_covariates is None:
            return super().score(X)
        return float(np.mean(self.score_samples(X, row_covariates=row_covariates)))

    def impute(self, X: Any = None, *, row_covariates: Any = None, return_std: bool = False) -> Any:
        """Return a matrix with conditional means in place of its missing values.

        A conditional mean is made of signal, covariate effects and the part of the noise that the
        observed cells tell. Standard errors hold the uncertainty of the signal and of the noise.

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
            if self.completed_ is None:
                raise ValueError(
                    "The training matrix had no missing values, so there is nothing to impute. "
                    "Pass the rows to complete as X."
                )
            filled, std = self.completed_.copy(), self.completed_std_.copy()
            return (filled, std) if return_std else filled
        rows, n_matrices = checked_rows(self, X.toarray() if sp.issparse(X) else X, self._accepts)
        offset = self._offset(rows, row_covariates, least=0)
        filled, variances = predict_missing(rows - offset, self._row_model())
        filled = np.where(np.isnan(rows), filled + offset, rows).astype(rows.dtype, copy=False)
        filled = unstack(filled, n_matrices)
        return (filled, unstack(np.sqrt(variances), n_matrices)) if return_std else filled

    def _as_complete(self, rows: Any, row_covariates: Any) -> bool:
        """Whether checked rows have neither covariates nor missing values."""
        covariates = (row_covariates, self.row_covariates_mean_, self.col_covariates_)
        if any(each is not None for each in covariates):
            return False
        # Rows outside NumPy's memory were checked to have none.
        return not isinstance(rows, np.ndarray) or not np.isnan(rows).any()

    def _offset(self, X: Any, row_covariates: Any, *, least: int) -> FloatArray:
        """Return the mean and the covariate effects of checked rows.

        `least` is the number of observed cells that every row must have.
        """
        if not isinstance(X, np.ndarray):
            raise ValueError(
                "Covariates and missing values are understood in NumPy arrays only. Pass the rows "
                "as one, for instance X.compute() of dask or X.cpu().numpy() of torch."
            )
        empty = np.flatnonzero((~np.isnan(X)).sum(axis=1) < least)
        if len(empty):
            raise ValueError(
                f"Row {empty[0]} of X has no observed value, so it has no scores and no "
                "likelihood. Remove such rows; impute() gives their expected values."
            )
        offset: FloatArray = on_host(self.mean_)[None, :]
        means = self.row_covariates_mean_
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
        return offset

    def _row_model(self) -> RowModel:
        """Return the distribution of a new row, effects of column covariates included."""
        model = self._row_distribution()
        if self.col_covariates_ is None:
            return model
        return model.with_covariates(self.col_covariates_, self.col_coef_)


def _covariates(values: Any, size: int, name: str, side: str) -> FloatArray:
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


def _check_freedom(design: FloatArray, side: str) -> None:
    """Refuse covariates that explain any data at all, noise included."""
    if design.shape[1] + 1 < len(design):
        return
    if np.linalg.matrix_rank(design) + 1 >= len(design):
        raise ValueError(
            f"{side}_covariates explain every possible X: they have as many independent columns "
            f"as X has {'rows' if side == 'row' else 'columns'}. Use fewer."
        )


def _check_observed(missing: BoolArray) -> None:
    """Refuse rows and columns without a single observation."""
    for axis, side in ((1, "Row"), (0, "Column")):
        empty = np.flatnonzero(missing.all(axis=axis))
        if len(empty):
            raise ValueError(
                f"{side} {empty[0]} of X has no observed value ({len(empty)} such in all): "
                "nothing can be estimated for it. Remove it first."
            )


def _check_one_dense(X: Any, several: bool, given: dict[str, Any]) -> None:
    """Refuse covariates and missing values beside what is not one dense NumPy matrix."""
    if isinstance(X, np.ndarray) and not several:
        return
    kind = "sparse data" if sp.issparse(X) else "data outside NumPy"
    if several:
        kind = "several matrices"
    for name in given:
        raise ValueError(
            f"{name} cannot be combined with {kind}. Pass one dense NumPy matrix, or remove the "
            "effects first."
        )
    raise ValueError(
        "X has missing values, and several matrices at once must be complete. Fit the "
        "matrices one by one, or impute the missing values first."
    )
