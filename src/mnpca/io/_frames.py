"""From a data frame to a numeric matrix; Parquet and H5AD files."""

from decimal import Decimal
from numbers import Real

import numpy as np

from mnpca.io._table import DataError, Table, check_matrix, check_shape, listed, quoted


def table_from_frame(frame, names, row_names, labels):
    """Split a frame into numbers, row names and labels; report what is not a number.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns by position; `names` holds what they are called.
    names : list of str or None
        Column names, None where the file has none.
    row_names : list of str or None
        Row names known already; otherwise a first column of text holds them.
    labels : str or None
        Name of the label column.
    """
    called = names if names is not None else [str(j + 1) for j in range(frame.shape[1])]
    columns = list(range(frame.shape[1]))
    label_values = None
    if labels is not None:
        position = _label_position(called, labels)
        columns.remove(position)
        label_values = _as_text(frame.iloc[:, position])
    notes, numbers, left_out = [], [], []
    for j in columns:
        column = _numeric(frame.iloc[:, j], called[j])
        if column is not None:
            numbers.append((j, column))
        elif row_names is None and j == columns[0]:
            row_names = _as_text(frame.iloc[:, j]).tolist()
        else:
            left_out.append(called[j])
    if left_out:
        notes.append(
            f"{len(left_out)} column{'s' * (len(left_out) > 1)} without numbers left out: "
            f"{listed(left_out)}"
        )
    if not numbers:
        raise DataError(
            "not a matrix: no column holds numbers (in text files, commas, semicolons or tabs "
            "separate the columns, and decimals need a point)."
        )
    values = np.empty((len(frame), len(numbers)))
    for at, (_, column) in enumerate(numbers):
        values[:, at] = column
    return Table(
        values,
        row_names=row_names,
        column_names=[called[j] for j, _ in numbers] if names is not None else None,
        labels=label_values,
        label_name=labels,
        notes=tuple(notes),
    )


def read_parquet(path, labels=None):
    """Read a Parquet file; a stored text index gives the row names."""
    try:
        import pandas as pd
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            "Parquet files need the package pyarrow: pip install 'mnpca[parquet]'."
        ) from error
    metadata = pq.ParquetFile(path).metadata
    check_shape(metadata.num_rows, metadata.num_columns)
    frame = pd.read_parquet(path)
    row_names = None
    if not isinstance(frame.index, pd.RangeIndex):
        row_names = [str(name) for name in frame.index]
    return table_from_frame(frame, [str(name) for name in frame.columns], row_names, labels)


def read_h5ad(path, labels=None):
    """Read X of an AnnData file with the names of its observations and variables."""
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            "H5AD files need the package anndata: pip install 'mnpca[anndata]'."
        ) from error
    backed = anndata.read_h5ad(path, backed="r")
    try:
        check_shape(*backed.shape)
        if backed.X is None:
            raise DataError("the AnnData object has no X.")
        observations = backed.obs
        if labels is not None and labels not in observations:
            raise DataError(
                f"no column {quoted(labels)} in obs for --labels; there are "
                f"{listed(observations.columns) or 'none'}."
            )
        values = backed.X[:]
        values = values.toarray() if hasattr(values, "toarray") else values
        return Table(
            check_matrix(values),
            row_names=[str(name) for name in backed.obs_names],
            column_names=[str(name) for name in backed.var_names],
            labels=None if labels is None else _as_text(observations[labels]),
            label_name=labels,
        )
    finally:
        backed.file.close()


def _label_position(called, labels):
    positions = [j for j, name in enumerate(called) if name == labels]
    if not positions:
        raise DataError(f"no column {quoted(labels)} for --labels; there are {listed(called)}.")
    if len(positions) > 1:
        raise DataError(f"{len(positions)} columns are called {quoted(labels)}: rename one.")
    return positions[0]


def _as_text(column):
    return np.array(["" if missing else str(value) for value, missing in _cells(column)])


def _cells(column):
    return zip(column, column.isna(), strict=True)


def _numeric(column, name):
    """Return the numbers of a column, or None for a column of text.

    A column with numbers *and* text is an error: leaving it out would lose data, and reading the
    text as missing would invent gaps.
    """
    import pandas as pd

    if column.dtype.kind in "fiub":
        return column.to_numpy(dtype=np.float64)
    if pd.api.types.is_numeric_dtype(column.dtype):  # pandas' nullable numbers
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype):
        return None
    present = ~column.isna().to_numpy()
    numbers = np.array([_number(cell) for cell in column], dtype=np.float64)
    is_text = present & np.isnan(numbers)
    if is_text.sum() == present.sum() > 0:
        return None
    if is_text.any():
        first = int(np.argmax(is_text))
        raise DataError(
            f"column {quoted(name)} mixes numbers and text: {int(is_text.sum())} "
            f"cell{'s are' if is_text.sum() > 1 else ' is'} not a number, first "
            f"{quoted(column.iloc[first])} in row {first + 1} (decimal comma? unit? use a point "
            "and plain numbers, or leave the cell empty)."
        )
    return numbers


def _number(cell):
    """Return a cell as a number, NaN where it is none; pandas' own conversion can crash."""
    if isinstance(cell, str) and "_" in cell:  # Python reads 1_000
        return np.nan
    try:
        return float(cell) if isinstance(cell, str | Real | Decimal) else np.nan
    except (ValueError, OverflowError):
        return np.nan
