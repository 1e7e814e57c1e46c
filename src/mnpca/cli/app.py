"""The commands and their options. The work is done in a file for each command."""

import functools
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

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


def argument(metavar, help):
    """Return an argument without a default to show."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def flag(name, help, **panel):
    """Return a switch; without a metavar some versions of typer show it as taking a value."""
    return typer.Option(name, metavar="", help=help, **panel)


def value(*names, help, **panel):
    """Return an option that takes a value, named last, and has no default to show."""
    *names, metavar = names
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, **panel)


READING = {"rich_help_panel": "How to read the file"}

Json = Annotated[bool, flag("--json", "Print the summary as JSON, for programs; no progress.")]
Debug = Annotated[bool, flag("--debug", "Show a traceback if something fails.")]
Overwrite = Annotated[bool, flag("--overwrite", "Replace what an earlier run wrote.")]
RowCovariates = Annotated[
    Path | None, value("--row-covariates", "FILE", help="Table of known covariates of the rows.")
]
Transpose = Annotated[
    bool, flag("--transpose", "The file has features in rows and samples in columns.", **READING)
]
Index = Annotated[
    str | None, value("--index", "COLUMN", help="Column that names the rows.", **READING)
]
Drop = Annotated[
    list[str] | None,
    value("--drop", "COLUMN", help="Leave a column out; may be repeated.", **READING),
]
Decimal = Annotated[
    str, typer.Option("--decimal", metavar="MARK", help="Decimal mark, . or ,", **READING)
]
Strip = Annotated[
    list[str] | None,
    value(
        "--strip",
        "TEXT",
        help="Remove a text from cells: %, a unit, the mark of thousands; may be repeated.",
        **READING,
    ),
]
Na = Annotated[
    list[str] | None,
    value("--na", "TEXT", help="Cells that stand for a missing value.", **READING),
]
Encoding = Annotated[
    str | None, value("--encoding", "NAME", help="Encoding; the usual ones are seen.", **READING)
]


def _print_version(wanted: bool):
    if wanted:
        typer.echo(f"mnpca {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        flag("--version", "Show the version.", callback=_print_version, is_eager=True),
    ] = False,
):
    """Split a matrix into a low-rank signal and correlated noise."""


@command
def fit(
    data: Annotated[
        Path, argument("DATA", "CSV, TSV, XLSX, Parquet, NPY, NPZ, MTX or H5AD file, also .gz.")
    ],
    n_components: Annotated[
        str,
        typer.Option("--components", "-k", metavar="N", help="Number of components, or 'auto'."),
    ] = "auto",
    algorithm: Annotated[
        Algorithm,
        typer.Option(metavar="NAME", help="MNPCA, or the paper's 'likelihood' or 'wasserstein'."),
    ] = Algorithm.mnpca,
    noise: Annotated[
        str | None,
        value(
            "--noise",
            "KIND",
            help="'auto', 'graph', 'diagonal' or 'identity'; two with a comma for rows, columns.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        value(
            "--prior",
            "KIND",
            help="What scores and loadings are drawn from: 'auto', 'gaussian' or 'mixture'.",
        ),
    ] = None,
    robust: Annotated[bool, flag("--robust", "Leave single outlying entries out.")] = False,
    fdr: Annotated[
        float,
        typer.Option(metavar="RATE", help="False discovery rate of the edges that are listed."),
    ] = 0.05,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random start.")] = 0,
    scale: Annotated[bool, flag("--scale", "Scale columns to unit variance for the fit.")] = False,
    drop_constant: Annotated[bool, flag("--drop-constant", "Leave constant columns out.")] = False,
    row_covariates: RowCovariates = None,
    col_covariates: Annotated[
        Path | None,
        value(
            "--col-covariates",
            "--column-covariates",
            "FILE",
            help="Table of known covariates of the columns.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        value(
            "--labels",
            "COLUMN",
            help="Column with a label per row: shown, not analyzed.",
            **READING,
        ),
    ] = None,
    column_labels: Annotated[
        Path | None,
        value(
            "--column-labels",
            "FILE",
            help="Table of two columns, name and label of a column: colors of their network.",
        ),
    ] = None,
    index: Index = None,
    columns: Annotated[
        list[str] | None, value("--columns", "COLUMN", help="Use these columns only.", **READING)
    ] = None,
    drop: Drop = None,
    decimal: Decimal = ".",
    strip: Strip = None,
    na: Na = None,
    encoding: Encoding = None,
    transpose: Transpose = False,
    output: Annotated[
        Path | None, value("--output", "-o", "OUT", help="Folder for the results.")
    ] = None,
    overwrite: Overwrite = False,
    graphml: Annotated[bool, flag("--graphml", "Also write the networks as GraphML.")] = False,
    checkpoint: Annotated[
        Path | None,
        value("--checkpoint", "FILE", help="Keep the state of a long fit in this file."),
    ] = None,
    resume: Annotated[
        bool, flag("--resume", "Go on from the checkpoint, where it exists.")
    ] = False,
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
    model: Annotated[Path, argument("MODEL", "Model file, or the folder that fit wrote.")],
    new: Annotated[Path, argument("NEW", "Data file with the same columns.")],
    output: Annotated[
        Path | None,
        value(
            "--output", "-o", "FILE", help="CSV file for the scores; by default NAME-scores.csv."
        ),
    ] = None,
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
    out: Annotated[Path, argument("OUT", "Folder that mnpca fit wrote.")],
    other: Annotated[Path | None, argument("[OTHER]", "Another one, to compare.")] = None,
    show: Annotated[bool, flag("--open", "Open it in the browser.")] = False,
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
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="Folder for the results; those of an earlier demo are replaced.",
        ),
    ] = Path("mnpca-demo"),
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
