"""From cells to a numeric matrix; Parquet and H5AD files.

For cells that are no numbers an error names the option that reads them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mnpca._typing import FloatArray, PathLike
from mnpca.io._table import DataError, Reading, Table, check_matrix, check_shape, listed, quoted

PLAIN = Reading()

#: Marks between groups of three digits, and the shapes of numbers that Python does not read.
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_POINTS_AND_COMMA = re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?")
_SPACED = re.compile(r"[-+]?\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d*)?")
_AFFIXED = re.compile(r"([^\w\s.,'+-]*)\s*[-+]?\d[\d.,'’\u00a0\u202f]*(?:[eE][-+]?\d+)?\s*(\D*)")
#: A word for a missing value, short and without digits, or an error of a spreadsheet.
_WORD = re.compile(r"\D{1,12}|#[A-Z0-9/]+[!?]?")


def numbers_of(
    column: Any, name: str, reading: Reading, place: Callable[[int], str], *, may_name: bool = False
) -> FloatArray | None:
    """Return the numbers of a column, or None for a column of text.

    A column with numbers *and* text is an error: leaving it out would lose data, and reading the
    text as missing would lose data, too. So is a column of text that an option turns into numbers.

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


def to_number(cell: Any, reading: Reading = PLAIN) -> float:
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
            cell = re.sub(rf"(?<=\d){mark}(?=\d{{3}}(\D|$))", "", cell)
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
    parts = [part for part in map(_AFFIXED.fullmatch, cells) if part]
    if len(parts) == len(cells):
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

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns by position; `names` holds what they are called.
    names : list of str or None
        Column names, None where the file has none.
    row_names : list of str or None
        Row names known already; otherwise a first column of text holds them.
    reading : Reading
        What the person asked for.
    row_numbers : ndarray of int or None
        Where the rows stand in the file.
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
    numbers, left_out = [], []
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
    if not numbers:
        raise DataError(
            "not a matrix: no column holds numbers (in text files, commas, semicolons, tabs or "
            "spaces separate the columns)."
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


def read_parquet(path: PathLike, reading: Reading) -> Table:
    """Read a Parquet file; a stored text index gives the row names."""
    try:
        import pandas as pd
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            "Parquet files need the package pyarrow: pip install 'mnpca[parquet]'."
        ) from error
    metadata = pq.ParquetFile(path).metadata
    check_shape(metadata.num_rows, metadata.num_columns)
    frame = pd.read_parquet(path)
    if reading.na:
        frame = frame.replace([*reading.na, *_as_numbers(reading.na)], np.nan)
    row_names = None
    if not isinstance(frame.index, pd.RangeIndex):
        row_names = [str(name) for name in frame.index]
    return table_from_frame(frame, [str(name) for name in frame.columns], row_names, reading)


def _as_numbers(texts: Iterable[str]) -> list[float]:
    """Return those of some texts that are numbers as numbers."""
    return [number for number in (to_number(text) for text in texts) if number == number]


def read_h5ad(path: PathLike, reading: Reading) -> Table:
    """Read X of an AnnData file with the names of its observations and variables."""
    try:
        import anndata
    except ImportError as error:
        raise DataError(
            "H5AD files need the package anndata: pip install 'mnpca[anndata]'."
        ) from error
    reading.only_names("H5AD files")
    labels = reading.labels
    backed = anndata.read_h5ad(path, backed="r")
    try:
        check_shape(*backed.shape)
        if backed.X is None:
            raise DataError("the AnnData object has no X.")
        observations = backed.obs
        if labels is not None and labels not in observations:
            raise DataError(
                f"no column {quoted(labels)} in obs for --labels; there are "
                f"{listed(observations.columns) or 'none'}."
            )
        values = backed.X[:]
        values = values.toarray() if hasattr(values, "toarray") else values
        return Table(
            check_matrix(values),
            row_names=[str(name) for name in backed.obs_names],
            column_names=[str(name) for name in backed.var_names],
            labels=None if labels is None else as_text(observations[labels]),
            label_name=labels,
        )
    finally:
        backed.file.close()
