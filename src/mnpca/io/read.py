"""One function that reads every supported data file, and the reader of delimited text."""

import codecs
import contextlib
import csv
import gzip
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mnpca._typing import PathLike
from mnpca.io._binary import read_h5ad, read_mtx, read_npy, read_npz, read_parquet, read_sheet
from mnpca.io._messages import DataError, quoted
from mnpca.io._table import (
    Reading,
    Table,
    check_header,
    check_shape,
    exact_numbers,
    is_data,
    table_from_cells,
    width_of,
)

MAX_LINE_BYTES, MAX_FILE_BYTES = 64 * 2**20, 4 * 2**30
#: Tables of numbers shrink about tenfold when they are zipped, bombs a thousandfold.
_MAX_GROWTH = 100
_CHUNK = 2**20
#: Lines at the beginning from which delimiter and header are recognized.
_HEAD = 50
_MARKS = "\t;|,"
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f]")
#: How files begin (in small letters) that are no table of text, whatever their ending says.
_OTHER_FILES = {
    b"pk\x03\x04": "a spreadsheet or another zip archive; give it the ending .xlsx",
    b"\x1f\x8b": "a gzipped file; add .gz to its name",
    b"\xd0\xcf\x11\xe0": "a spreadsheet of an old program; save it as CSV",
    b"par1": "a Parquet file; give it the ending .parquet",
    b"\x93numpy": "an array of NumPy; give it the ending .npy",
    b"\x89hdf": "an HDF5 file; give it the ending .h5ad if it is from AnnData",
    **dict.fromkeys(
        (b"<!", b"<?xml", b"<html", b"<table"),
        "a page of HTML or XML; open it in a spreadsheet and save it as CSV",
    ),
    **dict.fromkeys((b'{"', b"[{", b"[["), "JSON; save it as CSV"),
}


def read_text(path: PathLike, reading: Reading) -> Table:
    """Read a delimited text file: comma, semicolon, tab, bar or spaces, with or without a header.

    Empty lines, lines of comments (#) and a line such as ``sep=;`` above the table are left out.
    """
    encoding, head, notes = _decoded_head(path, reading.encoding)
    lines, skip, mark = _without_preamble(head)
    delimiter = mark or _delimiter(lines)
    record, height = _first_record(lines)
    header = _split(record, delimiter)
    below = [width_of(_split(line, delimiter)) for line in lines[height:] if line.strip()]
    check_header(header, max(below, key=below.count, default=1))
    has_header = not is_data(header, reading)
    frame = _read_cells(path, delimiter, encoding, reading, skip=skip + has_header)
    frame.index += 1 + skip + (height if has_header else 0)
    table = table_from_cells(frame, header if has_header else None, reading)
    return replace(table, notes=(*notes, *table.notes))


def _read_cells(
    path: PathLike, delimiter: str, encoding: str, reading: Reading, *, skip: int
) -> Any:
    import pandas as pd

    with warnings.catch_warnings():
        # A column that is text in one part of the file only is examined in table_from_frame.
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        try:
            return pd.read_csv(
                path,
                sep=delimiter,
                header=None,
                skiprows=skip,
                skip_blank_lines=False,  # so that rows can be counted
                encoding=encoding,
                decimal=reading.decimal,
                na_values=list(reading.na),
                skipinitialspace=True,
                **exact_numbers(pd),
            )
        except pd.errors.EmptyDataError:
            raise DataError("the table has a header and no rows.") from None
        except pd.errors.ParserError as error:
            reason = str(error).split("C error:")[-1].strip()
            if open_at := re.search(r"EOF inside string starting at row (\d+)", reason):
                raise DataError(
                    f"the quotation mark in row {int(open_at[1]) + 1} is never closed; close it, "
                    "or delete it."
                ) from error
            raise DataError(
                f"not a table: {reason[0].lower()}{reason[1:]}. Every row needs the same number of "
                "cells: delete titles above the table and notes below it, and put cells that hold "
                f"{quoted(delimiter)} into quotation marks."
            ) from error


def _decoded_head(path: PathLike, encoding: str | None) -> tuple[str, list[str], tuple[str, ...]]:
    """Return the encoding, the first lines, and notes; refuse what is no table of text."""
    with open(path, "rb") as stream:
        start = stream.read(2000)
    for mark, kind in _OTHER_FILES.items():
        if start[:100].lstrip().lower().startswith(mark):
            raise DataError(f"not a table of text but {kind}.")
    western = "read as Western text (Windows-1252); if names look wrong, pass --encoding"
    guesses = {encoding: ()} if encoding else {_by_first_bytes(start): (), "cp1252": (western,)}
    for guess, notes in guesses.items():
        try:
            return guess, _survey(path, guess), notes
        except UnicodeError:
            continue
        except LookupError:
            raise DataError(
                f"--encoding {quoted(guess)} is not known; names are utf-8, utf-16, latin-1, "
                "cp1252, ..."
            ) from None
    raise DataError(
        "not text in an encoding that can be recognized; name it with --encoding, or save the file "
        "as UTF-8."
        if encoding is None
        else f"the file is not text in the encoding {quoted(encoding)}; without --encoding the "
        "usual ones are recognized."
    )


