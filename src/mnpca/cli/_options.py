"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Algorithm(StrEnum):
    """The estimators by the command line's names."""

    mnpca = "mnpca"
    likelihood = "likelihood"
    wasserstein = "wasserstein"


def flag(name, *, help, **panel):
    """Return a switch; without a metavar some versions of typer show it as taking a value."""
    return typer.Option(name, metavar="", help=help, **panel)


def value(*names, metavar, help, **panel):
    """Return an option that takes a value and has no default to show."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, **panel)


_READING = {"rich_help_panel": "How to read the file"}

Json = Annotated[bool, flag("--json", help="Print the summary as JSON, for programs; no progress.")]
Debug = Annotated[bool, flag("--debug", help="Show a traceback if something fails.")]
Overwrite = Annotated[bool, flag("--overwrite", help="Replace what an earlier run wrote.")]
Output = Annotated[
    Path | None, value("--output", "-o", metavar="OUT", help="Folder for the results.")
]
RowCovariates = Annotated[
    Path | None,
    value("--row-covariates", metavar="FILE", help="Table of known covariates of the rows."),
]
Transpose = Annotated[
    bool,
    flag("--transpose", help="The file has features in rows and samples in columns.", **_READING),
]
Index = Annotated[
    str | None, value("--index", metavar="COLUMN", help="Column that names the rows.", **_READING)
]
Drop = Annotated[
    list[str] | None,
    value("--drop", metavar="COLUMN", help="Leave a column out; may be repeated.", **_READING),
]
Decimal = Annotated[
    str, typer.Option("--decimal", metavar="MARK", help="Decimal mark, . or ,", **_READING)
]
Strip = Annotated[
    list[str] | None,
    value(
        "--strip",
        metavar="TEXT",
        help="Remove a text from cells: %, a unit, the mark of thousands; may be repeated.",
        **_READING,
    ),
]
Na = Annotated[
    list[str] | None,
    value("--na", metavar="TEXT", help="Cells that stand for a missing value.", **_READING),
]
Encoding = Annotated[
    str | None,
    value("--encoding", metavar="NAME", help="Encoding; the usual ones are seen.", **_READING),
]
