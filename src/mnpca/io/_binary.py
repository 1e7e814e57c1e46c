"""Readers of NumPy, Matrix Market, Parquet, AnnData and spreadsheet files.

Shapes are checked before the numbers are read. SciPy reads the header of a Matrix Market file; its
reader of the numbers ends the process on some damaged files, so the numbers are read here.
"""

import importlib
import warnings
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from mnpca._typing import FloatArray, PathLike
from mnpca.io._messages import DataError, listed, quoted
from mnpca.io._table import (
    Reading,
    Table,
    as_text,
    check_matrix,
    check_shape,
    exact_numbers,
    is_data,
    table_from_cells,
    table_from_frame,
    to_number,
)

#: The arrays of an NPZ file unzip to this at most; a sheet takes some fifty times its size.
MAX_NPZ_BYTES, MAX_SHEET_BYTES = 4 * 2**30, 2**29
#: What a dense matrix is called in an NPZ file, in the order in which it is looked for.
NPZ_NAMES = ("X", "Y", "data", "arr_0")
_SPARSE_NAMES = {"format", "shape", "data"}
_FIELDS = ("real", "integer", "unsigned-integer", "pattern", "double")


def read_npy(path: PathLike, reading: Reading) -> Table:
    """Read a two-dimensional array."""
    reading.refuse("an NPY file", labels=True)
    with open(path, "rb") as file:
        if file.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            raise DataError("not an NPY file; save the matrix with numpy.save.")
        file.seek(0)
        check_shape(*_npy_shape(file))
    return Table(check_matrix(np.load(path, allow_pickle=False)))


def read_npz(path: PathLike, reading: Reading) -> Table:
    """Read the matrix of an NPZ file: dense, or sparse as scipy saves it.

    Arrays ``row_names`` and ``column_names``, and one with the name of the labels, are used when
    they are there.
    """
    reading.refuse("an NPZ file")
    name, shapes = reading.labels, {}
    with zipfile.ZipFile(path) as archive:
        if _unzipped_size(archive) > MAX_NPZ_BYTES:
            raise DataError(f"unzips to more than {MAX_NPZ_BYTES // 2**30} GB.")
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as file:
                    shapes[member.removesuffix(".npy")] = _npy_shape(file)
    with np.load(path, allow_pickle=False) as arrays:
        if shapes.keys() >= _SPARSE_NAMES:
            values = _sparse_values(path, arrays)
        else:
            matrix = _matrix_name(shapes)
            check_shape(*shapes[matrix])
            values = check_matrix(arrays[matrix])
        if name is not None and name not in shapes:
            raise DataError(
                f"no array {quoted(name)} for --labels; the file holds {listed(shapes)}."
            )

        def texts(key: str, axis: int) -> list[str] | None:
            """Return the texts of an array, one for every row or column."""
            length = values.shape[axis]
            if key not in shapes:
                return None
            if shapes[key] != (length,):
                raise DataError(
                    f"the array {quoted(key)} does not have one entry for each of the {length} "
                    f"{('rows', 'columns')[axis]}."
                )
            try:
                return arrays[key].astype(str).tolist()
            except ValueError as error:  # NumPy's, for a pickle
                raise DataError(
                    f"the array {quoted(key)} holds Python objects; save it with .astype(str)."
                ) from error

        labels = None if name is None else np.array(texts(name, 0))
        return Table(values, texts("row_names", 0), texts("column_names", 1), labels, name)


def read_mtx(path: PathLike, reading: Reading) -> Table:
    """Read a Matrix Market file; zeros that are not stored are zeros."""
    reading.refuse("an MTX file", labels=True)
    return Table(check_matrix(read_market_values(path)))


def _unzipped_size(archive: zipfile.ZipFile) -> int:
    return sum(member.file_size for member in archive.infolist())


def _npy_shape(file: Any) -> tuple[int, ...]:
    """Return the shape of an array, from its header alone."""
    old = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    return read(file)[0]


def _matrix_name(shapes: dict[str, tuple[int, ...]]) -> str:
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if not matrices:
        raise DataError(f"not a matrix: no two-dimensional array among {listed(shapes)}.")
    usual = [name for name in NPZ_NAMES if name in matrices]
    if not usual and len(matrices) > 1:
        raise DataError(f"which matrix? The file holds {listed(matrices)}; name one of them X.")
    return (usual or matrices)[0]


def _sparse_values(path: PathLike, arrays: Any) -> FloatArray:
    check_shape(*map(int, np.atleast_1d(arrays["shape"])))
    matrix = sp.load_npz(path)
    if matrix.format in ("csr", "csc", "bsr"):
        # SciPy's compiled routines trust the indices and would write outside the matrix.
        matrix.check_format(full_check=True)
    return check_matrix(matrix.toarray())