def _by_first_bytes(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = start[::2], start[1::2]
    for zeros, rest, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros.count(0) > 0.9 * len(zeros) and rest.count(0) < 0.1 * len(rest):
            return name
    return "utf-8-sig"  # with a mark or without


def _survey(path: PathLike, encoding: str) -> list[str]:
    """Return the first lines of a file after a look at all of it, in pieces.

    Binary junk, endless lines and tables beyond the limits end here, in bounded memory.
    """
    head, lines, line_length, columns = "", 0, 0, 0
    with open(path, encoding=encoding) as stream:  # all line ends become \n
        while chunk := stream.read(_CHUNK):
            if "\0" in chunk or _CONTROL.search(chunk, 0, 10_000):
                raise DataError(
                    "not a text file: it holds bytes that no text has; give it the ending of what "
                    "it is."
                )
            first, *others = chunk.split("\n")
            if line_length + len(first) > MAX_LINE_BYTES:
                raise DataError(
                    f"a line is longer than {MAX_LINE_BYTES // 2**20} MB; this is not a table "
                    "with one row per line."
                )
            line_length = len(others[-1]) if others else line_length + len(chunk)
            if "\n" not in head or (lines < _HEAD and len(head) < 2**24):
                head += chunk
                if "\n" in head:
                    columns = 1 + max(head.strip().split("\n", 1)[0].count(m) for m in _MARKS)
            lines += len(others)
            check_shape(max(lines, 1), columns)
    check_shape(1, columns or 1 + max(head.count(mark) for mark in _MARKS))
    return head.split("\n")[:_HEAD]


def _without_preamble(head: list[str]) -> tuple[list[str], int, str | None]:
    """Return the lines from the first of the table on, how many were above, and ``sep=``'s mark."""
    for skip, line in enumerate(head):
        text = line.strip("\ufeff\t ,;|")
        if re.fullmatch("sep=.?", line.strip('\ufeff\t "')):
            return [*head[skip + 1 :]], skip + 1, line.strip('\ufeff "')[4:] or "\t"
        # The sign of a comment may also begin a column name: #CHROM.
        marked = any(mark in line for mark in _MARKS)
        comment = text.startswith(("# ", "##")) or (text.startswith("#") and not marked)
        if text and not comment:
            return [line.lstrip("\ufeff"), *head[skip + 1 :]], skip, None
    raise DataError("the file holds no table: its first lines are empty.")


def _first_record(lines: list[str]) -> tuple[str, int]:
    """Return the first record and its number of lines, several inside quotation marks."""
    for height in range(1, len(lines) + 1):
        record = "\n".join(lines[:height])
        if record.count('"') % 2 == 0:
            return record, height
    raise DataError("a quoted column name is not closed in the first lines.")


def _split(record: str, delimiter: str) -> list[str]:
    if delimiter == r"\s+":
        record, delimiter = " ".join(record.split()), " "
    # Lines inside the quotation marks of a name are joined.
    cells = next(csv.reader([record.replace("\n", " ")], delimiter=delimiter))
    return [" ".join(cell.split()) for cell in cells]


def _delimiter(lines: list[str]) -> str:
    """Return the mark that divides all of the first lines alike, or the first one best."""
    # A mark inside a quoted name separates nothing.
    bare = [re.sub(r'"[^"]*"', "x", line) for line in lines if line.strip()]
    counts = {mark: [line.count(mark) for line in bare] for mark in _MARKS}
    for mark, found in counts.items():
        # R names one column fewer; some programs end rows with a mark.
        alike = all(abs(count - found[0]) <= 1 for count in found)
        if found[0] and alike and len(found) > 1:
            return mark
    best = max(_MARKS, key=lambda mark: counts[mark][0])
    if counts[best][0]:
        return best
    widths = [len(line.split()) for line in bare]
    spaced = widths[0] > 1 and all(0 <= width - widths[0] <= 1 for width in widths)
    return r"\s+" if spaced else ","


#: Reader of each file ending; every one also as ENDING.gz.
FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), read_text),
    ".xlsx": read_sheet,
    ".parquet": read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".h5ad": read_h5ad,
}
#: Endings of programs that write CSV files, too.
_SAVED_AS = {".xls", ".xlsm", ".xlsb", ".ods", ".numbers", ".sav", ".dta", ".sas7bdat", ".rds"}


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
    """Yield the path itself, or that of an unzipped copy that is removed after the block.

    The copy is bounded: a gzip bomb ends here.
    """
    size = path.stat().st_size
    if path.suffix.lower() != ".gz":
        if size > MAX_FILE_BYTES:
            raise DataError(f"larger than {MAX_FILE_BYTES // 2**30} GB.")
        yield path
        return
    left = min(MAX_FILE_BYTES, max(_MAX_GROWTH * size, 2**28))
    with tempfile.TemporaryDirectory(prefix="mnpca-") as folder:
        plain = Path(folder, "data").with_suffix(path.with_suffix("").suffix.lower())
        with gzip.open(path, "rb") as zipped, plain.open("wb") as out:
            while chunk := zipped.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise DataError(
                        f"unzips to more than {MAX_FILE_BYTES // 2**30} GB or {_MAX_GROWTH} times "
                        "its size; if you trust it, unzip it first."
                    )
                out.write(chunk)
        yield plain
