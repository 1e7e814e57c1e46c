"""Readers of NumPy, Matrix Market, Parquet, AnnData and spreadsheet files.

Shapes are checked before the numbers are read. SciPy reads the header of a Matrix Market file; its
reader of the numbers ends the process on some damaged files, so the numbers are read here.
"""

import warnings
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from mnpca._typing import FloatArray, PathLike
from mnpca.io._cells import as_text, is_data, table_from_cells, table_from_frame, to_number
from mnpca.io._table import (
    MAX_FILE_BYTES,
    DataError,
    Reading,
    Table,
    check_matrix,
    check_shape,
    exact_numbers,
    listed,
    quoted,
)

#: A sheet takes some fifty times its size in memory while it is read.
MAX_SHEET_BYTES = 2**29
#: What a dense matrix is called in an NPZ file, in the order in which it is looked for.
NPZ_NAMES = ("X", "Y", "data", "arr_0")
_SPARSE_NAMES = {"format", "shape", "data"}
_FIELDS = ("real", "integer", "unsigned-integer", "pattern", "double")


def read_npy(path: PathLike, reading: Reading) -> Table:
    """Read a two-dimensional array."""
    _no_names(reading, "an NPY file")
    with open(path, "rb") as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise DataError("not an NPY file; save the matrix with numpy.save.")
    with open(path, "rb") as file:
        shape = _npy_shape(file)
    if len(shape) != 2:
        raise DataError(f"not a matrix: the array has {len(shape)} dimensions, not 2.")
    check_shape(*shape)
    return Table(check_matrix(np.load(path, allow_pickle=False)))


def read_npz(path: PathLike, reading: Reading) -> Table:
    """Read the matrix of an NPZ file: dense, or sparse as scipy saves it.

    Arrays ``row_names`` and ``column_names``, and one with the name of the labels, are used when
    they are there.
    """
    reading.only_names("an NPZ file")
    labels = reading.labels
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_FILE_BYTES:
            raise DataError(f"unzips to more than {MAX_FILE_BYTES // 2**30} GB.")
        shapes = {}
        for name in archive.namelist():
            if name.endswith(".npy"):
                with archive.open(name) as member:
                    shapes[name.removesuffix(".npy")] = _npy_shape(member)
    with np.load(path, allow_pickle=False) as arrays:
        if shapes.keys() >= _SPARSE_NAMES:
            values = _sparse_values(path, arrays)
        else:
            name = _matrix_name(shapes)
            check_shape(*shapes[name])
            values = check_matrix(arrays[name])
        n_rows, n_columns = values.shape
        if labels is not None and labels not in shapes:
            raise DataError(
                f"no array {quoted(labels)} for --labels; the file holds {listed(shapes)}."
            )
        return Table(
            values,
            row_names=_npz_texts(arrays, "row_names", shapes, n_rows, "row"),
            column_names=_npz_texts(arrays, "column_names", shapes, n_columns, "column"),
            labels=None
            if labels is None
            else np.array(_npz_texts(arrays, labels, shapes, n_rows, "row")),
            label_name=labels,
        )


def read_mtx(path: PathLike, reading: Reading) -> Table:
    """Read a Matrix Market file; zeros that are not stored are zeros."""
    _no_names(reading, "an MTX file")
    return Table(check_matrix(read_market_values(path)))


def _no_names(reading: Reading, kind: str) -> None:
    reading.only_names(kind)
    if reading.labels is not None:
        raise DataError(f"{kind} has no named columns, so --labels cannot be used with it.")


def _npy_shape(file: Any) -> tuple[int, ...]:
    """Shape of an array, from its header alone."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        header = np.lib.format.read_array_header_1_0(file)
    else:
        header = np.lib.format.read_array_header_2_0(file)
    return header[0]


def _matrix_name(shapes: dict[str, tuple[int, ...]]) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if not matrices:
        raise DataError(f"not a matrix: no two-dimensional array among {listed(shapes)}.")
    for name in NPZ_NAMES:
        if name in matrices:
            return name
    if len(matrices) > 1:
        raise DataError(f"which matrix? The file holds {listed(matrices)}; name one of them X.")
    return matrices[0]


def _sparse_values(path: PathLike, arrays: Any) -> FloatArray:
    shape = np.atleast_1d(arrays["shape"])
    if shape.shape != (2,):
        raise DataError("not a matrix: the sparse array does not have two dimensions.")
    check_shape(int(shape[0]), int(shape[1]))
    matrix = sp.load_npz(path)
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy's compiled routines trust the indices and would write outside the matrix.
        matrix.check_format(full_check=True)
    return check_matrix(matrix.toarray())


def _npz_texts(
    arrays: Any, key: str, shapes: dict[str, tuple[int, ...]], length: int, side: str
) -> list[str] | None:
    """Return the texts of an array, one for every row or column; None where there is no array."""
    if key not in shapes:
        return None
    if shapes[key] != (length,):
        raise DataError(
            f"the array {quoted(key)} does not have one entry for each of the {length} {side}s."
        )
    try:
        return arrays[key].astype(str).tolist()
    except ValueError as error:  # NumPy's, for a pickle
        raise DataError(
            f"the array {quoted(key)} holds Python objects; save it with .astype(str)."
        ) from error


def read_market_values(path: PathLike) -> FloatArray:
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


def _numbers(path: PathLike) -> FloatArray:
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


def _from_array(lines: FloatArray, n_rows: int, n_columns: int, symmetry: str) -> FloatArray:
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


def _from_coordinates(
    lines: FloatArray, n_rows: int, n_columns: int, entries: int, pattern: bool
) -> FloatArray:
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


def read_parquet(path: PathLike, reading: Reading) -> Table:
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
        numbers = [to_number(text, Reading()) for text in reading.na]
        frame = frame.replace([*reading.na, *(each for each in numbers if each == each)], np.nan)
    row_names = None
    if not isinstance(frame.index, pd.RangeIndex):
        row_names = [str(name) for name in frame.index]
    return table_from_frame(frame, [str(name) for name in frame.columns], row_names, reading)


def read_h5ad(path: PathLike, reading: Reading) -> Table:
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


def read_sheet(path: PathLike, reading: Reading) -> Table:
    """Read the first sheet of an XLSX file as a text file with the same cells is read."""
    try:
        import openpyxl  # noqa: F401 - pandas reads with it
        import pandas as pd
    except ImportError as error:
        raise DataError(
            "XLSX files need the package openpyxl: pip install 'mnpca[excel]'; or save the sheet "
            "as CSV."
        ) from error
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_SHEET_BYTES:
            raise DataError(f"unzips to more than {MAX_SHEET_BYTES // 2**20} MB; save it as CSV.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl's, about styles and the like
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = book.sheet_names
            frame = book.parse(sheets[0], header=None, na_values=list(reading.na))
    check_shape(*frame.shape)
    frame.index += 1
    filled = frame.dropna(how="all")
    if filled.empty:
        raise DataError(f"the first sheet, {quoted(sheets[0])}, is empty; put the table there.")
    header = ["" if cell != cell else " ".join(str(cell).split()) for cell in filled.iloc[0]]
    has_header = not is_data(header, reading)
    rows = frame.loc[filled.index[0] + has_header :].infer_objects()
    table = table_from_cells(rows, header if has_header else None, reading)
    if len(sheets) == 1:
        return table
    note = f"the first of {len(sheets)} sheets was read, {quoted(sheets[0])}"
    return replace(table, notes=(note, *table.notes))
