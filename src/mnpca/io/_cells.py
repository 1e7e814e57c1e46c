"""Columns of cells as numbers; and, for what is no number, the option that reads it."""

import re
from decimal import Decimal
from numbers import Real

import numpy as np

from mnpca.io._table import DataError, Reading, listed, quoted

PLAIN = Reading()

#: Marks between groups of three digits, and the shapes of numbers that Python does not read.
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_POINTS_AND_COMMA = re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?")
_SPACED = re.compile(r"[-+]?\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d*)?")
_AFFIXED = re.compile(r"([^\w\s.,'+-]*)\s*[-+]?\d[\d.,'’\u00a0\u202f]*(?:[eE][-+]?\d+)?\s*(\D*)")
#: A word for a missing value, short and without digits, or an error of a spreadsheet.
_WORD = re.compile(r"\D{1,12}|#[A-Z0-9/]+[!?]?")


def numbers_of(column, name, reading, place, *, may_name=False):
    """Return the numbers of a column, or None for a column of text.

    A column with numbers *and* text is an error: leaving it out would lose data, and reading the
    text as missing would invent gaps. So is a column of text that an option turns into numbers.

    Parameters
    ----------
    column : pandas.Series
    name : str
        What the column is called.
    reading : Reading
        How numbers are written.
    place : callable
        Names the row of a position, as a person finds it in the file.
    may_name : bool, default=False
        Whether the column may hold the names of the rows: numbers with letters then are text.
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
    if only_text and remedy is None:
        return None
    if cells[0] == name:
        remedy = f"{place(text[0])} repeats the column names; delete it"
    elif len(text) == 1 and text[0] == 0 and len(column) > 1:
        remedy = (remedy + "; " if remedy else "") + f"if {place(0)} holds units, delete it"
    what = "is not read as numbers" if only_text else "mixes numbers and text"
    raise DataError(
        f"column {quoted(name)} {what}: {len(text):,} cell{'s are' if len(text) > 1 else ' is'} "
        f"not a number, first {quoted(cells[0])} in {place(text[0])}. "
        f"{_sentence(remedy or 'Correct the cell, or leave it empty')}; or leave the column out: "
        f"--drop {_shell(name)}."
    )


def to_number(cell, reading=PLAIN):
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


def _stripped(cell, reading):
    cell = cell.strip().replace("\N{MINUS SIGN}", "-")
    for text in reading.strip:
        if len(text) == 1 and text in " .,'’":
            # Between thousands only: a date such as 03.05.2021 is no number.
            mark = r"\s" if text == " " else re.escape(text)
            cell = re.sub(rf"(?<=\d){mark}(?=\d{{3}}(\D|$))", "", cell)
        else:
            cell = cell.replace(text, "").strip()
    return cell


def _remedy(cells, reading, only_text, may_name):
    """Return what to pass so that these cells are read, None where nothing is known."""
    words, cells = list(dict.fromkeys(cells)), [_stripped(cell, reading) for cell in cells]

    def all_match(*patterns):
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
    parts = [_AFFIXED.fullmatch(cell) for cell in cells]
    if all(parts):
        affixes = {text.strip() for part in parts for text in part.groups()} - {""}
        named = only_text and any(
            len(text) > 8 or (may_name and text.isalpha()) for text in affixes
        )
        if 1 <= len(affixes) <= 2 and not named:
            options = " ".join(f"--strip {_shell(text)}" for text in sorted(affixes))
            missing = f", or --na {_shell(cells[0])} if it is missing" if "<" in affixes else ""
            return f"Pass {options} to read cells such as {quoted(cells[0])}{missing}"
    if not only_text and len(words) <= 5 and all(_WORD.fullmatch(word) for word in words):
        options = " ".join(f"--na {_shell(word)}" for word in words)
        return f"Pass {options} if this stands for a missing value"
    return None


def _sentence(text):
    return text[0].upper() + text[1:]


def _shell(text):
    """Write a text as one word of a command line, in one printable line."""
    text = quoted(text)[1:-1]
    if re.fullmatch(r"[\w.,:/@+%-]+", text):
        return text
    return f'"{text}"' if "'" in text else f"'{text}'"


def as_text(column):
    """Return the cells of a column as text, empty where they are missing."""
    missing = column.isna()
    return np.array(
        ["" if gone else _text(cell) for cell, gone in zip(column, missing, strict=True)]
    )


def _text(cell):
    """Return a cell as a person wrote it: pandas reads whole numbers beside gaps as 1.0."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def position_of(called, name, option):
    """Return which column has a name; an option asked for it."""
    positions = [j for j, other in enumerate(called) if other == name]
    if not positions:
        raise DataError(f"no column {quoted(name)} for {option}; there are {listed(called)}.")
    if len(positions) > 1:
        raise DataError(f"{len(positions)} columns are called {quoted(name)}: rename one.")
    return positions[0]


def positions_of(called, names, option):
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
