"""From a data frame to a numeric matrix; Parquet and H5AD files."""

from dataclasses import replace

import numpy as np

from mnpca.io._cells import as_text, numbers_of, position_of, positions_of, to_number
from mnpca.io._table import DataError, Table, check_matrix, check_shape, listed, quoted


def table_from_frame(frame, names, row_names, reading, row_numbers=None):
    """Split a frame into numbers, row names and labels; report what is not a number.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns by position; `names` holds what they are called.
    names : list of str or None
        Column names, None where the file has none.
    row_names : list of str or None
        Row names known already; otherwise a first column of text holds them.
    reading : Reading
        What the person asked for.
    row_numbers : ndarray of int or None
        Where the rows stand in the file.
    """
    called = names if names is not None else [str(j + 1) for j in range(frame.shape[1])]
    apart, labels = set(), None
    if reading.labels is not None:
        position = position_of(called, reading.labels, "--labels")
        labels = as_text(frame.iloc[:, position])
        apart.add(position)
    if reading.index is not None:
        position = position_of(called, reading.index, "--index")
        row_names = as_text(frame.iloc[:, position]).tolist()
        apart.add(position)
    columns = [j for j in range(frame.shape[1]) if j not in apart]
    chosen = set(positions_of(called, reading.columns, "--columns") or columns)
    chosen -= set(positions_of(called, reading.drop, "--drop"))
    rows = Table(np.empty((len(frame), 0)), row_names=row_names, row_numbers=row_numbers)
    numbers, left_out = [], []
    for j in columns:
        first_names = rows.row_names is None and j == columns[0]
        if j not in chosen and not first_names:
            continue
        try:
            column = numbers_of(
                frame.iloc[:, j], called[j], reading, rows.row_place, may_name=first_names
            )
        except DataError:
            if j in chosen:
                raise
            continue
        if column is None and first_names:
            rows = replace(rows, row_names=as_text(frame.iloc[:, j]).tolist())
        elif j not in chosen:
            continue
        elif column is not None:
            numbers.append((called[j], column))
        elif reading.categories:
            numbers += _indicators(called[j], as_text(frame.iloc[:, j]))
        else:
            left_out.append(called[j])
    if not numbers:
        raise DataError(
            "not a matrix: no column holds numbers (in text files, commas, semicolons, tabs or "
            "spaces separate the columns)."
        )
    notes = ()
    if left_out:
        notes = (
            f"{len(left_out)} column{'s' * (len(left_out) > 1)} without numbers left out: "
            f"{listed(left_out)}",
        )
    values = np.empty((len(frame), len(numbers)))
    for at, (_, column) in enumerate(numbers):
        values[:, at] = column
    return replace(
        rows,
        values=values,
        column_names=[name for name, _ in numbers] if names is not None else None,
        labels=labels,
        label_name=reading.labels,
        notes=notes,
    )


def _indicators(name, texts):
    """Return a column of 0 and 1 for every text but the first."""
    return [(f"{name}={text}", (texts == text).astype(float)) for text in np.unique(texts)[1:]]


def read_parquet(path, reading):
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
    if reading.na:
        frame = frame.replace([*reading.na, *_as_numbers(reading.na)], np.nan)
    row_names = None
    if not isinstance(frame.index, pd.RangeIndex):
        row_names = [str(name) for name in frame.index]
    return table_from_frame(frame, [str(name) for name in frame.columns], row_names, reading)


def _as_numbers(texts):
    """Return those of some texts that are numbers as numbers."""
    return [number for number in (to_number(text) for text in texts) if number == number]


def read_h5ad(path, reading):
    """Read X of an AnnData file with the names of its observations and variables."""
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            "H5AD files need the package anndata: pip install 'mnpca[anndata]'."
        ) from error
    reading.only_names("H5AD files")
    labels = reading.labels
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
            labels=None if labels is None else as_text(observations[labels]),
            label_name=labels,
        )
    finally:
        backed.file.close()
