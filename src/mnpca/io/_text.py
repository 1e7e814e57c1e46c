"""Reader of CSV and TSV files."""

import codecs
import csv
import io
import re
import warnings
from dataclasses import replace

from mnpca.io._frames import table_from_frame
from mnpca.io._table import MAX_LINE_BYTES, DataError, check_shape, exact_numbers

_CHUNK = 2**20
_NOT_UTF8 = "not a text file in UTF-8; save it as UTF-8, or give it the ending of what it is."
#: Headers under which other programs write the row names.
_INDEX_NAMES = {"", "unnamed: 0", "index", "id", "rownames", "row_names", "row.names"}

#: What stands for a missing value, beside nan, in a first line that is no header.
_MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}


def read_text(path, labels=None):
    """Read a delimited text file: comma, semicolon or tab, with or without a header.

    A first line that is not all numbers and missing values is the header; so is one that begins
    with an empty cell or counts the columns, as pandas writes it. The first column holds the row
    names if it is text, or if the header calls it nothing (as pandas and R write it). Empty columns
    without a name at the end, of a separator after the last cell, are left out.
    """
    first_line = _survey(path)
    if first_line.count('"') % 2:
        raise DataError("a quoted column name is not closed on the first line.")
    # A mark inside a quoted name separates nothing.
    delimiter = max(",;\t", key=re.sub(r'"[^"]*"', "", first_line).count)
    header = [cell.strip() for cell in next(csv.reader([first_line], delimiter=delimiter))]
    has_header = not _is_data(header)
    frame = _read_cells(path, delimiter, skip=int(has_header))
    if not has_header:
        table = table_from_frame(_without_empty_end(frame, [])[0], None, None, labels)
        return replace(table, notes=("no header: the first line is data", *table.notes))
    frame, header = _without_empty_end(frame, header)
    if frame.shape[1] == len(header) + 1:  # R leaves out the header of the row names
        header = ["", *header]
    if frame.shape[1] != len(header):
        raise DataError(
            f"not a table: the header has {len(header)} cells, the first row {frame.shape[1]}."
        )
    row_names = None
    if header[0].lower() in _INDEX_NAMES and header[0] != labels and len(header) > 1:
        row_names = ["" if name != name else str(name) for name in frame.iloc[:, 0]]
        frame, header = frame.iloc[:, 1:], header[1:]
    return table_from_frame(frame, header, row_names, labels)


def _without_empty_end(frame, header):
    """Return frame and header without columns at the end that have no name and no cells."""
    width = frame.shape[1]
    while width > 1 and not "".join(header[width - 1 :]) and frame.iloc[:, width - 1].isna().all():
        width -= 1
    return frame.iloc[:, :width], header[:width]


def _read_cells(path, delimiter, *, skip):
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
                encoding="utf-8-sig",
                skipinitialspace=True,
                **exact_numbers(pd),
            )
        except pd.errors.EmptyDataError:
            raise DataError("the table has a header and no rows.") from None
        except pd.errors.ParserError as error:
            reason = str(error).split("C error:")[-1].strip()
            raise DataError(f"not a table: {reason[0].lower()}{reason[1:]}.") from error
        except UnicodeDecodeError as error:
            raise DataError(_NOT_UTF8) from error


def _survey(path):
    """Look through the file in pieces; return its first line.

    Binary junk, endless lines and tables beyond the limits end here, in bounded memory.
    """
    first_line, lines, line_bytes = None, 0, 0
    head = io.BytesIO()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK):
            if chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(_NOT_UTF8)  # as spreadsheets write "Unicode text"
            if b"\0" in chunk:
                raise DataError("not a text file: it holds bytes that no text has.")
            newline = chunk.rfind(b"\n")
            longest_start = chunk.find(b"\n") if newline >= 0 else len(chunk)
            if line_bytes + longest_start > MAX_LINE_BYTES:
                raise DataError(
                    f"a line is longer than {MAX_LINE_BYTES // 2**20} MB; this is not a table "
                    "with one row per line."
                )
            line_bytes = len(chunk) - newline - 1 if newline >= 0 else line_bytes + len(chunk)
            if first_line is None:
                head.write(chunk)
                if newline >= 0:
                    first_line = _first_record(head.getvalue())
                    columns = _count_columns(first_line)
            lines += chunk.count(b"\n")
            if first_line is not None:
                check_shape(lines, columns)
    if first_line is None:
        first_line = _first_record(head.getvalue())
        _count_columns(first_line)
    if not first_line.strip():
        raise DataError("the first line is empty; it should hold the column names.")
    return first_line


def _count_columns(first_line):
    """Return the number of columns, refusing too many before any is parsed."""
    columns = 1 + max(first_line.count(mark) for mark in ",;\t")
    check_shape(1, columns)
    return columns


def _first_record(data):
    line = data.split(b"\n", 1)[0].rstrip(b"\r")
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(_NOT_UTF8) from error
    return text


def _is_data(cells):
    """Tell whether a first line is one of the table, and not its header."""
    present = [cell for cell in cells if cell not in _MISSING]
    numbers = cells[0] != "" and bool(present) and all(_is_number(cell) for cell in present)
    return numbers and not _counts(cells)


def _counts(cells):
    """Tell whether cells number the columns, from 0 (as pandas writes them) or from 1."""
    numbers = [str(number) for number in range(len(cells) + 1)]
    return len(cells) > 2 and cells in (numbers[:-1], numbers[1:])


def _is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True
