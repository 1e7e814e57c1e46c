"""Reader of Matrix Market files.

SciPy reads the header; its reader of the numbers ends the process on some damaged files, so the
numbers are read here.
"""

import numpy as np
import scipy.io

from mnpca.io._table import DataError, check_shape, exact_numbers

_FIELDS = ("real", "integer", "unsigned-integer", "pattern", "double")


def read_market_values(path):
    """Return the dense matrix of a Matrix Market file; entries that are not stored are zero."""
    n_rows, n_columns, entries, form, field, symmetry = scipy.io.mminfo(path)
    check_shape(n_rows, n_columns)
    if field not in _FIELDS:
        raise DataError(f"the numbers are {field}; real numbers are needed.")
    if n_rows < 1 or n_columns < 1 or entries > n_rows * n_columns:
        raise DataError("the header promises more entries than the matrix has cells.")
    lines = _numbers(path)
    if form == "array":
        values = _from_array(lines, n_rows, n_columns, symmetry)
    else:
        values = _from_coordinates(lines, n_rows, n_columns, entries, field == "pattern")
    if symmetry in ("symmetric", "hermitian"):
        values += np.tril(values, -1).T
    elif symmetry == "skew-symmetric":
        values -= np.tril(values, -1).T
    return values


def _numbers(path):
    """Return the lines after the one with the sizes, as an array of three columns."""
    import pandas as pd

    try:
        frame = pd.read_csv(
            path,
            sep=r"\s+",
            comment="%",
            header=None,
            names=[0, 1, 2],
            dtype=np.float64,
            **exact_numbers(pd),
        )
    except (ValueError, TypeError) as error:
        raise DataError(f"not a Matrix Market file: {error}.") from error
    return frame.to_numpy()[1:]


def _from_array(lines, n_rows, n_columns, symmetry):
    """Fill the matrix column by column; only the lower triangle where it is symmetric."""
    values = np.zeros((n_rows, n_columns), order="F")
    if symmetry == "general":
        places = np.ones((n_rows, n_columns), dtype=bool)
    elif n_rows == n_columns:
        places = np.tri(n_rows, k=-1 if symmetry == "skew-symmetric" else 0, dtype=bool)
    else:
        raise DataError("a symmetric matrix must be square.")
    if len(lines) != places.sum():
        raise DataError(f"the header promises {places.sum()} numbers, there are {len(lines)}.")
    values.T[places.T] = lines[:, 0]
    return values


def _from_coordinates(lines, n_rows, n_columns, entries, pattern):
    """Add up the entries at their places."""
    if len(lines) != entries:
        raise DataError(f"the header promises {entries} entries, there are {len(lines)}.")
    row, column = lines[:, 0], lines[:, 1]
    inside = (row >= 1) & (row <= n_rows) & (column >= 1) & (column <= n_columns)
    if not (inside & (row % 1 == 0) & (column % 1 == 0)).all():
        raise DataError("an entry has its place outside the matrix.")
    values = np.zeros((n_rows, n_columns))
    places = (row.astype(np.intp) - 1, column.astype(np.intp) - 1)
    np.add.at(values, places, 1.0 if pattern else lines[:, 2])
    return values
