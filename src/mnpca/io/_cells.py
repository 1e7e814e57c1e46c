"""From cells to a numeric matrix.

For cells that are no numbers an error names the option that reads them.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.io._table import DataError, Reading, Table, listed, quoted

#: Marks between groups of three digits, and the shapes of numbers that Python does not read.
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{2,3})*,\d{3}(\.\d*)?")  # in India 12,34,567
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_POINTS_AND_COMMA = re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?")
_SPACED = re.compile(r"[-+]?\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d*)?")
_AFFIXED = re.compile(r"([^\w\s.,'+-]*)\s*[-+]?\d[\d.,'’\u00a0\u202f]*(?:[eE][-+]?\d+)?\s*(\D*)")
#: What means a negative number in some tables and something else in others, and old exponents.
_BRACKETED = re.compile(r"\([^()]*\d[^()]*\)")
_MINUS_LAST = re.compile(r"[\d.,]+-")
_FORTRAN = re.compile(r"[-+]?[\d.,]+[dD][-+]?\d+")
#: A word for a missing value, short and without digits, or an error of a spreadsheet.
_WORD = re.compile(r"\D{1,12}|#[A-Z0-9/]+[!?]?")
#: Headers under which other programs write the row names.
_INDEX_NAMES = {"", "unnamed: 0", "index", "id", "rownames", "row_names", "row.names"}
#: What stands for a missing value, beside nan, in a first line that is no header.
_MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}


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
    if len(header) < width - 1 or width_of(header) == 1 < width - 1:
        raise DataError(
            f"not a table: the first line has {width_of(header)} cells, those below {width}. "
            "Delete what stands above the column names, or name every column."
        )


def width_of(cells: list[str]) -> int:
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
    if header is not None:
        header = header[: max(width, width_of(header))]
    return frame.iloc[:, :width], header


def numbers_of(
    column: Any, name: str, reading: Reading, place: Callable[[int], str], *, may_name: bool = False
) -> FloatArray | None:
    """Return the numbers of a column (a pandas Series), or None for a column of text.

    A column with numbers *and* text is an error: leaving it out would lose data, and reading the
    text as missing would lose data, too. So is a column of text that an option turns into numbers.
    `place` names the row of a position, as a person finds it in the file. With `may_name` the
    column may hold the names of the rows: numbers with letters then are text.
    """
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype):
        return None
    present = ~column.isna().to_numpy()
    numbers = np.array([to_number(cell, reading) for cell in column], dtype=np.float64)
    text = np.flatnonzero(present & np.isnan(numbers))
    if not len(text):
        return numbers
    cells = [str(column.iloc[i]).strip() for i in text]
    only_text = len(text) == present.sum()
    remedy = _remedy(cells, reading, only_text, may_name)
    alone = len(text) == 1 and len(column) > 1
    if only_text and remedy is None:
        return None
    if cells[0] == name:
        remedy = f"{place(text[0])} repeats the column names; delete it"
    elif alone and text[0] == 0:
        remedy = (remedy + "; " if remedy else "") + f"if {place(0)} holds units, delete it"
    elif alone and remedy is None and text[0] == len(column) - 1:
        remedy = f"Correct the cell; if {place(text[0])} is a note below the table, delete it"
    what = "is not read as numbers" if only_text else "mixes numbers and text"
    raise DataError(
        f"column {quoted(name)} {what}: {len(text):,} cell{'s are' if len(text) > 1 else ' is'} "
        f"not a number, first {quoted(cells[0])} in {place(text[0])}. "
        f"{_sentence(remedy or 'Correct the cell, or leave it empty')}; or leave the column out: "
        f"--drop {_shell(name)}."
    )


def to_number(cell: Any, reading: Reading) -> float:
    """Return a cell as a number, NaN where it is none; pandas' own conversion can crash."""
    if isinstance(cell, str):
        cell = _stripped(cell, reading)
        if reading.decimal == ",":
            cell = "x" if "." in cell else cell.replace(",", ".")
        if "_" in cell:  # Python reads 1_000
            return np.nan
    try:
        return float(cell) if isinstance(cell, str | Real | Decimal) else np.nan
    except (ValueError, OverflowError):
        return np.nan


def _stripped(cell: str, reading: Reading) -> str:
    cell = cell.strip().replace("\N{MINUS SIGN}", "-")
    for text in reading.strip:
        if len(text) == 1 and text in " .,'’":
            # Between thousands only: a date such as 03.05.2021 is no number.
            mark = r"\s" if text == " " else re.escape(text)
            pairs = "(\\d\\d,)*" if text == "," else ""
            cell = re.sub(rf"(?<=\d){mark}(?={pairs}\d{{3}}(\D|$))", "", cell)
        else:
            cell = cell.replace(text, "").strip()
    return cell


