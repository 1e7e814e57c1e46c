"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer


def flag(name, *, help):
    """Return a switch; without a metavar some versions of typer show it as taking a value."""
    return typer.Option(name, metavar="", help=help)


Json = Annotated[bool, flag("--json", help="Print the summary as JSON, for programs; no progress.")]
Debug = Annotated[bool, flag("--debug", help="Show a traceback if something fails.")]
Transpose = Annotated[
    bool, flag("--transpose", help="The file has features in rows and samples in columns.")
]
Overwrite = Annotated[bool, flag("--overwrite", help="Replace an output folder that mnpca wrote.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="OUT", help="Folder for the results.", show_default=False
    ),
]
