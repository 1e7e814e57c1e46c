"""One function that reads every supported data file."""

import contextlib
import gzip
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mnpca._typing import PathLike
from mnpca.io._arrays import read_mtx, read_npy, read_npz
from mnpca.io._frames import read_h5ad, read_parquet
from mnpca.io._sheet import read_sheet
from mnpca.io._table import MAX_FILE_BYTES, DataError, Reading, Table, quoted
from mnpca.io._text import read_text

#: Reader of each file ending; every one also as ENDING.gz.
FORMATS = {
    ".csv": read_text,
    ".tsv": read_text,
    ".txt": read_text,
    ".xlsx": read_sheet,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".h5ad": read_h5ad,
}

#: Endings of programs that write CSV files, too.
_SAVED_AS = {".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".sav", ".dta", ".sas7bdat", ".rds"}
_MAX_GROWTH = 100


def read_table(path: PathLike, **options: Any) -> Table:
    r"""Read a data file as a numeric matrix with names.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, XLSX, Parquet, NPY, NPZ, MTX (Matrix Market) or H5AD, by its ending; gzipped
        too (``data.csv.gz``).
    labels : str, default=None
        Column with the label of each row: it is set apart, not analyzed. In an H5AD file a
        column of ``obs``.
    index : str, default=None
        Column with the names of the rows.
    columns, drop : tuples of str, default=()
        Columns to use (all if empty) and to leave out; a text may name several with commas.
    decimal : {".", ","}, default="."
        Decimal mark of a text file.
    strip : tuple of str, default=()
        Texts to remove from cells before they are read as numbers: ``%``, a unit, or the mark
        between thousands.
    na : tuple of str, default=()
        Cells that stand for a missing value, beside empty ones and the usual words.
    encoding : str, default=None
        Encoding of a text file; UTF-8, UTF-16 and Windows-1252 (Latin-1) are recognized.
    categories : bool, default=False
        Turn a column of text into columns of 0 and 1, one for every text but the first.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        With one line that says what is wrong with the file and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mnpca.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "small.csv")
    ...     _ = path.write_text("name,height,weight\nann,1.7,60\nbob,1.8,70\n")
    ...     table = read_table(path)
    >>> table.row_names, table.column_names, table.values.shape
    (['ann', 'bob'], ['height', 'weight'], (2, 2))
    """
    path, reading = Path(path), Reading(**options)
    _check_is_file(path)
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    reader = FORMATS.get(ending.lower())
    if reader is None:
        known = ", ".join(FORMATS)
        remedy = "save it as CSV" if ending.lower() in _SAVED_AS else "rename it to what it is"
        raise DataError(
            f"{quoted(path.name)}: the ending {quoted(ending)} is not one of {known} (or one of "
            f"these with .gz); {remedy}."
        )
    try:
        with _decompressed(path) as plain:
            return reader(plain, reading)
    except DataError as error:
        raise DataError(f"{quoted(path.name)}: {error}") from error
    except MemoryError as error:
        raise DataError(f"{quoted(path.name)}: too large for this machine's memory.") from error
    except Exception as error:
        # Readers meet arbitrary bytes; whatever their libraries raise means the same to a person.
        reason = quoted(str(error) or type(error).__name__, limit=150)
        raise DataError(
            f"{quoted(path.name)}: cannot be read as a {ending.lower()[1:]} file ({reason})."
        ) from error


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{quoted(path, 200)} is a folder; name a data file.")
    if not path.exists():
        raise DataError(f"no such file: {quoted(path, 200)}.")
    if not path.is_file():
        raise DataError(f"{quoted(path, 200)} is not a plain file.")
    if path.stat().st_size == 0:
        raise DataError(f"{quoted(path.name)}: the file is empty.")


@contextlib.contextmanager
def _decompressed(path: Path) -> Iterator[Path]:
    """Give the path itself, or that of a bounded, temporary, unzipped copy."""
    if path.suffix.lower() != ".gz":
        if path.stat().st_size > MAX_FILE_BYTES:
            raise DataError(f"larger than {MAX_FILE_BYTES // 2**30} GB.")
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mnpca-") as folder:
        plain = Path(folder) / "data"
        plain = plain.with_suffix(path.with_suffix("").suffix.lower())
        with gzip.open(path, "rb") as zipped, plain.open("wb") as out:
            bounded: Any = _Bounded(zipped, path.stat().st_size)
            shutil.copyfileobj(bounded, out, 2**20)
        yield plain


class _Bounded:
    """A stream that refuses to yield more than the limit: a gzip bomb ends here.

    Tables of numbers shrink about tenfold, bombs a thousandfold.
    """

    def __init__(self, stream: Any, zipped_bytes: int) -> None:
        self._stream = stream
        self._left = min(MAX_FILE_BYTES, max(_MAX_GROWTH * zipped_bytes, 2**28))

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise DataError(
                f"unzips to more than {MAX_FILE_BYTES // 2**30} GB or {_MAX_GROWTH} times its "
                "size; if you trust it, unzip it first."
            )
        return chunk
