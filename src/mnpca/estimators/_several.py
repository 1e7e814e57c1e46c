"""Several matrices in one argument: a list of them, or an array with three axes."""

import sys

import numpy as np
import scipy.sparse as sp
from sklearn import get_config

from mnpca.estimators._validation import plain


def unstack(rows, n_matrices):
    """Give rows of several matrices, one under the other, their first axis back.

    Parameters
    ----------
    rows : ndarray
        First axis: the rows of all matrices.
    n_matrices : int or None
        None where there is one matrix, which stays as it is.
    """
    if n_matrices is None:
        return rows
    # Without components there are no entries, and -1 would be any number.
    return rows.reshape(n_matrices, len(rows) // n_matrices, *rows.shape[1:])


def check_output(estimator):
    """Refuse a data frame of the scores of several matrices, which `set_output` may ask for."""
    chosen = getattr(estimator, "_sklearn_output_config", {})
    kind = chosen.get("transform") or get_config()["transform_output"]
    if kind != "default":
        raise ValueError(
            f"The scores of several matrices have three axes, which no {kind} table has. Transform "
            'the matrices one by one, or use set_output(transform="default").'
        )


def stack(X):
    """Put several matrices one under the other.

    Parameters
    ----------
    X : array-like of shape (n_matrices, n_samples, n_features), or list of matrices
        Anything else, one matrix above all, is left to the checks that follow.

    Returns
    -------
    rows : ndarray of shape (n_matrices * n_samples, n_features), or X itself
    n_matrices : int or None
        None where X is not several matrices.

    Raises
    ------
    ValueError
        If the matrices differ in shape or in the names of their columns.
    """
    if _is_list_of_matrices(X):
        _check_alike(X)
        if hasattr(X[0], "columns"):  # frames stay frames, so that their names are checked
            return _concatenated(X), len(X)
        X = np.stack([np.asarray(plain(matrix)) for matrix in X])
    if getattr(X, "ndim", None) != 3:
        return X, None
    X = np.asarray(plain(X))
    if 0 in X.shape:
        raise ValueError(f"X holds no entries: its shape is {X.shape}.")
    return X.reshape(-1, X.shape[2]), X.shape[0]


def refuse_several(estimator, X):
    """Refuse several matrices where an estimator takes one."""
    if getattr(X, "ndim", None) == 3 or _is_list_of_matrices(X):
        raise ValueError(
            f"X is several matrices, and {type(estimator).__name__} takes one. Pass them one by "
            "one, or use MNPCA or LikelihoodMNPCA, which fit several together."
        )


def names_of_one(names, n_matrices):
    """Return the row names of one matrix from those of all."""
    return names[: len(names) // n_matrices]


def _concatenated(frames):
    """Join data frames with the library they come from (pandas and polars have `concat`)."""
    library = sys.modules[type(frames[0]).__module__.partition(".")[0]]
    joined = library.concat(list(frames))
    index = getattr(frames[0], "index", None)
    if index is not None and list(index) == list(range(len(index))):
        return joined.reset_index(drop=True)  # row numbers are no names
    return joined


def _is_list_of_matrices(X):
    return isinstance(X, list | tuple) and len(X) > 0 and all(np.ndim(matrix) == 2 for matrix in X)


def _check_alike(matrices):
    if any(sp.issparse(matrix) for matrix in matrices):
        raise TypeError("Several matrices must be dense: use matrix.toarray() for each.")
    if len({hasattr(matrix, "columns") for matrix in matrices}) > 1:
        raise TypeError("The matrices of X must all be data frames, or all be arrays.")
    shapes = sorted({np.shape(matrix) for matrix in matrices})
    if len(shapes) > 1:
        raise ValueError(
            f"The matrices of X differ in shape ({shapes[0]} and {shapes[1]}); they share their "
            "noise networks, so all need the same rows and columns. Cut them to what they share."
        )
    for name in ("columns", "index"):
        frames = [matrix for matrix in matrices if hasattr(matrix, "columns")]
        labels = [list(getattr(frame, name)) for frame in frames if hasattr(frame, name)]
        if any(label != labels[0] for label in labels):
            raise ValueError(
                f"The matrices of X differ in their {name}; all need the same, in the same order. "
                "Use matrix.reindex_like(X[0])."
            )
