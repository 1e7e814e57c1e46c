"""What a data file becomes: a numeric matrix with names, made of cells, within limits."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.io._messages import DataError, listed, quoted, remedy, shell_word

#: A dense matrix of this many numbers takes 2 GB; a fit needs several copies of it.
MAX_CELLS = 250_000_000
#: A noise network is searched among all pairs of columns (and of rows).
MAX_COLUMNS = 50_000
#: Headers under which other programs write the row names.
_INDEX_NAMES = {"", "unnamed: 0", "index", "id", "rownames", "row_names", "row.names"}
#: What stands for a missing value, beside nan, in a first line that is no header.
_MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None"}


@dataclass(frozen=True)
class Reading:
    """What a person says about a file; `read_table` explains each."""

    labels: str | None = None
    index: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    decimal: str = "."
    strip: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    encoding: str | None = None
    categories: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise DataError(f"--decimal must be a point or a comma, got {quoted(self.decimal)}.")
        if "" in self.strip:
            raise DataError("--strip needs a text to remove from cells, such as %.")

    def refuse(self, kind: str, *, labels: bool = False) -> None:
        """Refuse options that only tables of cells have, and `labels` where there are no names."""
        for option in ("index", "columns", "drop", "strip", "na", "encoding", "categories"):
            if getattr(self, option):
                raise DataError(f"--{option} is for tables with named columns, not for {kind}.")
        if labels and self.labels is not None:
            raise DataError(f"{kind} has no named columns, so --labels cannot be used with it.")


@dataclass(frozen=True)
class Table:
    """A numeric matrix with the names that came with it.

    Attributes
    ----------
    values : ndarray of shape (n, p)
        The numbers, float64; NaN where the file has none.
    row_names, column_names : list of str or None
        Names as they stand in the file, repeated ones too.
    labels : ndarray of str or None
        The column asked for as labels, one per row; it is not among the values.
    label_name : str or None
        Name of that column.
    notes : tuple of str
        What a person should know about how the file was read.
    row_numbers : ndarray of int or None
        Where each row stands in the file, counted from 1 as editors and spreadsheets do.

    Examples
    --------
    >>> import numpy as np
    >>> from mnpca.io import Table
    >>> Table(np.ones((2, 3)), column_names=["a", "b", "c"]).transposed().row_names
    ['a', 'b', 'c']
    """

    values: np.ndarray
    row_names: list[str] | None = None
    column_names: list[str] | None = None
    labels: np.ndarray | None = None
    label_name: str | None = None
    notes: tuple[str, ...] = ()
    row_numbers: np.ndarray | None = None

    def transposed(self) -> "Table":
        """Swap rows and columns; labels belong to rows and cannot follow."""
        if self.labels is not None:
            raise DataError(
                "--labels names a column of labels, one per row, and cannot be used together "
                "with --transpose; transpose the file first."
            )
        values = np.ascontiguousarray(self.values.T)
        return Table(values, self.column_names, self.row_names, notes=self.notes)

    def with_distinct_columns(self) -> "Table":
        """Give repeated column names a number: data frames and estimators refuse repetitions."""
        names = self.column_names
        if names is None or len(set(names)) == len(names):
            return self
        taken, distinct = set(names), []
        numbers: dict[str, Iterator[int]] = {}
        for name in names:
            new = name
            if name in numbers:
                new = next(n for k in numbers[name] if (n := f"{name}.{k}") not in taken)
            numbers.setdefault(name, itertools.count(2))
            distinct.append(new)
        repeated = listed(
            sorted({old for old, new in zip(names, distinct, strict=True) if old != new})
        )
        note = f"column names that repeat were numbered: {repeated}"
        return replace(self, column_names=distinct, notes=(*self.notes, note))

    def frame(self) -> Any:
        """Return the values as a pandas DataFrame, names as index and columns where known."""
        import pandas as pd

        return pd.DataFrame(self.values, index=self.row_names, columns=self.column_names)

    def row_name(self, i: int) -> str:
        """Name of a row, or its number counted from 1."""
        return self.row_names[i] if self.row_names is not None else str(i + 1)

    def row_place(self, i: int) -> str:
        """Where a row is found in the file, with its name where it has one."""
        number = i + 1 if self.row_numbers is None else self.row_numbers[i]
        name = "" if self.row_names is None else f" ({quoted(self.row_names[i])})"
        return f"row {number}{name}"

    def column_name(self, j: int) -> str:
        """Name of a column, or its number counted from 1."""
        return self.column_names[j] if self.column_names is not None else str(j + 1)


def check_shape(*shape: int) -> None:
    """Refuse what is no matrix, or one that would not fit, before any of it is read."""
    if len(shape) != 2:
        raise DataError(f"not a matrix: the array has {len(shape)} dimensions, not 2.")
    n_rows, n_columns = shape
    if max(n_rows, 0) * max(n_columns, 0) > MAX_CELLS:
        raise DataError(
            f"the matrix is {n_rows} x {n_columns}; the command line takes at most "
            f"{MAX_CELLS:,} numbers. Use the Python interface with a Dask array for more."
        )
    if n_columns > MAX_COLUMNS:
        raise DataError(
            f"the table has {n_columns:,} columns; at most {MAX_COLUMNS:,} can be used, because "
            "the noise network compares all pairs. Select the columns that matter (for instance "
            "the most variable ones) first."
        )


def check_matrix(values: Any) -> FloatArray:
    """Return a two-dimensional real array as float64, or say what it is instead."""
    values = np.asarray(values)
    check_shape(*values.shape)
    if values.dtype.kind not in "fiub":
        raise DataError(f"not a matrix of real numbers: the array holds {values.dtype}.")
    return np.ascontiguousarray(values, dtype=np.float64)


def exact_numbers(pandas: Any) -> dict[str, Any]:
    """Return the options with which pandas reads numbers to the last digit.

    Before version 3.1 its default parser reads exponents like 1e4294967000 as wrong numbers, or
    ends the process; from then on it has one parser only.
    """
    version = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def is_data(cells: list[str], reading: Reading) -> bool:
    """Tell whether a first line is one of the table, and not its header.

    A line that counts the columns, from 0 (as pandas writes them) or from 1, is a header.
    """
    present = [cell for cell in cells if cell not in _MISSING and cell not in reading.na]
    numbers = [str(number) for number in range(len(cells) + 1)]
    counts = len(cells) > 2 and cells in (numbers[:-1], numbers[1:])
    return bool(cells[0] and present and not counts) and all(
        cell.lower() in ("nan", "-nan", "+nan") or not np.isnan(to_number(cell, reading))
        for cell in present
    )


def to_number(cell: Any, reading: Reading) -> float:
    """Return a cell as a number, NaN where it is none; pandas' own conversion can crash."""
    if isinstance(cell, str):
        cell = _without_marks(cell, reading)
        if reading.decimal == ",":
            cell = "x" if "." in cell else cell.replace(",", ".")
        if "_" in cell:  # Python reads 1_000
            return np.nan
    try:
        return float(cell) if isinstance(cell, str | Real | Decimal) else np.nan
    except (ValueError, OverflowError):
        return np.nan


