"""``mnpca report``: the report of an earlier fit, rendered again, or two fits compared."""

from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import Debug, Json, flag

COMPARISON_FILE = "comparison.html"


def report(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="Folder that mnpca fit wrote.", show_default=False),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(metavar="[OTHER]", help="Another one, to compare.", show_default=False),
    ] = None,
    show: Annotated[bool, flag("--open", help="Open it in the browser.")] = False,
    json: Json = False,
    debug: Debug = False,
):
    """Write report.html again, for instance with a newer version.

    With two folders, write comparison.html into the second: which components and edges the fits
    share, and which are gained and lost from the first to the second.
    """
    from mnpca.cli._summary import print_json

    path = _again(out) if other is None else _comparison(out, other)
    if json:
        print_json({"report": str(path)})
    else:
        typer.echo(f"Report in {path}")
    if show:
        typer.launch(str(path))


def _again(out):
    from mnpca.cli._export import CONTENT_FILE, REPORT_FILE
    from mnpca.io import DataError, quoted
    from mnpca.report import load_content, render, write_text

    content = _existing(out, CONTENT_FILE)
    try:
        html = render(load_content(content))
    except Exception as error:
        raise DataError(
            f"{quoted(content, 200)} is damaged or from another version; fit again."
        ) from error
    write_text(out / REPORT_FILE, html)
    return out / REPORT_FILE


def _comparison(first, second):
    from mnpca import load
    from mnpca.cli._export import MODEL_FILE
    from mnpca.report import write_comparison

    models = [load(_existing(folder, MODEL_FILE)) for folder in (first, second)]
    write_comparison(*models, second / COMPARISON_FILE, names=(first.name, second.name))
    return second / COMPARISON_FILE


def _existing(folder, name):
    """Return a file of a folder of results, or say that it is none."""
    from mnpca.io import DataError, quoted

    if not (folder / name).is_file():
        raise DataError(f"{quoted(folder, 200)} is not a folder that mnpca fit wrote: no {name}.")
    return folder / name
