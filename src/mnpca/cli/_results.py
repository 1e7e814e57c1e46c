"""What a fit shows and leaves behind: progress, summary, and the files of an output folder."""

import contextlib
import json
import math
import time
from pathlib import Path

import numpy as np
from numba.core import event
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from mnpca.diagnostics import (
    SHOWN_RATE,
    item_names,
    learned_groups,
    named_rows,
    shown_rate,
    tested_edges,
)
from mnpca.interop.networkx import write_graphml
from mnpca.io import write_csv
from mnpca.report import collect, render, save_content, write_text

MODEL_FILE = "model.mnpca"
REPORT_FILE = "report.html"
CONTENT_FILE = "report.json"
COMPILING = "compiling, once after installation"
#: Seconds after which a stage that comes again is shown again, where output is piped.
AGAIN = 10.0
#: Characters beside the spinner and the time, on a line of 80.
ROOM = 69


def export(
    folder,
    fitted,
    table,
    *,
    source,
    algorithm,
    column_labels=None,
    fdr=SHOWN_RATE,
    scaled=False,
    graphml=False,
):
    """Write everything a fit leaves behind; return its summary and the report's document."""
    model, notes = fitted.model, [*table.notes, *fitted.remarks]
    document = collect(
        model,
        table.values,
        labels=table.labels,
        label_name=table.label_name,
        column_labels=column_labels,
        fdr=fdr,
        scaled=scaled,
        source=Path(source).name,
        notes=notes,
        seconds=fitted.seconds,
    )
    summary = summarize(document, model, data=str(source), algorithm=str(algorithm))
    summary |= {"seconds": round(fitted.seconds, 3), "notes": notes}
    known = getattr(model, "row_covariates_", None)
    given = {} if known is None else {"row_covariates": known}
    scores = model.transform(named_rows(model, table.values), **given)
    labels = {}
    if table.labels is not None:
        labels[table.label_name or "label"] = [str(label) for label in table.labels]
    rows, columns = item_names(model, "rows"), item_names(model, "columns")
    write_factor(folder / "scores.csv", rows, scores, labels, learned_columns(model, "rows"))
    loadings, learned = np.asarray(model.components_).T, learned_columns(model, "columns")
    write_factor(folder / "components.csv", columns, loadings, {}, learned)
    for side, name in (("rows", "row_graph"), ("columns", "col_graph")):
        write_graph(folder / f"{name}.csv", model, side, shown_rate(model, fdr))
        if graphml:
            write_graphml(model, side, folder / f"{name}.graphml", fdr=shown_rate(model, fdr))
    if getattr(model, "completed_", None) is not None:
        completed = zip(("completed", "completed_std"), model.impute(return_std=True), strict=True)
        for name, matrix in completed:
            lines = ([row, *values.tolist()] for row, values in zip(rows, matrix, strict=True))
            write_csv(folder / f"{name}.csv", ["name", *columns], lines)
    model.save(folder / MODEL_FILE)
    save_content(document, folder / CONTENT_FILE)
    write_text(folder / REPORT_FILE, render(document))
    write_text(folder / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    return summary, document


def write_factor(path, names, factor, columns=None, learned=None):
    """Write a row per item: name, more columns, its entries in a factor, and what was learned."""
    entries = {f"component_{k + 1}": values.tolist() for k, values in enumerate(factor.T)}
    columns = {"name": names, **(columns or {}), **entries, **(learned or {})}
    write_csv(path, list(columns), zip(*columns.values(), strict=True))


def learned_columns(model, side):
    """Return what the learned prior says of every row or column, by name of a table's column."""
    columns = {}
    prior = getattr(model, "priors_", {}).get(side, {})
    if prior.get("groups") is not None:
        columns["learned_group"] = learned_groups(model, side).tolist()
        columns["learned_group_probability"] = prior["groups"].max(axis=1).tolist()
    if prior.get("zero") is not None:
        columns["zero_probability"] = prior["zero"].tolist()
    return columns


def write_graph(path, model, side, rate):
    """Write the edges of a noise network, the strongest first.

    Positions (from 1) stand beside the names, because names may repeat. Where the model has tests,
    the edges are those with the false discovery rate `rate`; otherwise they are the fit's, and
    standard error, p and q are empty.
    """
    names, edges = item_names(model, side), tested_edges(model, side, rate)
    header = ["precision", "partial_correlation", "standard_error", "p", "q"]
    values = [getattr(edges, name) for name in header]
    columns = [[""] * len(edges) if each is None else each.tolist() for each in values]
    rows = (
        [names[i], names[j], i + 1, j + 1, *row]
        for i, j, *row in zip(edges.first.tolist(), edges.second.tolist(), *columns, strict=True)
    )
    write_csv(path, ["name_1", "name_2", "position_1", "position_2", *header], rows)


def summarize(document, model, **source):
    """Return the summary of a fit as plain values, from the report's document."""
    networks, convergence = document["networks"], document["convergence"]
    return {
        **source,
        "n_rows": document["shape"][0],
        "n_columns": document["shape"][1],
        "n_components": int(model.n_components_),
        "singular_values": [float(value) for value in model.singular_values_],
        "choice": document["noise"]["choice"],
        "row_edges": networks["rows"]["n_edges"],
        "col_edges": networks["columns"]["n_edges"],
        "whiteness": {
            side: dict(zip(("before", "after"), document["whiteness"][side]["beyond"], strict=True))
            for side in ("rows", "columns")
        },
        "converged": convergence["converged"],
        "n_iter": convergence["n_iter"],
        "version": document["versions"]["mnpca"],
    }


def print_json(summary):
    """Print plain values as JSON on standard output."""
    print(json.dumps(summary, indent=2, ensure_ascii=False))


def print_notes(console, notes):
    """Print remarks on the data or the fit, a line each."""
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)


def print_summary(console, summary, document, out):
    """Print what was found and where it is."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    table.add_column()
    for title, figure, remark in document["cards"]:
        table.add_row(title, f"{figure}  [dim]{escape(remark)}[/dim]")
    console.print(table)
    if summary["choice"]:
        console.print(escape(summary["choice"]), highlight=False)
    print_notes(console, summary["notes"])
    if not summary["converged"]:
        console.print("[yellow]The fit did not converge; take the result with care.[/yellow]")
    console.print(f"Results in [bold]{escape(str(out))}[/bold]; open report.html there.")


@contextlib.contextmanager
def progress_display(console, *, silent=False):
    """Give a callback that shows how a fit goes; on a terminal it vanishes at the end."""
    if silent:
        yield None
        return
    with (_line if console.is_terminal else _lines)(console) as show:
        pace = _Pace()
        with event.install_listener("numba:compile", _Compilation(show)):
            yield lambda progress: show(*pace(progress))


@contextlib.contextmanager
def _line(console):
    """Show one line that is written over, no wider than the terminal."""
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


class _Compilation(event.Listener):
    """Shows when numba begins to compile a kernel, which it does once and stores."""

    def __init__(self, show):
        self._show = show

    def on_start(self, event):
        self._show(COMPILING)

    def on_end(self, event):
        """Leave the line to the next report."""
