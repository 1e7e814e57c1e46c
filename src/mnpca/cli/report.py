"""``mnpca report``: the report of an earlier fit, rendered again."""

from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import Debug, Json, flag


def report(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder that mnpca fit wrote.", show_default=False),
    ],
    show: Annotated[bool, flag("--open", help="Open it in the browser.")] = False,
    json: Json = False,
    debug: Debug = False,
):
    """Write report.html again in a folder of results, for instance with a newer version."""
    from mnpca.cli._export import CONTENT_FILE, REPORT_FILE
    from mnpca.cli._summary import print_json
    from mnpca.io import DataError, quoted
    from mnpca.report import load_content, render, write_text

    content = out / CONTENT_FILE
    if not content.is_file():
        raise DataError(
            f"{quoted(out, 200)} is not a folder that mnpca fit wrote: no {CONTENT_FILE}."
        )
    try:
        html = render(load_content(content))
    except Exception as error:
        raise DataError(
            f"{quoted(content, 200)} is damaged or from another version; fit again."
        ) from error
    path = out / REPORT_FILE
    write_text(path, html)
    if json:
        print_json({"report": str(path)})
    else:
        typer.echo(f"Report in {path}")
    if show:
        typer.launch(str(path))
