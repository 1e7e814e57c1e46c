"""Reader of delimited text files, as programs and people write them."""

import codecs
import csv
import re
import warnings
from dataclasses import replace
from typing import Any

from mnpca._typing import PathLike
from mnpca.io._frames import table_from_frame, to_number
from mnpca.io._table import (
    MAX_LINE_BYTES,
    DataError,
    Reading,
    Table,
    check_shape,
    exact_numbers,
    quoted,
)

_CHUNK = 2**20
#: Lines at the beginning from which delimiter and header are recognized.
_HEAD = 50
_MARKS = "\t;|,"
#: Headers under which other programs write the row names.
_INDEX_NAMES = {"", "unnamed: 0", "index", "id", "rownames", "row_names", "row.names"}
#: What stands for a missing value, beside nan, in a first line that is no header.
_MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}
_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_NOT_TEXT = "not a text file: it holds bytes that no text has; give it the ending of what it is."


def read_text(path: PathLike, reading: Reading) -> Table:
    """Read a delimited text file: comma, semicolon, tab, bar or spaces, with or without a header.

    Empty lines, lines of comments (#) and a line such as ``sep=;`` above the table are left out.
    """
    encoding, head, notes = _look_through(path, reading.encoding)
    lines, skip, mark = _without_preamble(head)
    delimiter = mark or _delimiter(lines)
    record, height = _first_record(lines)
    header = _split(record, delimiter)
    below = [_width(_split(line, delimiter)) for line in lines[height:] if line.strip()]
    check_header(header, max(below, key=below.count, default=1))
    has_header = not is_data(header, reading)
    frame = _read_cells(path, delimiter, encoding, reading, skip=skip + has_header)
    frame.index += 1 + skip + (height if has_header else 0)
    table = table_from_cells(frame, header if has_header else None, reading)
    return replace(table, notes=(*notes, *table.notes))


def table_from_cells(frame: Any, header: list[str] | None, reading: Reading) -> Table:
    """Make a table of cells whose index holds row numbers; rows without any cell are left out.

    The first column holds the row names if it is text, or if the header calls it nothing (as pandas
    and R write it). Empty columns without a name at the end, of a separator after the last cell,
    are left out.
    """
    notes: tuple[str, ...] = ()
    if header is None:
        notes = ("no header: the first line is data",)
    empty = frame.index[frame.isna().all(axis=1)]
    frame = frame.drop(index=empty)
    if frame.empty:
        raise DataError("the table has a header and no rows.")
    inside = empty[empty < frame.index[-1]]
    if len(inside):
        rows = f"{len(inside)} empty row{'s' * (len(inside) > 1)}"
        notes += (f"{rows} left out, first row {inside[0]} of the file",)
    frame, header = _without_empty_end(frame, header)
    row_names = None
    if header is not None:
        if frame.shape[1] == len(header) + 1:  # R leaves out the header of the row names
            header = ["", *header]
        check_header(header, frame.shape[1])
        if frame.shape[1] != len(header):
            raise DataError(
                f"not a table: there are {len(header)} column names, and the first row has "
                f"{frame.shape[1]} cells. Give every row the same number of cells."
            )
        apart = reading.index is not None or reading.labels == header[0]
        if header[0].lower() in _INDEX_NAMES and not apart and len(header) > 1:
            row_names = ["" if name != name else str(name) for name in frame.iloc[:, 0]]
            frame, header = frame.iloc[:, 1:], header[1:]
    table = table_from_frame(frame, header, row_names, reading, frame.index.to_numpy())
    return replace(table, notes=(*notes, *table.notes))


def check_header(header: list[str], width: int) -> None:
    """Refuse a first line that does not name the columns; R leaves out one name."""
    if len(header) < width - 1 or _width(header) == 1 < width - 1:
        raise DataError(
            f"not a table: the first line has {_width(header)} cells, those below {width}. Delete "
            "what stands above the column names, or name every column."
        )


def _width(cells: list[str]) -> int:
    """Return the number of cells without empty ones at the end."""
    return max((j + 1 for j, cell in enumerate(cells) if cell), default=0)


def is_data(cells: list[str], reading: Reading) -> bool:
    """Tell whether a first line is one of the table, and not its header."""
    present = [cell for cell in cells if cell not in _MISSING and cell not in reading.na]
    numbers = cells[0] != "" and bool(present)
    numbers = numbers and all(_is_number(cell, reading) for cell in present)
    return numbers and not _counts(cells)


