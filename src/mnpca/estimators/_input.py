"""What a user passes as X: checked, named, and brought to one matrix of numbers."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mnpca._typing import FloatArray, RandomState
from mnpca.engines import engine_for, is_dask, reads_in_blocks
from mnpca.engines.arrays import is_foreign_array, namespace


@dataclass(frozen=True)
class Accepts:
    """What X may be, besides one complete NumPy matrix in memory."""

    #: A scipy.sparse matrix, which is never made dense then.
    sparse: bool = False
    #: Several matrices that share both noise networks and the loadings.
    several: bool = False
    #: An array of another library (torch, CuPy, ...), where it then stays.
    foreign: bool = False
    #: A mapped file or a dask array, which is read in blocks.
    blocks: bool = False
    #: A matrix in which NaN marks missing values.
    missing: bool = False


def training_matrix(estimator: Any, X: Any, accepts: Accepts) -> tuple[Any, int | None]:
    """Return X as a finite float matrix that a fit can rely on, and note its names.

    Several matrices come back one under the other, with their number (None for one). Sets
    ``n_features_in_``, ``feature_names_in_`` and, where X has names for its rows,
    ``sample_names_in_``. The result may share memory with X: a fit must never write to it.
    """
    X, n_matrices = _stacked(estimator, X, accepts)
    names = None
    if (accepts.foreign and is_foreign_array(X)) or _is_read_in_blocks(X, accepts):
        X = _matrix_outside(estimator, X, reset=True)
        check_values(X)
    else:
        names = _sample_names(X)
        X = missing_as_nan(X, keep_sparse=accepts.sparse)
        # Rounding depends on the order in memory, and results should not.
        X = _validated(estimator, X, accepts, order="C", ensure_min_samples=2)
        check_values(_with_means(X) if accepts.missing and not sp.issparse(X) else X)
    if names is not None:
        estimator.sample_names_in_ = names[: len(names) // (n_matrices or 1)]
    elif hasattr(estimator, "sample_names_in_"):
        del estimator.sample_names_in_
    return X, n_matrices


def checked_rows(estimator: Any, X: Any, accepts: Accepts) -> tuple[Any, int | None]:
    """Return rows to project or to score, checked, and the number of matrices."""
    check_is_fitted(estimator)
    X, n_matrices = _stacked(estimator, X, accepts)
    X = missing_as_nan(X, keep_sparse=accepts.sparse)
    if not (is_foreign_array(X) or reads_in_blocks(X)):
        return _validated(estimator, X, accepts, reset=False), n_matrices
    X = _matrix_outside(estimator, X, reset=False)
    if not is_dask(X):  # its blocks are checked when they are computed
        check_finite(engine_for(X).extremes())
    return X, n_matrices


def _validated(estimator: Any, X: Any, accepts: Accepts, **options: Any) -> Any:
    """Return X as scikit-learn checks it."""
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr" if accepts.sparse else False,
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan" if accepts.missing else True,
        **options,
    )
    # All other entries of a sparse matrix, the zeros too, would be observations.
    if sp.issparse(X) and np.isnan(X.data).any():
        raise ValueError(
            "Input X contains NaN, and missing values are understood in dense arrays only. Use "
            "X.toarray(), or replace or drop such entries."
        )
    return X


def _is_read_in_blocks(X: Any, accepts: Accepts) -> bool:
    """Whether X is read in blocks; a mapped file with missing values is not."""
    if not (accepts.blocks and reads_in_blocks(X)):
        return False
    return is_dask(X) or not accepts.missing or not np.isnan(engine_for(X).extremes()).any()


def check_scores(estimator: Any, scores: Any) -> None:
    """Refuse scores of another number of components than the model has."""
    n_components = estimator._n_features_out
    if scores.shape[-1] != n_components:
        raise ValueError(
            f"X has {scores.shape[-1]} scores a row, but {type(estimator).__name__} has "
            f"{n_components} components. Pass what transform returns."
        )


def noise_structures(noise: Any, allowed: Sequence[str], n_axes: int, several: str) -> list[Any]:
    """Return one noise structure per axis; `several` says in words how to give more than one."""
    structures = [noise] * n_axes if isinstance(noise, str) else list(noise)
    if len(structures) != n_axes or any(each not in allowed for each in structures):
        raise ValueError(f"noise={noise!r} must be one of {allowed}, or {several}.")
    return structures


def seed_of(random_state: RandomState) -> int:
    """Return the seed of a fit; None is a fixed one, so that fits can be repeated."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


