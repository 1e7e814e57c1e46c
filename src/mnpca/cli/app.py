"""The commands: their options, and what they print. The work is done in a file for each."""

import contextlib
import functools
import json as json_format
import math
import time
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

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


class Algorithm(StrEnum):
    """The estimators by the command line's names."""

    mnpca = "mnpca"
    likelihood = "likelihood"
    wasserstein = "wasserstein"


# What is fitted.
Rank = value(
    str,
    "--components -k N",
    "Number of components, or 'auto'; 0.9 keeps 90% of the signal's squares.",
    default=True,
)
Method = value(
    Algorithm,
    "--algorithm NAME",
    "MNPCA, or the paper's 'likelihood' or 'wasserstein'.",
    default=True,
)
Noise = value(
    str,
    "--noise KIND",
    "'auto', 'graph', 'diagonal' or 'identity'; two with a comma for rows, columns.",
)
Prior = value(
    str, "--prior KIND", "What scores and loadings are drawn from: 'auto', 'gaussian' or 'mixture'."
)
Robust = flag("--robust", "Leave single outlying entries out.")
Rate = value(
    float, "--fdr RATE", "False discovery rate of the edges that are listed.", default=True
)
Seed = value(int, "--seed N", "Seed of the random start.", default=True)
Scale = flag("--scale", "Scale columns to unit variance for the fit.")
DropConstant = flag("--drop-constant", "Leave constant columns out.")
RowCovariates = value(Path, "--row-covariates FILE", "Table of known covariates of the rows.")
ColCovariates = value(
    Path, "--col-covariates --column-covariates FILE", "Table of known covariates of the columns."
)
ColumnLabels = value(
    Path,
    "--column-labels FILE",
    "Table of two columns, name and label of a column: colors of their network.",
)
Checkpoint = value(Path, "--checkpoint FILE", "Keep the state of a long fit in this file.")
Resume = flag("--resume", "Continue from the checkpoint, if there is one.")

# How the file is read.
READING = {"rich_help_panel": "How to read the file"}
Labels = value(
    str, "--labels COLUMN", "Column with a label per row: shown, not analyzed.", **READING
)
Index = value(str, "--index COLUMN", "Column that names the rows.", **READING)
Columns = value(list[str], "--columns COLUMN", "Use these columns only.", **READING)
Drop = value(list[str], "--drop COLUMN", "Leave a column out; may be repeated.", **READING)
Decimal = value(str, "--decimal MARK", "Decimal mark, . or ,", default=True, **READING)
Strip = value(
    list[str],
    "--strip TEXT",
    "Remove a text from cells: %, a unit, the mark of thousands; may be repeated.",
    **READING,
)
Na = value(list[str], "--na TEXT", "Cells that stand for a missing value.", **READING)
Encoding = value(str, "--encoding NAME", "Encoding; the usual ones are recognized.", **READING)
Transpose = flag("--transpose", "The file has features in rows and samples in columns.", **READING)

# What is written and printed.
Overwrite = flag("--overwrite", "Replace what an earlier run wrote.")
GraphML = flag("--graphml", "Also write the networks as GraphML.")
Json = flag("--json", "Print the summary as JSON, for programs; no progress.")
Debug = flag("--debug", "Show a traceback if something fails.")


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
    n_components: Rank = "auto",
    algorithm: Method = Algorithm.mnpca,
    noise: Noise = None,
    prior: Prior = None,
    robust: Robust = False,
    fdr: Rate = 0.05,
    seed: Seed = 0,
    scale: Scale = False,
    drop_constant: DropConstant = False,
    row_covariates: RowCovariates = None,
    col_covariates: ColCovariates = None,
    labels: Labels = None,
    column_labels: ColumnLabels = None,
    index: Index = None,
    columns: Columns = None,
    drop: Drop = None,
    decimal: Decimal = ".",
    strip: Strip = None,
    na: Na = None,
    encoding: Encoding = None,
    transpose: Transpose = False,
    output: value(Path, "--output -o OUT", "Folder for the results.") = None,
    overwrite: Overwrite = False,
    graphml: GraphML = False,
    checkpoint: Checkpoint = None,
    resume: Resume = False,
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

    console = Console(stderr=json)
    with progress_display(console, silent=json) as callback:
        results = fit_file(options, callback)
    if json:
        print_json(results.summary | {"output": str(results.folder)})
    else:
        print_summary(console, results)


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

    out, n_rows, notes = transform_file(options)
    if json:
        print_json({"output": str(out), "n_rows": n_rows, "notes": notes})
        return
    console = Console()
    print_notes(console, notes)
    console.print(f"Scores of {n_rows:,} rows in [bold]{escape(str(out))}[/bold].")


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
    from mnpca.cli.report import write_report

    path = write_report(out, other)
    if json:
        print_json({"report": str(path)})
    else:
        print(f"Report in {path}")
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

    console = Console(stderr=json)
    with progress_display(console, silent=json) as callback:
        results, figures, grid = fit_demo(output, callback)
    report = str((output / "report.html").resolve())
    if json:
        print_json(results.summary | {"comparison": figures, "digits": grid, "report": report})
        return
    print_summary(console, results)
    shown = Table(title="Against the known truth")
    for title in ("", "signal, PSNR in dB", "groups, NMI x 100"):
        shown.add_column(title, justify="right" if title else "left")
    for name, figure in figures.items():
        shown.add_row(name, f"{figure['psnr']:.2f}", f"{figure['nmi']:.1f}")
    console.print(shown)
    console.print(
        f"Handwritten digits: of the {grid['n_edges']} strongest edges among pixels "
        f"{grid['touching']:.0%} join pixels that touch, of all pairs "
        f"{grid['touching_by_chance']:.0%}. Nothing in the table says where a pixel lies.",
        highlight=False,
    )
    console.print(f"The report of the digits: [bold]{grid['report']}[/bold]", soft_wrap=True)
    console.print(f"The report: [bold]{report}[/bold]", soft_wrap=True)