def _is_number(cell: str, reading: Reading) -> bool:
    number = to_number(cell, reading)
    return number == number or cell.lower() in ("nan", "-nan", "+nan")


def _counts(cells: list[str]) -> bool:
    """Tell whether cells number the columns, from 0 (as pandas writes them) or from 1."""
    numbers = [str(number) for number in range(len(cells) + 1)]
    return len(cells) > 2 and cells in (numbers[:-1], numbers[1:])


def _without_empty_end(frame: Any, header: list[str] | None) -> tuple[Any, list[str] | None]:
    """Return frame and header without columns at the end that have no name and no cells."""
    names, width = header or [], frame.shape[1]
    while width > 1 and not "".join(names[width - 1 :]) and frame.iloc[:, width - 1].isna().all():
        width -= 1
    return frame.iloc[:, :width], None if header is None else header[:width]


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
            raise DataError(
                f"not a table: {reason[0].lower()}{reason[1:]}. Every row needs the same number of "
                "cells: delete titles above the table and notes below it, and put cells that hold "
                f"{quoted(delimiter)} into quotation marks."
            ) from error


def _look_through(path: PathLike, encoding: str | None) -> tuple[str, list[str], tuple[str, ...]]:
    """Return the encoding, the first lines, and notes; refuse what is no table.

    The file is read in pieces: binary junk, endless lines and tables beyond the limits end here,
    in bounded memory.
    """
    if encoding is not None:
        try:
            return encoding, _survey(path, encoding), ()
        except LookupError:
            raise DataError(
                f"--encoding {quoted(encoding)} is not known; names are utf-8, utf-16, latin-1, "
                "cp1252, ..."
            ) from None
        except UnicodeError:
            raise DataError(
                f"the file is not text in the encoding {quoted(encoding)}; without --encoding the "
                "usual ones are recognized."
            ) from None
    guess = _by_first_bytes(path)
    try:
        return guess, _survey(path, guess), ()
    except UnicodeError:
        pass
    try:
        head = _survey(path, "cp1252")
    except UnicodeError:
        raise DataError(
            "not text in an encoding that can be recognized; name it with --encoding, or save the "
            "file as UTF-8."
        ) from None
    note = "read as Western text (Windows-1252); if names look wrong, pass --encoding"
    return "cp1252", head, (note,)


def _by_first_bytes(path: PathLike) -> str:
    with open(path, "rb") as stream:
        start = stream.read(2000)
    for mark, name in _BOMS.items():
        if start.startswith(mark):
            return name
    for zeros, rest, name in (
        (start[1::2], start[::2], "utf-16-le"),
        (start[::2], start[1::2], "utf-16-be"),
    ):
        if zeros.count(0) > 0.9 * len(zeros) and rest.count(0) < 0.1 * len(rest):
            return name
    return "utf-8"


def _survey(path: PathLike, encoding: str) -> list[str]:
    """Return the first lines of a file after a look at all of it."""
    head, lines, line_length, columns = "", 0, 0, 0
    with open(path, encoding=encoding) as stream:  # all line ends become \n
        while chunk := stream.read(_CHUNK):
            if "\0" in chunk or _CONTROL.search(chunk, 0, 10_000):
                raise DataError(_NOT_TEXT)
            newline = chunk.rfind("\n")
            start = chunk.find("\n") if newline >= 0 else len(chunk)
            if line_length + start > MAX_LINE_BYTES:
                raise DataError(
                    f"a line is longer than {MAX_LINE_BYTES // 2**20} MB; this is not a table "
                    "with one row per line."
                )
            line_length = len(chunk) - newline - 1 if newline >= 0 else line_length + len(chunk)
            if "\n" not in head or (lines < _HEAD and len(head) < 2**24):
                head += chunk
                if "\n" in head:
                    columns = 1 + max(head.strip().split("\n", 1)[0].count(m) for m in _MARKS)
            lines += chunk.count("\n")
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
    record = lines[0]
    for height in range(1, len(lines) + 1):
        if record.count('"') % 2 == 0:
            return record, height
        record += "\n" + "".join(lines[height : height + 1])
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
    bare = [re.sub(r'"[^"]*"', "x", line) for line in lines if line.strip()][:_HEAD]
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
    if widths[0] > 1 and all(0 <= width - widths[0] <= 1 for width in widths):
        return r"\s+"
    return ","