def _without_marks(cell: str, reading: Reading) -> str:
    """Return a cell without the texts to strip, and with Python's minus sign."""
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


def width_of(cells: list[str]) -> int:
    """Return the number of cells without empty ones at the end."""
    return max((j + 1 for j, cell in enumerate(cells) if cell), default=0)


def check_header(header: list[str], width: int) -> None:
    """Refuse a first line that does not name the columns; R leaves out one name."""
    if len(header) < width - 1 or width_of(header) == 1 < width - 1:
        raise DataError(
            f"not a table: the first line has {width_of(header)} cells, those below {width}. "
            "Delete what stands above the column names, or name every column."
        )


def table_from_cells(frame: Any, header: list[str] | None, reading: Reading) -> Table:
    """Make a table of cells whose index holds row numbers; rows without any cell are left out.

    The first column holds the row names if it is text, or if the header calls it nothing (as pandas
    and R write it). Empty columns without a name at the end, of a separator after the last cell,
    are left out.
    """
    notes = ["no header: the first line is data"] if header is None else []
    empty = frame.index[frame.isna().all(axis=1)]
    frame = frame.drop(index=empty)
    if frame.empty:
        raise DataError("the table has a header and no rows.")
    inside = empty[empty < frame.index[-1]]
    if len(inside):
        rows = f"{len(inside)} empty row{'s' * (len(inside) > 1)}"
        notes.append(f"{rows} left out, first row {inside[0]} of the file")
    width, row_names = frame.shape[1], None
    names = header or []
    while width > 1 and not "".join(names[width - 1 :]) and frame.iloc[:, width - 1].isna().all():
        width -= 1
    frame = frame.iloc[:, :width]
    if header is not None:
        header = header[: max(width, width_of(header))]
        if width == len(header) + 1:  # R leaves out the header of the row names
            header = ["", *header]
        check_header(header, width)
        if width != len(header):
            raise DataError(
                f"not a table: there are {len(header)} column names, and the first row has "
                f"{width} cells. Give every row the same number of cells."
            )
        apart = reading.index is not None or reading.labels == header[0]
        if header[0].lower() in _INDEX_NAMES and not apart and width > 1:
            row_names = ["" if name != name else str(name) for name in frame.iloc[:, 0]]
            frame, header = frame.iloc[:, 1:], header[1:]
    table = table_from_frame(frame, header, row_names, reading, frame.index.to_numpy())
    return replace(table, notes=(*notes, *table.notes))


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
        apart.add(j := _one_position(called, reading.labels, "--labels"))
        labels = as_text(frame.iloc[:, j])
    if reading.index is not None:
        apart.add(j := _one_position(called, reading.index, "--index"))
        row_names = as_text(frame.iloc[:, j]).tolist()
    columns = [j for j in range(frame.shape[1]) if j not in apart]
    chosen = set(_positions(called, reading.columns, "--columns") or columns)
    chosen -= set(_positions(called, reading.drop, "--drop"))
    table = Table(np.empty((len(frame), 0)), row_names, row_numbers=row_numbers)
    numbers: list[tuple[str, FloatArray]] = []
    left_out = []
    for j in columns:
        may_name = table.row_names is None and j == columns[0]
        if j not in chosen and not may_name:
            continue
        try:
            column = _numbers_of(frame.iloc[:, j], called[j], reading, table.row_place, may_name)
        except DataError:
            if j in chosen:
                raise
            continue
        if column is None and may_name:
            table = replace(table, row_names=as_text(frame.iloc[:, j]).tolist())
        elif column is not None and j in chosen:
            numbers.append((called[j], column))
        elif j in chosen and reading.categories:  # indicators of every text but the first
            texts = as_text(frame.iloc[:, j])
            numbers += [(f"{called[j]}={t}", (texts == t) * 1.0) for t in np.unique(texts)[1:]]
        elif j in chosen:
            left_out.append(j)
    without = [called[j] for j in left_out]
    if not numbers:
        example = ""
        if left_out:
            begins = as_text(frame.iloc[:1, left_out[0]])[0]
            example = f": {quoted(without[0])} begins with {quoted(begins)}"
        raise DataError(
            f"not a matrix: no column holds numbers{example}. Write plain numbers, and separate "
            "the columns by commas, semicolons, tabs or spaces."
        )
    note = f"{len(without)} column{'s' * (len(without) > 1)} without numbers left out: "
    return replace(
        table,
        values=np.column_stack([column for _, column in numbers]),
        column_names=[name for name, _ in numbers] if names is not None else None,
        labels=labels,
        label_name=reading.labels,
        notes=(note + listed(without),) if without else (),
    )


