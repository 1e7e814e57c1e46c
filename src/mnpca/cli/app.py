"""The commands and their options. The work is done in a file for each command."""

import functools
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from mnpca import __version__

app = typer.Typer(
    name="mnpca",
    help="PCA for correlated noise: a low-rank signal and two noise networks from one matrix.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the lines of a docstring's paragraph are joined
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Interrupted(Exception):
    """Ctrl-C during a command; typer itself would exit without a message."""


def command(function):
    """Add a command, which raises `Interrupted` where Python raises KeyboardInterrupt."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise Interrupted from interrupt

    return app.command()(wrapped)


class Algorithm(StrEnum):
    """The estimators by the command line's names."""

    mnpca = "mnpca"
    likelihood = "likelihood"
    wasserstein = "wasserstein"


def argument(kind: Any, metavar, help):
    """Return the type of an argument without a default to show."""
    return Annotated[kind, typer.Argument(metavar=metavar, help=help, show_default=False)]


def flag(name, help, **more):
    """Return the type of a switch; some versions of typer show one without metavar as a value."""
    return Annotated[bool, typer.Option(name, metavar="", help=help, **more)]


def value(kind: Any, names, help, *, default=False, **more):
    """Return the type of an option: its names and what it takes, as they are typed.

    `default` shows the option's default in the help.
    """
    *names, metavar = names.split()
    option = typer.Option(*names, metavar=metavar, help=help, show_default=default, **more)
    return Annotated[kind if default else kind | None, option]


READING = {"rich_help_panel": "How to read the file"}

Json = flag("--json", "Print the summary as JSON, for programs; no progress.")
Debug = flag("--debug", "Show a traceback if something fails.")
Overwrite = flag("--overwrite", "Replace what an earlier run wrote.")
RowCovariates = value(Path, "--row-covariates FILE", "Table of known covariates of the rows.")
Index = value(str, "--index COLUMN", "Column that names the rows.", **READING)
Drop = value(list[str], "--drop COLUMN", "Leave a column out; may be repeated.", **READING)
Decimal = value(str, "--decimal MARK", "Decimal mark, . or ,", default=True, **READING)
Strip = value(
    list[str],
    "--strip TEXT",
    "Remove a text from cells: %, a unit, the mark of thousands; may be repeated.",
    **READING,
)
Na = value(list[str], "--na TEXT", "Cells that stand for a missing value.", **READING)
Encoding = value(str, "--encoding NAME", "Encoding; the usual ones are seen.", **READING)
Transpose = flag("--transpose", "The file has features in rows and samples in columns.", **READING)


def _print_version(wanted: bool):
    if wanted:
        typer.echo(f"mnpca {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: flag("--version", "Show the version.", callback=_print_version, is_eager=True) = False,
):
    """Split a matrix into a low-rank signal and correlated noise."""


@command
def fit(
    data: argument(Path, "DATA", "CSV, TSV, XLSX, Parquet, NPY, NPZ, MTX or H5AD file, also .gz."),
    n_components: value(
        str,
        "--components -k N",
        "Number of components, or 'auto'; 0.9 keeps 90% of the signal's squares.",
        default=True,
    ) = "auto",
    algorithm: value(
        Algorithm,
        "--algorithm NAME",
        "MNPCA, or the paper's 'likelihood' or 'wasserstein'.",
        default=True,
    ) = Algorithm.mnpca,
    noise: value(
        str,
        "--noise KIND",
        "'auto', 'graph', 'diagonal' or 'identity'; two with a comma for rows, columns.",
    ) = None,
    prior: value(
        str,
        "--prior KIND",
        "What scores and loadings are drawn from: 'auto', 'gaussian' or 'mixture'.",
    ) = None,
    robust: flag("--robust", "Leave single outlying entries out.") = False,
    fdr: value(
        float, "--fdr RATE", "False discovery rate of the edges that are listed.", default=True
    ) = 0.05,
    seed: value(int, "--seed N", "Seed of the random start.", default=True) = 0,
    scale: flag("--scale", "Scale columns to unit variance for the fit.") = False,
    drop_constant: flag("--drop-constant", "Leave constant columns out.") = False,
    row_covariates: RowCovariates = None,
    col_covariates: value(
        Path,
        "--col-covariates --column-covariates FILE",
        "Table of known covariates of the columns.",
    ) = None,
    labels: value(
        str, "--labels COLUMN", "Column with a label per row: shown, not analyzed.", **READING
    ) = None,
    column_labels: value(
        Path,
        "--column-labels FILE",
        "Table of two columns, name and label of a column: colors of their network.",
    ) = None,
    index: Index = None,
    columns: value(list[str], "--columns COLUMN", "Use these columns only.", **READING) = None,
    drop: Drop = None,
    decimal: Decimal = ".",
    strip: Strip = None,
    na: Na = None,
    encoding: Encoding = None,
    transpose: Transpose = False,
    output: value(Path, "--output -o OUT", "Folder for the results.") = None,
    overwrite: Overwrite = False,
    graphml: flag("--graphml", "Also write the networks as GraphML.") = False,
    checkpoint: value(
        Path, "--checkpoint FILE", "Keep the state of a long fit in this file."
    ) = None,
    resume: flag("--resume", "Go on from the checkpoint, where it exists.") = False,
    json: Json = False,
    debug: Debug = False,
):
    """Split a matrix into a low-rank signal and two noise networks.

    Writes scores.csv, components.csv, row_graph.csv, col_graph.csv, model.mnpca and report.html
    into one folder (by default NAME-mnpca). Empty cells count as missing; the completed matrix
    and its standard errors are then in completed.csv and completed_std.csv.
    """
    options = SimpleNamespace(**locals())
    from mnpca.cli.fit import fit_file

    fit_file(options)


@command
def transform(
    model: argument(Path, "MODEL", "Model file, or the folder that fit wrote."),
    new: argument(Path, "NEW", "Data file with the same columns."),
    output: value(
        Path, "--output -o FILE", "CSV file for the scores; by default NAME-scores.csv."
    ) = None,
    overwrite: Overwrite = False,
    row_covariates: RowCovariates = None,
    index: Index = None,
    drop: Drop = None,
    decimal: Decimal = ".",
    strip: Strip = None,
    na: Na = None,
    encoding: Encoding = None,
    transpose: Transpose = False,
    json: Json = False,
    debug: Debug = False,
):
    """Project new rows on the components of a fitted model.

    Columns are matched by name where the model has names; others in the file are left out.
    """
    options = SimpleNamespace(**locals())
    from mnpca.cli.transform import transform_file

    transform_file(options)


@command
def report(
    out: argument(Path, "OUT", "Folder that mnpca fit wrote."),
    other: argument(Path | None, "[OTHER]", "Another one, to compare.") = None,
    show: flag("--open", "Open it in the browser.") = False,
    json: Json = False,
    debug: Debug = False,
):
    """Write report.html again, for instance with a newer version.

    With two folders, write comparison.html into the second: which components and edges the fits
    share, and which are gained and lost from the first to the second.
    """
    from mnpca.cli.report import write_again

    path = write_again(out, other, json=json)
    if show:
        typer.launch(str(path))


@command
def demo(
    output: value(
        Path,
        "--output -o OUT",
        "Folder for the results; those of an earlier demo are replaced.",
        default=True,
    ) = Path("mnpca-demo"),
    json: Json = False,
    debug: Debug = False,
):
    """Fit the paper's small data and handwritten digits, and write their reports.

    300 rows in three groups and 200 columns, in noise correlated along two sparse networks with
    condition number 224. Beside them, in the folder digits, images of handwritten digits: the
    network of their pixels is the grid of the image, which the table does not hold.
    """
    from mnpca.cli.demo import fit_demo

    fit_demo(output, json=json)