def print_json(values):
    """Print plain values as JSON on standard output."""
    print(json_format.dumps(values, indent=2, ensure_ascii=False))


def print_notes(console, notes):
    """Print remarks on the data or the fit, a line each."""
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)


def print_summary(console, results):
    """Print what was found and where it is."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    for title, figure, remark in results.document["cards"]:
        table.add_row(title, f"{figure}  [dim]{escape(remark)}[/dim]")
    console.print(table)
    if results.summary["choice"]:
        console.print(escape(results.summary["choice"]), highlight=False)
    print_notes(console, results.summary["notes"])
    if not results.summary["converged"]:
        console.print("[yellow]The fit did not converge; take the result with care.[/yellow]")
    console.print(f"Results in [bold]{escape(str(results.folder))}[/bold]; open report.html there.")


COMPILING = "compiling, once after installation"
#: Seconds after which a stage that comes again is shown again, where output is piped.
AGAIN = 10.0
#: Characters beside the spinner and the time, on a line of 80.
ROOM = 69


@contextlib.contextmanager
def progress_display(console, *, silent=False):
    """Give a callback that shows how a fit goes; on a terminal it vanishes at the end."""
    if silent:
        yield None
        return
    from numba.core import event

    class Compilation(event.Listener):
        """Shows when numba begins to compile a kernel, which it does once and stores."""

        def on_start(self, event):
            show(COMPILING)

        def on_end(self, event):
            """Leave the line to the next report."""

    with (_line if console.is_terminal else _lines)(console) as show:
        pace = _Pace()
        with event.install_listener("numba:compile", Compilation()):
            yield lambda progress: show(*pace(progress))


@contextlib.contextmanager
def _line(console):
    """Show one line that is written over, no wider than the terminal."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", table_column=Column(no_wrap=True), markup=False)
    columns = (SpinnerColumn(), TimeElapsedColumn(), text)
    with Progress(*columns, console=console, transient=True) as display:
        task = display.add_task("starting", total=None)

        def show(*parts):
            line = parts[0]
            for part in parts[1:]:
                line += f", {part}" if len(line) + len(part) + 2 <= ROOM else ""
            display.update(task, description=line[:ROOM])

        yield show


@contextlib.contextmanager
def _lines(console):
    """Print a plain line when a stage begins: the model and its rank, not each of its starts."""
    start, shown = time.monotonic(), {}

    def show(stage, *details):
        now, stage = time.monotonic(), stage if stage == COMPILING else stage.split(", ")[0]
        if stage in shown and now - max(shown.values()) < AGAIN:
            return
        shown[stage] = now
        console.print(f"{now - start:.0f} s: {stage}", highlight=False, markup=False)

    yield show


class _Pace:
    """Returns what a report says, the most important first, with the time its stage may take."""

    def __init__(self):
        self._stage, self._start, self._first = None, 0.0, 0

    def __call__(self, progress):
        now, iteration = time.monotonic(), progress.iteration
        if progress.stage != self._stage or iteration <= self._first:
            self._stage, self._start, self._first = progress.stage, now, iteration
        parts = [progress.stage, f"iteration {iteration}"]
        if progress.most is not None and iteration > self._first:
            pace = (now - self._start) / (iteration - self._first)
            left = max((progress.most - iteration) * pace, 0.0)
            minutes, seconds = divmod(round(left), 60)
            parts.append(f"at most {f'{minutes} min ' * bool(minutes)}{seconds} s left")
        if math.isfinite(progress.objective):
            parts.append(f"objective {progress.objective:.4g}")
        return parts