def representable(dtype: Any, compute: Callable[..., FloatArray], *arguments: Any) -> FloatArray:
    """Return numbers computed from rows, in a type; refuse rows so large that these overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = compute(*arguments).astype(dtype, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            "Values of X are so large, compared with the training data, that the result overflows. "
            "Check the units of X, or remove such rows."
        )
    return values


def missing_as_nan(X: Any, *, keep_sparse: bool = False) -> Any:
    """Return X with NaN for what its library marks as missing, and dense where it has to be.

    NumPy and scikit-learn read what lies below the mask of an array as if it had been observed.
    Frames of pandas may hold ``pd.NA``, sparse columns (kept with `keep_sparse`, if all are), or
    times, which are refused here, those of polars too.
    """
    if isinstance(X, np.ma.MaskedArray):
        return np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, which holds no values yet; pass X.collect().")
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return X
    _check_columns(X)
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame):
        return X
    dtypes = list(X.dtypes)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes):
        return X
    if keep_sparse and all(isinstance(dtype, pandas.SparseDtype) for dtype in dtypes):
        return X
    if np.dtype(object) in dtypes:  # pandas leaves pd.NA alone there
        X = X.astype(object).where(X.notna(), np.nan)
    values = X.to_numpy(dtype=np.float64, na_value=np.nan)
    return pandas.DataFrame(values, index=X.index, columns=X.columns)


def _check_columns(X: Any) -> None:
    """Refuse columns of times or of text in a frame of pandas or polars, by name."""
    kinds = list(zip(X.columns, map(_kind, X.dtypes), strict=True))
    times = [str(name) for name, kind in kinds if kind == "time"]
    if times:
        raise ValueError(
            f"X has {len(times)} column{'s' * (len(times) > 1)} of times or dates, the first "
            f"{times[0]!r}; times are not measurements. Leave such columns out, for instance "
            f"X.drop(columns=[{times[0]!r}]) in pandas, or turn them into numbers."
        )
    for j, (name, kind) in enumerate(kinds):
        if kind == "number":
            continue
        column = X.iloc[:, j].dropna() if hasattr(X, "iloc") else X.to_series(j).drop_nulls()
        for cell in column.to_numpy():
            try:
                float(cell)
            except (TypeError, ValueError):
                raise ValueError(
                    f"could not convert string to float: {cell!r} in column {str(name)!r}. Leave "
                    "columns of text out, for instance "
                    f"X.drop(columns=[{str(name)!r}]) in pandas, or turn them into numbers."
                ) from None


def _kind(dtype: Any) -> str:
    """Tell whether a column of pandas or polars holds numbers, times or anything else."""
    if hasattr(dtype, "is_temporal"):  # polars
        return "time" if dtype.is_temporal() else "number" if dtype.is_numeric() else "other"
    kind = getattr(dtype, "kind", "O")
    if kind in "mM" or type(dtype).__name__ == "PeriodDtype":
        return "time"
    return "number" if kind in "fiubc" else "other"


def _with_means(X: Any) -> FloatArray:
    """Return X with column means for its missing values (0 where a column has no value)."""
    if not np.isnan(X.min()):  # a test without a temporary of the size of X
        return X
    missing = np.isnan(X)
    counts = np.maximum((~missing).sum(axis=0), 1)
    return np.where(missing, np.where(missing, 0, X).sum(axis=0) / counts, X)


def _matrix_outside(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return a matrix that is not a NumPy array in memory, where it is; it has no names."""
    X = floating_matrix(X)
    n, p = X.shape
    if reset and (n < 2 or p < 1):
        raise ValueError(
            f"Found array with {n} sample(s) and {p} feature(s) (shape={(n, p)}) while a minimum "
            f"of 2 samples and 1 feature is required by {type(estimator).__name__}."
        )
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def floating_matrix(X: Any) -> Any:
    """Return a matrix outside NumPy's memory in a real floating type, or say what is wrong."""
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead. Several matrices are fitted "
            "as NumPy arrays only."
        )
    if is_dask(X):
        if np.isnan(X.shape).any():
            raise ValueError(
                "X has chunks of unknown length. Call X.compute_chunk_sizes() first, or make X "
                "with to_dask_array(lengths=True)."
            )
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, not {X.dtype}. Use X.astype(float).")
        return X if X.dtype.kind == "f" else X.astype(np.float64)
    if not is_foreign_array(X):
        return X
    xp = namespace(X)
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError("X must hold real numbers, and it is complex. Pass its real part.")
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError("X must be dense: use X.to_dense().")
    if not xp.isdtype(X.dtype, "real floating"):
        return xp.astype(X, xp.float64)
    return X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float32)


def _sample_names(X: Any) -> Any:
    """Row names of a data frame that has them; a plain 0, 1, 2, ... index is none."""
    index = getattr(X, "index", None)
    if index is None or not hasattr(X, "columns"):
        return None
    names = list(index)
    if names == list(range(len(names))):
        return None
    return np.array([str(name) for name in names], dtype=object)


