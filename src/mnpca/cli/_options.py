"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON, for programs; no progress.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback if something fails.")]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="The file has features in rows and samples in columns.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an output folder that mnpca wrote.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for the results.", show_default=False)
]
