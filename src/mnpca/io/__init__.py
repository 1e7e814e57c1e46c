"""Data files in, result files out: bounded memory, clear errors, names kept."""

from mnpca.io._messages import DataError, listed, quoted
from mnpca.io._output import check_folder, new_folder, safe_cell, write_csv
from mnpca.io._table import Table
from mnpca.io.read import FORMATS, read_table

__all__ = [
    "FORMATS",
    "DataError",
    "Table",
    "check_folder",
    "listed",
    "new_folder",
    "quoted",
    "read_table",
    "safe_cell",
    "write_csv",
]