def read_market_values(path: PathLike) -> FloatArray:
    """Return the dense matrix of a Matrix Market file; entries that are not stored are zero."""
    n_rows, n_columns, entries, form, field, symmetry = scipy.io.mminfo(path)
    check_shape(n_rows, n_columns)
    if field not in _FIELDS:
        raise DataError(f"the numbers are {field}; real numbers are needed.")
    if n_rows < 1 or n_columns < 1 or entries > n_rows * n_columns:
        raise DataError("the header promises more entries than the matrix has cells.")
    lines = _market_lines(path)
    if form == "array":
        values = _from_array(lines[:, 0], n_rows, n_columns, symmetry)
    else:
        if len(lines) != entries:
            raise DataError(f"the header promises {entries} entries, there are {len(lines)}.")
        inside = (lines[:, :2] >= 1) & (lines[:, :2] <= (n_rows, n_columns))
        if not (inside & (lines[:, :2] % 1 == 0)).all():
            raise DataError("an entry has its place outside the matrix.")
        values = np.zeros((n_rows, n_columns))
        places = tuple(lines[:, :2].astype(np.intp).T - 1)
        np.add.at(values, places, 1.0 if field == "pattern" else lines[:, 2])
    if symmetry in ("symmetric", "hermitian"):
        values += np.tril(values, -1).T
    elif symmetry == "skew-symmetric":
        values -= np.tril(values, -1).T
    return values


def _market_lines(path: PathLike) -> FloatArray:
    """Return the lines after the one with the sizes, as an array of three columns."""
    import pandas as pd

    form: dict[str, Any] = {"sep": r"\s+", "comment": "%", "header": None, "names": [0, 1, 2]}
    try:
        return pd.read_csv(path, dtype=np.float64, **form, **exact_numbers(pd)).to_numpy()[1:]
    except (ValueError, TypeError) as error:
        raise DataError(f"not a Matrix Market file: {error}.") from error


def _from_array(entries: FloatArray, n_rows: int, n_columns: int, symmetry: str) -> FloatArray:
    """Fill the matrix column by column; only the lower triangle where it is symmetric."""
    values = np.zeros((n_rows, n_columns), order="F")
    if symmetry == "general":
        places = np.ones((n_rows, n_columns), dtype=bool)
    elif n_rows == n_columns:
        places = np.tri(n_rows, k=-1 if symmetry == "skew-symmetric" else 0, dtype=bool)
    else:
        raise DataError("a symmetric matrix must be square.")
    if len(entries) != places.sum():
        raise DataError(f"the header promises {places.sum()} numbers, there are {len(entries)}.")
    values.T[places.T] = entries
    return values


def _require(package: str, kind: str, extra: str, otherwise: str = "") -> Any:
    """Import a package that only files of one kind need."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise DataError(
            f"{kind} files need the package {package.split('.')[0]}: pip install "
            f"'mnpca[{extra}]'{otherwise}."
        ) from error


def read_parquet(path: PathLike, reading: Reading) -> Table:
    """Read a Parquet file; a stored text index gives the row names."""
    parquet = _require("pyarrow.parquet", "Parquet", "parquet")
    import pandas as pd

    metadata = parquet.ParquetFile(path).metadata
    check_shape(metadata.num_rows, metadata.num_columns)
    frame = pd.read_parquet(path)
    if reading.na:
        numbers = [to_number(text, Reading()) for text in reading.na]
        frame = frame.replace([*reading.na, *(each for each in numbers if each == each)], np.nan)
    counted = isinstance(frame.index, pd.RangeIndex)
    row_names = None if counted else list(map(str, frame.index))
    return table_from_frame(frame, list(map(str, frame.columns)), row_names, reading)


def read_h5ad(path: PathLike, reading: Reading) -> Table:
    """Read X of an AnnData file with the names of its observations and variables."""
    anndata = _require("anndata", "H5AD", "anndata")
    reading.refuse("H5AD files")
    backed = anndata.read_h5ad(path, backed="r")
    try:
        check_shape(*backed.shape)
        if backed.X is None:
            raise DataError("the AnnData object has no X.")
        name, observations = reading.labels, backed.obs
        if name is not None and name not in observations:
            there = listed(observations.columns) or "none"
            raise DataError(f"no column {quoted(name)} in obs for --labels; there are {there}.")
        values = backed.X[:]
        values = check_matrix(values.toarray() if hasattr(values, "toarray") else values)
        labels = None if name is None else as_text(observations[name])
        rows, columns = (list(map(str, names)) for names in (backed.obs_names, backed.var_names))
        return Table(values, rows, columns, labels, name)
    finally:
        backed.file.close()


def read_sheet(path: PathLike, reading: Reading) -> Table:
    """Read the first sheet of an XLSX file as a text file with the same cells is read."""
    _require("openpyxl", "XLSX", "excel", "; or save the sheet as CSV")
    import pandas as pd

    with zipfile.ZipFile(path) as archive:
        if _unzipped_size(archive) > MAX_SHEET_BYTES:
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