def _positions(called: list[str], names: tuple[str, ...], option: str) -> list[int]:
    """Return the columns that an option names, one by one or several with commas between."""
    chosen = []
    for name in names:
        for part in [name] if name in called else map(str.strip, name.split(",")):
            found = [j for j, other in enumerate(called) if other == part]
            if not found:
                raise DataError(
                    f"no column {quoted(part)} for {option}; there are {listed(called)}."
                )
            chosen += found
    return chosen


def _one_position(called: list[str], name: str, option: str) -> int:
    """Return the one column that an option names."""
    positions = _positions(called, (name,), option)
    if len(positions) > 1:
        raise DataError(f"{len(positions)} columns are called {quoted(name)}: rename one.")
    return positions[0]


def as_text(column: Any) -> Any:
    """Return the cells of a column as text, empty where they are missing.

    pandas reads whole numbers beside missing ones as 1.0; a person wrote 1.
    """
    whole = [int(c) if isinstance(c, float) and c.is_integer() else c for c in column]
    return np.array(["" if gone else str(c) for c, gone in zip(whole, column.isna(), strict=True)])


def _numbers_of(
    column: Any, name: str, reading: Reading, place: Callable[[int], str], may_name: bool
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
    present = column.notna().to_numpy()
    numbers = np.array([to_number(cell, reading) for cell in column], dtype=np.float64)
    text = np.flatnonzero(present & np.isnan(numbers))
    if not len(text):
        return numbers
    cells = [str(column.iloc[i]).strip() for i in text]
    only_text = len(text) == present.sum()
    bare = {cell: _without_marks(cell, reading) for cell in cells}
    advice = remedy(bare, reading.decimal, only_text=only_text, may_name=may_name)
    if only_text and advice is None:
        return None
    alone = len(text) == 1 and len(column) > 1
    if cells[0] == name:
        advice = f"{place(text[0])} repeats the column names; delete it"
    elif alone and text[0] == 0:
        advice = (advice + "; " if advice else "") + f"if {place(0)} holds units, delete it"
    elif alone and advice is None and text[0] == len(column) - 1:
        advice = f"Correct the cell; if {place(text[0])} is a note below the table, delete it"
    advice = advice or "Correct the cell, or leave it empty"
    what = "is not read as numbers" if only_text else "mixes numbers and text"
    raise DataError(
        f"column {quoted(name)} {what}: {len(text):,} cell{'s are' if len(text) > 1 else ' is'} "
        f"not a number, first {quoted(cells[0])} in {place(text[0])}. "
        f"{advice[0].upper()}{advice[1:]}; or leave the column out: --drop {shell_word(name)}."
    )
