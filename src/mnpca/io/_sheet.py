"""Reader of the first sheet of a spreadsheet."""

import warnings
import zipfile
from dataclasses import replace

from mnpca._typing import PathLike
from mnpca.io._table import DataError, Reading, Table, check_shape, quoted
from mnpca.io._text import is_data, table_from_cells

#: A sheet takes some fifty times its size in memory while it is read.
MAX_SHEET_BYTES = 2**29


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