def _remedy(cells: list[str], reading: Reading, only_text: bool, may_name: bool) -> str | None:
    """Return what to pass so that these cells are read, None where nothing is known."""
    words, cells = list(dict.fromkeys(cells)), [_stripped(cell, reading) for cell in cells]

    def all_match(*patterns: Any) -> bool:
        return all(any(p.fullmatch(cell) for p in patterns) for cell in cells)

    if reading.decimal == "." and all_match(_GROUPED):
        if any("." in cell or cell.count(",") > 1 for cell in cells):
            return "Pass --strip , to read numbers such as 1,234.5"
        return f"Pass --decimal , if {cells[0]} has a decimal comma, --strip , if it has thousands"
    if reading.decimal == "." and all_match(_COMMA):
        return "Pass --decimal , to read decimal commas"
    if all_match(_COMMA, _POINTS_AND_COMMA):
        comma = "--decimal , " if reading.decimal == "." else ""
        return f"Pass {comma}--strip . to read numbers such as 1.234,5"
    if all_match(_SPACED, _COMMA):
        comma = "--decimal , " if any("," in c for c in cells) and reading.decimal == "." else ""
        cell = next(cell for cell in cells if _SPACED.fullmatch(cell))
        mark = next(c for c in cell.lstrip("+-") if not c.isdigit())
        mark = "' '" if mark.isspace() else _shell(mark)
        return f"Pass {comma}--strip {mark} to read numbers such as {quoted(cell)}"
    if all_match(_BRACKETED):
        return (
            "Pass --strip '(' --strip ')' if the brackets only mark a number; if they mean a "
            "negative one, write it with a minus sign"
        )
    if all_match(_MINUS_LAST):
        return "Write the minus sign before the number"
    if all_match(_FORTRAN):
        return "Write the exponents with E, as in 1.5E+03"
    parts = [part for part in map(_AFFIXED.fullmatch, cells) if part]
    if len(parts) == len(cells):
        affixes = {text.strip() for part in parts for text in part.groups()} - {""}
        named = only_text and any(
            len(text) > 8 or (may_name and text.isalpha()) for text in affixes
        )
        if 1 <= len(affixes) <= 2 and not named:
            options = " ".join(f"--strip {_shell(text)}" for text in sorted(affixes))
            other = f", or --na {_shell(cells[0])} if it is missing" if "<" in affixes else ""
            return f"Pass {options} to read cells such as {quoted(cells[0])}{other}"
    missing = [word for word in words if _WORD.fullmatch(word)]
    if not missing or len(missing) > 5:
        return None
    options = " ".join(f"--na {_shell(word)}" for word in missing)
    if len(missing) == len(words):
        return None if only_text else f"Pass {options} if this stands for a missing value"
    others = [cell for cell in cells if cell not in missing]
    remedy = _remedy(others, reading, only_text, may_name)
    return remedy and f"{remedy}, and {options} if this stands for a missing value"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _shell(text: str) -> str:
    """Write a text as one word of a command line, in one printable line."""
    text = quoted(text)[1:-1]
    if re.fullmatch(r"[\w.,:/@+%-]+", text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"


def as_text(column: Any) -> Any:
    """Return the cells of a column as text, empty where they are missing."""
    missing = column.isna()
    return np.array(
        ["" if gone else _text(cell) for cell, gone in zip(column, missing, strict=True)]
    )


def _text(cell: Any) -> str:
    """Return a cell as a person wrote it: pandas reads whole numbers beside missing ones as 1.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def position_of(called: list[str], name: str, option: str) -> int:
    """Return which column has a name; an option asked for it."""
    positions = [j for j, other in enumerate(called) if other == name]
    if not positions:
        raise DataError(f"no column {quoted(name)} for {option}; there are {listed(called)}.")
    if len(positions) > 1:
        raise DataError(f"{len(positions)} columns are called {quoted(name)}: rename one.")
    return positions[0]


def positions_of(called: list[str], names: tuple[str, ...], option: str) -> list[int]:
    """Return the columns that an option names, one by one or several with commas between."""
    chosen = []
    for name in names:
        parts = [name] if name in called else [part.strip() for part in name.split(",")]
        for part in parts:
            if part not in called:
                raise DataError(
                    f"no column {quoted(part)} for {option}; there are {listed(called)}."
                )
            chosen += [j for j, other in enumerate(called) if other == part]
    return chosen


def table_from_frame(
    frame: Any,
    names: list[str] | None,
    row_names: list[str] | None,
    reading: Reading,
    row_numbers: Any = None,
) -> Table:
    """Split a frame into numbers, row names and labels; report what is not a number.

    `names` are the column names, None where the file has none. Where the row names are not known, a
    first column of text holds them.
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
    numbers, left_out, cells = [], [], None
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
            cells = cells if cells is not None else as_text(frame.iloc[:, j])
    if not numbers:
        example = ""
        if left_out and cells is not None:
            example = f": {quoted(left_out[0])} begins with {quoted(cells[0])}"
        raise DataError(
            f"not a matrix: no column holds numbers{example}. Write plain numbers, and separate "
            "the columns by commas, semicolons, tabs or spaces."
        )
    notes: tuple[str, ...] = ()
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


def _indicators(name: str, texts: Any) -> list[tuple[str, FloatArray]]:
    """Return a column of 0 and 1 for every text but the first."""
    return [(f"{name}={text}", (texts == text).astype(float)) for text in np.unique(texts)[1:]]
