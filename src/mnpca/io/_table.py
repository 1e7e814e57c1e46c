"""What a data file becomes, and the limits it must respect."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mnpca._typing import FloatArray

#: A dense matrix of this many numbers takes 2 GB; a fit needs several copies of it.
MAX_CELLS = 250_000_000
#: A noise network is searched among all pairs of columns (and of rows).
MAX_COLUMNS = 50_000
MAX_LINE_BYTES = 64 * 2**20
MAX_FILE_BYTES = 4 * 2**30


def exact_numbers(pandas: Any) -> dict[str, Any]:
    """Return the options with which pandas reads numbers to the last digit.

    Before version 3.1 its default parser reads exponents like 1e4294967000 as wrong numbers, or
    ends the process; from then on it has one parser only.
    """
    version = tuple(int(part) for part in pandas.__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


class DataError(ValueError):
    """A data file that cannot be used, in one line that says why and what to do.

    Examples
    --------
    >>> from mnpca.io import DataError, read_table
    >>> try:
    ...     read_table("nowhere.csv")
    ... except DataError as error:
    ...     print(error)
    no such file: 'nowhere.csv'.
    """


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

    def only_names(self, kind: str) -> None:
        """Refuse options that only tables of cells have."""
        for option in ("index", "columns", "drop", "strip", "na", "encoding", "categories"):
            if getattr(self, option):
                raise DataError(f"--{option} is for tables with named columns, not for {kind}.")


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
    notes: tuple[str, ...] = field(default=())
    row_numbers: np.ndarray | None = None

    def transposed(self) -> "Table":
        """Swap rows and columns; labels belong to rows and cannot follow."""
        if self.labels is not None:
            raise DataError(
                "--labels names a column of labels, one per row, and cannot be used together "
                "with --transpose; transpose the file first."
            )
        return replace(
            self,
            values=np.ascontiguousarray(self.values.T),
            row_names=self.column_names,
            column_names=self.row_names,
            row_numbers=None,
        )

    def with_distinct_columns(self) -> "Table":
        """Give repeated column names a number: data frames and estimators refuse repetitions."""
        names = self.column_names
        if names is None or len(set(names)) == len(names):
            return self
        taken, distinct = set(names), []
        seen: Counter[str] = Counter()
        for name in names:
            seen[name] += 1
            new = name
            while seen[name] > 1 and new in taken:
                new = f"{name}.{seen[name]}"
                seen[name] += new in taken
            taken.add(new)
            distinct.append(new)
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        note = f"column names that repeat were numbered: {listed(repeated)}"
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


def check_shape(n_rows: int, n_columns: int) -> None:
    """Refuse a matrix that would not fit, before any of it is read."""
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
    if values.ndim != 2:
        shape = " x ".join(map(str, values.shape)) or "a single value"
        raise DataError(f"not a matrix: the array has {values.ndim} dimensions ({shape}), not 2.")
    if values.dtype.kind not in "fiub":
        raise DataError(f"not a matrix of real numbers: the array holds {values.dtype}.")
    return np.ascontiguousarray(values, dtype=np.float64)


def quoted(name: object, limit: int = 60) -> str:
    r"""Show a name from the data in a message: one line, of bounded length.

    Examples
    --------
    >>> from mnpca.io import quoted
    >>> quoted("two\nlines")
    "'two lines'"
    """
    text = " ".join(str(name).split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return f"'{text[:limit]}...'" if len(text) > limit else f"'{text}'"


def listed(names: Iterable[object], limit: int = 5) -> str:
    """Show the first few names of a list, and how many more there are.

    Examples
    --------
    >>> from mnpca.io import listed
    >>> listed("abc", limit=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(quoted(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
