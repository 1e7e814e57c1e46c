"""Data files in, result files out: bounded memory, clear errors, names kept."""

from mnpca.io._folder import new_folder
from mnpca.io._table import DataError, Table
from mnpca.io._write import safe_cell, write_csv
from mnpca.io.read import FORMATS, read_table

__all__ = [
    "FORMATS",
    "DataError",
    "Table",
    "new_folder",
    "read_table",
    "safe_cell",
    "write_csv",
]
