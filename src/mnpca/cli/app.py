"""The commands put together."""

from typing import Annotated

import typer

from mnpca import __version__
from mnpca.cli._errors import speak_up
from mnpca.cli.demo import demo
from mnpca.cli.fit import fit
from mnpca.cli.report import report
from mnpca.cli.transform import transform

app = typer.Typer(
    name="mnpca",
    help="PCA for correlated noise: a low-rank signal and two noise networks from one matrix.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the lines of a docstring's paragraph are joined
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (fit, transform, report, demo):
    app.command()(speak_up(command))


def _print_version(wanted: bool):
    if wanted:
        typer.echo(f"mnpca {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
):
    """Split a matrix into a low-rank signal and correlated noise."""
