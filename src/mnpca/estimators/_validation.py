"""What every fit checks about its training matrix, in one place."""

import sys

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mnpca.estimators._array_api import checked_training, same_rows

SAME_ROWS = (
    "All rows of X are the same, so there is neither signal nor noise to estimate. "
    "Check how X was read."
)


def validate_training(estimator, X, *, accept_sparse=False, allow_nan=False):
    """Return X as a finite float matrix that a fit can rely on, and note its names.

    Sets ``n_features_in_``, ``feature_names_in_`` and, where X has names for its rows,
    ``sample_names_in_``. With `allow_nan`, NaN marks missing values. The result may share memory
    with X: a fit must never write to it.

    Raises
    ------
    ValueError
        If X has fewer than two rows, missing or infinite values, no variation at all, or values
        so large or small that their squares cannot be represented.
    """
    names = _sample_names(X)
    X = plain(X, keep_sparse=accept_sparse)
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr" if accept_sparse else False,
        dtype=[np.float64, np.float32],
        # Rounding depends on the order in memory, and results should not.
        order="C",
        ensure_min_samples=2,
        ensure_all_finite="allow-nan" if allow_nan else True,
    )
    if names is not None:
        estimator.sample_names_in_ = names
    elif hasattr(estimator, "sample_names_in_"):
        del estimator.sample_names_in_
    known = _with_means(X) if allow_nan else X
    check_magnitude(known)
    check_variation(known)
    return X


def check_scores(estimator, scores):
    """Refuse scores of another number of components than the model has."""
    n_components = estimator._n_features_out
    if scores.shape[-1] != n_components:
        raise ValueError(
            f"X has {scores.shape[-1]} scores a row, but {type(estimator).__name__} has "
            f"{n_components} components. Pass what transform returns."
        )


def representable(dtype, compute, *arguments):
    """Return numbers computed from rows, in a type; refuse rows so large that these overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = compute(*arguments).astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            "Values of X are so large, compared with the training data, that the result overflows. "
            "Check the units of X, or remove such rows."
        )
    return values


def plain(X, *, keep_sparse=False):
    """Return X with NaN for what its library marks as missing, and dense where it has to be.

    NumPy and scikit-learn read what lies below the mask of an array as if it had been observed.
    Frames of pandas may hold ``pd.NA``, sparse columns (kept with `keep_sparse`, if all are), or
    times, which are refused here, those of polars too.
    """
    if isinstance(X, np.ma.MaskedArray):
        return X.astype(np.result_type(X.dtype, np.float32)).filled(np.nan)
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return X
    dtypes = list(X.dtypes)
    times = [name for name, dtype in zip(X.columns, dtypes, strict=True) if _is_time(dtype)]
    if times:
        raise ValueError(
            f"X has {len(times)} column{'s' * (len(times) > 1)} of times or dates, the first "
            f"{str(times[0])!r}; times are not measurements. Leave such columns out, for instance "
            f"X.drop(columns=[{str(times[0])!r}]) in pandas, or turn them into numbers."
        )
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return X
    if all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes):
        return X
    if keep_sparse and all(isinstance(dtype, pandas.SparseDtype) for dtype in dtypes):
        return X
    if np.dtype(object) in dtypes:  # pandas leaves pd.NA alone there
        X = X.astype(object).where(X.notna(), np.nan)
    values = X.to_numpy(dtype=np.float64, na_value=np.nan)
    return pandas.DataFrame(values, index=X.index, columns=X.columns)


def _is_time(dtype):
    """Tell whether a column's type is a time or a span of it, in pandas or polars."""
    temporal = getattr(dtype, "is_temporal", None)
    if temporal is not None:
        return temporal()
    return getattr(dtype, "kind", "") in "mM" or type(dtype).__name__ == "PeriodDtype"


def _with_means(X):
    """Return X with its holes at the means of their columns (0 where a column has no value)."""
    if not np.isnan(X.min()):  # a test without a temporary of the size of X
        return X
    missing = np.isnan(X)
    counts = np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, np.where(missing, 0, X).sum(axis=0) / counts, X)


def validate_elsewhere(estimator, X):
    """Return a matrix that is no NumPy array, checked as `validate_training` does, where it is."""
    X, extremes = checked_training(estimator, X)
    dtype = str(X.dtype).rpartition(".")[2]
    _check_largest(max(abs(value) for value in extremes), dtype if "float" in dtype else "float64")
    if same_rows(X):
        raise ValueError(SAME_ROWS)
    return X


def _sample_names(X):
    """Row names of a data frame that has them; a plain 0, 1, 2, ... index is none."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(X, "columns"):
        return None
    names = list(index)
    if names == list(range(len(names))):
        return None
    return np.array([str(name) for name in names], dtype=object)


def check_magnitude(X):
    """Refuse a matrix whose second and third powers overflow or vanish."""
    # Two passes over X without a temporary of its size, which np.abs would make.
    _check_largest(max(abs(float(X.max())), abs(float(X.min()))), X.dtype.name)


def _check_largest(largest, dtype):
    limits = np.finfo(dtype)
    if largest == 0:
        raise ValueError(
            "X is zero everywhere, so there is neither signal nor noise to estimate. "
            "Check how X was read."
        )
    high, low = float(limits.max) ** (1 / 3), float(limits.tiny) ** (1 / 3)
    if not low <= largest <= high:
        raise ValueError(
            f"The largest absolute value of X is {largest:.3g}; noise precisions of such data "
            f"cannot be represented in {dtype}. Rescale X first, e.g. X / {largest:.3g}."
        )


def check_variation(X):
    """Refuse a matrix whose rows are all the same."""
    if sp.issparse(X):
        same = np.array_equal(X.max(axis=0).toarray(), X.min(axis=0).toarray())
    else:
        # The second comparison is seldom made, and only it reads all of X.
        same = np.array_equal(X[0], X[-1]) and (X[0] == X).all()
    if same:
        raise ValueError(SAME_ROWS)
