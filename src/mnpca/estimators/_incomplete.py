"""Missing values and known covariates, in the training matrix and in new rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from mnpca._typing import FloatArray
from mnpca.engines.arrays import on_host
from mnpca.estimators._input import representable
from mnpca.model.effects import Covariates
from mnpca.model.rows import RowModel, observed_scores, predict_missing, row_log_likelihood
from mnpca.solvers.missing import Incomplete, Outcome


def as_problem(estimator: Any, X: Any, row_covariates: Any, col_covariates: Any) -> Incomplete:
    """Return a training matrix with missing values or covariates as an `Incomplete` problem.

    The estimator keeps the covariates.
    """
    _check_one_dense(estimator, X, row_covariates, col_covariates)
    missing = np.isnan(X)
    for axis, side in ((1, "Row"), (0, "Column")):
        empty = np.flatnonzero(missing.all(axis=axis))
        if len(empty):
            raise ValueError(
                f"{side} {empty[0]} of X has no observed value ({len(empty)} such in all): "
                "nothing can be estimated for it. Remove it first."
            )
    row = _checked_covariates(row_covariates, len(X), "row_covariates", "rows")
    col = _checked_covariates(col_covariates, X.shape[1], "col_covariates", "columns")
    centered = estimator.center is not False
    _check_freedom(np.column_stack([row, np.ones(len(row))]) if centered else row, "row", "rows")
    _check_freedom(col, "col", "columns")
    if row_covariates is not None:
        mean = row.mean(axis=0) if centered else np.zeros(row.shape[1])
        estimator.row_covariates_, estimator.row_covariates_mean_ = row, mean
        row = row - mean
    if col_covariates is not None:
        estimator.col_covariates_ = col
    matrix = np.where(missing, 0.0, X.astype(np.float64, copy=False))
    return Incomplete(matrix, missing, Covariates(row, col, centered))


def store_outcome(estimator: Any, X: Any, outcome: Outcome) -> None:
    """Set the fitted attributes of missing values and covariates."""
    if estimator.row_covariates_ is not None:
        estimator.row_coef_ = outcome.effects.row_coef
    if estimator.col_covariates_ is not None:
        estimator.col_coef_ = outcome.effects.col_coef
    missing = np.isnan(X)
    if missing.any():
        estimator.missing_ = missing
        estimator.completed_ = np.where(missing, outcome.filled, X).astype(X.dtype)
        estimator.completed_std_ = np.where(missing, outcome.std, 0.0)


def scores(model: Any, rows: Any, row_covariates: Any) -> FloatArray:
    """Return generalized least squares scores from the observed cells of each row."""
    centered, of_row = _centered(model, rows, row_covariates), _row_model(model)
    values = representable(
        rows.dtype, observed_scores, centered, of_row.col_precision, of_row.loadings
    )
    return values[:, : model.n_components_]


def log_likelihood(model: Any, rows: Any, row_covariates: Any) -> FloatArray:
    """Return the log-likelihood of the observed cells of each row."""
    centered = _centered(model, rows, row_covariates)
    return representable(np.float64, row_log_likelihood, centered, _row_model(model))


def filled(model: Any, rows: Any, row_covariates: Any) -> tuple[FloatArray, FloatArray]:
    """Return rows with conditional means for missing values, and their standard errors."""
    offset = _offset(model, rows, row_covariates)
    means, variances = predict_missing(rows - offset, _row_model(model))
    values = np.where(np.isnan(rows), means + offset, rows).astype(rows.dtype, copy=False)
    return values, np.sqrt(variances)


def _centered(model: Any, rows: Any, row_covariates: Any) -> FloatArray:
    """Return rows less `_offset`, if all have an observed cell."""
    offset = _offset(model, rows, row_covariates)
    empty = np.flatnonzero(np.isnan(rows).all(axis=1))
    if len(empty):
        raise ValueError(
            f"Row {empty[0]} of X has no observed value, so it has no scores and no "
            "likelihood. Remove such rows; impute() gives their expected values."
        )
    return rows - offset


def _offset(model: Any, rows: Any, row_covariates: Any) -> FloatArray:
    """Return the mean and the effects of the row covariates."""
    if not isinstance(rows, np.ndarray):
        raise ValueError(
            "Covariates and missing values are understood in NumPy arrays only. Pass the rows "
            "as one, for instance X.compute() of dask or X.cpu().numpy() of torch."
        )
    mean: FloatArray = on_host(model.mean_)[None, :]
    of_covariates = model.row_covariates_mean_
    if of_covariates is None and row_covariates is None:
        return mean
    if of_covariates is None:
        raise ValueError(
            "row_covariates were given, but the model was fitted without. Leave them out, "
            "or fit with row_covariates."
        )
    if row_covariates is None:
        raise ValueError(
            "The model was fitted with row_covariates; pass those of these rows as row_covariates."
        )
    known = _checked_covariates(row_covariates, len(rows), "row_covariates", "rows")
    if known.shape[1] != len(of_covariates):
        raise ValueError(
            f"row_covariates has {known.shape[1]} columns, the model was fitted with "
            f"{len(of_covariates)}."
        )
    return mean + (known - of_covariates) @ model.row_coef_


def _row_model(model: Any) -> RowModel:
    """Return the distribution of a new row, effects of column covariates included."""
    of_row: RowModel = model._row_distribution()
    if model.col_covariates_ is None:
        return of_row
    return of_row.with_covariates(model.col_covariates_, model.col_coef_)


def _checked_covariates(values: Any, size: int, name: str, side: str) -> FloatArray:
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


def _check_freedom(design: FloatArray, name: str, side: str) -> None:
    """Refuse covariates that explain any data at all, noise included."""
    enough = len(design) - 1
    if design.shape[1] >= enough and np.linalg.matrix_rank(design) >= enough:
        raise ValueError(
            f"{name}_covariates explain every possible X: they have as many independent columns "
            f"as X has {side}. Use fewer."
        )


def _check_one_dense(estimator: Any, X: Any, row_covariates: Any, col_covariates: Any) -> None:
    """Refuse covariates and missing values beside what is not one dense NumPy matrix."""
    several = getattr(estimator, "n_matrices_", None) is not None
    if isinstance(X, np.ndarray) and not several:
        return
    kind = "sparse data" if sp.issparse(X) else "data outside NumPy"
    kind = "several matrices" if several else kind
    for name, given in (("row_covariates", row_covariates), ("col_covariates", col_covariates)):
        if given is not None:
            raise ValueError(
                f"{name} cannot be combined with {kind}. Pass one dense NumPy matrix, or remove "
                "the effects first."
            )
    raise ValueError(
        "X has missing values, and several matrices at once must be complete. Fit the "
        "matrices one by one, or impute the missing values first."
    )