def check_values(X: Any) -> None:
    """Refuse a matrix whose third powers overflow or vanish, and one whose rows are all the same.

    No temporary of its size is made.
    """
    engine = engine_for(X)
    extremes = engine.extremes()
    check_finite(extremes)
    largest, dtype = max(abs(value) for value in extremes), str(X.dtype).rpartition(".")[2]
    nothing = "so there is neither signal nor noise to estimate. Check how X was read."
    if largest == 0:
        raise ValueError(f"X is zero everywhere, {nothing}")
    limits = np.finfo(dtype if "float" in dtype else "float64")
    if not float(limits.tiny) ** (1 / 3) <= largest <= float(limits.max) ** (1 / 3):
        raise ValueError(
            f"The largest absolute value of X is {largest:.3g}; noise precisions of such data "
            f"cannot be represented in {dtype}. Rescale X first, e.g. X / {largest:.3g}."
        )
    n, p = engine.shape
    first, last = engine.block(np.array([0, n - 1]), np.arange(p))
    # The second comparison is seldom made, and only it reads all of X.
    if np.array_equal(first, last) and not engine.column_mean_squares(first).any():
        raise ValueError(f"All rows of X are the same, {nothing}")


def check_finite(values: Any) -> None:
    """Refuse NaN and infinity."""
    if not np.isfinite(values).all():
        raise ValueError(
            "Input X contains NaN or infinity. Replace or drop such entries; NaN for missing ones "
            "is understood in NumPy arrays in memory only."
        )


def unstack(rows: Any, n_matrices: int | None) -> Any:
    """Give rows of several matrices, one under the other, their first axis back (None: one)."""
    if n_matrices is None:
        return rows
    # Without components there are no entries, and NumPy could not infer a length from -1.
    return rows.reshape(n_matrices, len(rows) // n_matrices, *rows.shape[1:])


def unstacked_scores(estimator: Any, scores: Any, n_matrices: int | None) -> Any:
    """As `unstack`; scores of several matrices cannot be the table that `set_output` may want."""
    chosen = getattr(estimator, "_sklearn_output_config", {})
    kind = chosen.get("transform") or get_config()["transform_output"]
    if n_matrices is not None and kind != "default":
        raise ValueError(
            f"The scores of several matrices have three axes, which no {kind} table has. Transform "
            'the matrices one by one, or use set_output(transform="default").'
        )
    return unstack(scores, n_matrices)


def _stacked(estimator: Any, X: Any, accepts: Accepts) -> tuple[Any, int | None]:
    """Return several matrices one under the other, and their number (None for one)."""
    if accepts.several:
        return stack(X)
    if getattr(X, "ndim", None) == 3 or _is_list_of_matrices(X):
        raise ValueError(
            f"X is several matrices, and {type(estimator).__name__} takes one. Pass them one by "
            "one, or use MNPCA or LikelihoodMNPCA, which fit several together."
        )
    return X, None


def stack(X: Any) -> tuple[Any, int | None]:
    """Put several matrices, an array with three axes or a list, one under the other.

    Returns the rows of all and the number of matrices. Anything else, one matrix above all, is
    returned as it is with None, and left to the checks that follow.
    """
    if _is_list_of_matrices(X):
        _check_alike(X)
        if hasattr(X[0], "columns"):  # frames stay frames, so that their names are checked
            # The library of the frames (pandas or polars) has `concat`.
            joined = sys.modules[type(X[0]).__module__.partition(".")[0]].concat(list(X))
            # Row numbers are not names.
            numbered = hasattr(X[0], "index") and _sample_names(X[0]) is None
            return joined.reset_index(drop=True) if numbered else joined, len(X)
        X = np.stack([np.asarray(missing_as_nan(matrix)) for matrix in X])
    if getattr(X, "ndim", None) != 3:
        return X, None
    X = np.asarray(missing_as_nan(X))
    if 0 in X.shape:
        raise ValueError(f"X holds no entries: its shape is {X.shape}.")
    return X.reshape(-1, X.shape[2]), X.shape[0]


def _is_list_of_matrices(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(matrix) == 2 for matrix in X)


def _check_alike(matrices: Sequence[Any]) -> None:
    if any(sp.issparse(matrix) for matrix in matrices):
        raise TypeError("Several matrices must be dense: use matrix.toarray() for each.")
    are_frames = {hasattr(matrix, "columns") for matrix in matrices}
    if len(are_frames) > 1:
        raise TypeError("The matrices of X must all be data frames, or all be arrays.")
    shapes = sorted({np.shape(matrix) for matrix in matrices})
    if len(shapes) > 1:
        raise ValueError(
            f"The matrices of X differ in shape ({shapes[0]} and {shapes[1]}); they share their "
            "noise networks, so all need the same rows and columns. Cut them to what they share."
        )
    for name in ("columns", "index") if are_frames == {True} else ():
        labels = [list(getattr(frame, name)) for frame in matrices if hasattr(frame, name)]
        if any(label != labels[0] for label in labels):
            raise ValueError(
                f"The matrices of X differ in their {name}; all need the same, in the same order. "
                "Use matrix.reindex_like(X[0])."
            )
