"""``mnpca fit``: from a data file to a matrix that can be fitted, and to a folder of results."""

import contextlib
import json
import re
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mnpca.cli.side_data import change_units, load_column_labels, load_covariates, units_of
from mnpca.diagnostics import (
    SHOWN_RATE,
    item_names,
    learned_groups,
    named_rows,
    shown_rate,
    tested_edges,
)
from mnpca.estimators import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.interop.networkx import write_graphml
from mnpca.io import DataError, check_folder, listed, new_folder, quoted, read_table, write_csv
from mnpca.report import collect, render, save_content, write_text

CLASSES = {"mnpca": MNPCA, "likelihood": LikelihoodMNPCA, "wasserstein": WassersteinMNPCA}
MODEL_FILE, REPORT_FILE, CONTENT_FILE = "model.mnpca", "report.html", "report.json"
MIN_ROWS, MIN_COLUMNS = 4, 2
#: A column of numbers with one of these names is probably a label.
_LABEL_NAMES = {"class", "cluster", "group", "label", "target", "type", "y"}
#: Names of columns that number things, of genes, and of rows that sum up others.
_IDENTIFIER = re.compile(r"(^|[\W_])(id|nr|no|number|code|barcode|key|index)\.?$|I[Dd]$", re.I)
_GENE = re.compile(r"[A-Z][A-Z0-9.-]{1,11}|ENS[A-Z]*G\d{6,}(\.\d+)?|[A-Z][a-z]{1,3}\d*[a-z]?\d*")
_SUMMARIES = {"total", "sum", "mean", "average", "median", "summe", "gesamt", "mittelwert"}


class Fitted(NamedTuple):
    """A fit in the units of the data."""

    model: Any
    seconds: float
    remarks: list[str]


class Results(NamedTuple):
    """A folder of results, the summary of the fit and the document of its report."""

    folder: Path
    summary: dict[str, Any]
    document: dict[str, Any]


def fit_file(options, callback):
    """Fit the data file and write the results; `options` are those of the command."""
    out, checkpoint = options.output, options.checkpoint
    out = Path(f"{plain_name(options.data)}-mnpca") if out is None else out
    check_folder(out, overwrite=options.overwrite)
    if options.resume and checkpoint is None:
        raise DataError("--resume needs --checkpoint FILE: the file to continue from.")
    if options.fdr != SHOWN_RATE and options.algorithm != "mnpca":
        raise DataError(f"--fdr belongs to the algorithm mnpca, not {options.algorithm}.")
    if not 0.0 < options.fdr <= 1.0:
        raise DataError(f"--fdr must be above 0 and at most 1, got {options.fdr:g}.")
    table = load_table(
        options.data,
        transpose=options.transpose,
        drop_constant=options.drop_constant,
        **reading_options(options, "labels", "index", "columns", "drop"),
    )
    groups = None
    if options.column_labels is not None:
        groups = load_column_labels(options.column_labels, table, options.encoding)
    params = {"checkpoint": checkpoint, "callback": callback}
    if options.resume and checkpoint.exists():
        params["resume_from"] = checkpoint
    for side in ("row", "col"):
        file = getattr(options, f"{side}_covariates")
        if file is not None:
            known = load_covariates(file, table, side, **reading_options(options))
            params[f"{side}_covariates"] = known
    estimator = make_estimator(options, table.values.shape)
    with new_folder(out, overwrite=options.overwrite) as folder:
        fitted = fit_table(estimator, table, scale=options.scale, **params)
        results = export(
            folder,
            fitted,
            table,
            source=options.data,
            algorithm=options.algorithm,
            column_labels=groups,
            fdr=options.fdr,
            scaled=options.scale,
            graphml=options.graphml,
        )
    return results._replace(folder=out)


def reading_options(options, *more):
    """Return the options of a command that say how a file is read, as `read_table` has them."""
    given = {name: getattr(options, name) for name in ("decimal", "strip", "na", "encoding", *more)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given.items()
        if value
    }


def plain_name(data):
    """Return a data file's name without its endings."""
    name = data.with_suffix("") if data.suffix.lower() == ".gz" else data
    return name.stem


def make_estimator(options, shape):
    """Return the estimator that the options ask for, for a matrix of this shape.

    MNPCA chooses the rank itself; for the paper's algorithms "auto" is the paper's rule. The noise
    is a structure as Python takes it, or two with a comma between, for rows and columns.
    """
    is_mnpca = options.algorithm == "mnpca"
    rank = _rank(options.n_components, shape, lowest=0 if is_mnpca else 1)
    params = {"noise": options.noise, "prior": options.prior, "robust": options.robust or None}
    params = {name: value for name, value in params.items() if value is not None}
    if not is_mnpca:
        for name in params:
            raise DataError(f"--{name} belongs to the algorithm mnpca, not {options.algorithm}.")
        return CLASSES[options.algorithm]("paper" if rank == "auto" else rank)
    if "," in params.get("noise", ""):
        params["noise"] = tuple(part.strip() for part in options.noise.split(","))
    return MNPCA(rank, random_state=options.seed, **params)


def _rank(text, shape, lowest):
    """Return "auto", a number of components that the shape allows, or (from 0 on) a share."""
    if text == "auto":
        return "auto"
    with contextlib.suppress(ValueError):
        rank = float(text)
        if lowest <= rank < min(shape) and rank.is_integer():
            return int(rank)
        if lowest == 0 < rank < 1:
            return rank
    share = ", or a share between 0 and 1" if lowest == 0 else ""
    raise DataError(
        f"-k must be 'auto' or a whole number between {lowest} and {min(shape) - 1} for a "
        f"{shape[0]} x {shape[1]} matrix{share}, got {quoted(text)}."
    )


def fit_table(estimator, table, *, scale=False, **params):
    """Fit the table's values, with parameters of ``fit``; warnings become remarks."""
    frame = table.frame() if table.row_names or table.column_names else table.values
    unit = units_of(table) if scale else None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(frame / unit if scale else frame, **params)
    seconds = time.perf_counter() - start
    if scale:
        change_units(model, unit)
    remarks = [" ".join(str(w.message).split()) for w in caught]
    return Fitted(model, seconds, list(dict.fromkeys(remarks)))


def load_table(path, *, transpose=False, drop_constant=False, **options):
    """Read a file and check that a fit can use it; the options are those of `read_table`."""
    read = read_table(path, **options)
    table = (read.transposed() if transpose else read).with_distinct_columns()
    check_finite(table)
    _check_size(table)
    check_observed(table, "row")
    check_observed(table, "column")
    table = _without_constant(table, drop_constant)
    hints = _hints(table, None if transpose else read)
    return replace(table, notes=(*table.notes, *hints))


def check_finite(table):
    """Refuse infinite values."""
    infinite = np.isinf(table.values)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise DataError(
            f"{int(infinite.sum()):,} infinite values, first in {table.row_place(i)}, "
            f"column {quoted(table.column_name(j))}; correct them or remove the row."
        )


def check_observed(table, side):
    """Refuse rows or columns without a single value."""
    empty = np.flatnonzero(np.isnan(table.values).all(axis=1 if side == "row" else 0))
    if not len(empty):
        return
    if side == "row":
        first, remedy = table.row_place(empty[0]), "delete such rows from the file"
    else:
        first = quoted(table.column_name(empty[0]))
        remedy = f"leave such columns out: --drop {first}"
    raise DataError(
        f"{len(empty):,} {side}{'s' * (len(empty) > 1)} without any value, first {first}; "
        f"nothing can be said about {'them' if len(empty) > 1 else 'it'}: {remedy}."
    )


def _check_size(table):
    n, p = table.values.shape
    if n < MIN_ROWS:
        raise DataError(
            f"too few rows: {n}, at least {MIN_ROWS} are needed (features in rows? use "
            "--transpose)."
        )
    if p < MIN_COLUMNS:
        raise DataError(
            f"too few columns of numbers: {p}, at least {MIN_COLUMNS} are needed (is the "
            "delimiter a comma, semicolon or tab?)."
        )


def _without_constant(table, drop):
    constant = np.nanmin(table.values, axis=0) == np.nanmax(table.values, axis=0)
    if not constant.any():
        return table
    names = [table.column_name(j) for j in range(len(constant))]
    said = listed(name for name, gone in zip(names, constant, strict=True) if gone)
    count = f"{sum(constant)} constant column{'s' if sum(constant) > 1 else ''}"
    if not drop:
        raise DataError(
            f"{count}: {said}; a constant has no noise to model. Pass --drop-constant to leave "
            "such columns out."
        )
    kept = [name for name, gone in zip(names, constant, strict=True) if not gone]
    table = replace(
        table,
        values=np.ascontiguousarray(table.values[:, ~constant]),
        column_names=None if table.column_names is None else kept,
        notes=(*table.notes, f"{count} left out: {said}"),
    )
    _check_size(table)
    return table


def _hints(table, as_read):
    """Point out missing values, and what is probably no data, with the option that it needs.

    `as_read` is the table as it stands in the file, None if it was transposed.
    """
    missing = np.isnan(table.values)
    if missing.any():
        yield (
            f"{int(missing.sum()):,} missing values ({missing.mean():.1%}) in "
            f"{int(missing.any(axis=0).sum()):,} of {missing.shape[1]:,} columns: the model fills "
            "them in while it is fitted"
        )
    n, p = table.values.shape if as_read is None else as_read.values.shape
    rows = (as_read and as_read.row_names) or []
    genes = sum(bool(_GENE.fullmatch(name)) for name in rows[:200])
    if n >= max(5 * p, 100) and genes >= 0.8 * min(n, 200):
        yield (
            f"{n:,} rows with names such as {quoted(rows[0])} and {p:,} columns: if the features "
            "are in rows, pass --transpose"
        )
    names = [table.column_name(j) for j in range(table.values.shape[1])]
    if table.labels is None:
        for name in [n for n in names if n.strip().lower() in _LABEL_NAMES][:1]:
            yield f"column {quoted(name)} was analyzed as data; if it is a label, pass --labels"
    for name, column in zip(names, table.values.T, strict=True):
        whole = np.array_equal(column, np.round(column)) and len(np.unique(column)) == len(column)
        if whole and (_IDENTIFIER.search(name.strip()) or (np.diff(column) == 1).all()):
            yield (
                f"column {quoted(name)} looks like an identifier and was analyzed as data; pass "
                f"--index {quoted(name)} to name the rows by it, or --drop {quoted(name)}"
            )
            break
    last = table.row_names[-1] if table.row_names else ""
    if last.strip().lower().rstrip(":") in _SUMMARIES:
        yield (
            f"the last row is called {quoted(last)} and was analyzed as data; if it sums up the "
            "others, delete it"
        )
    for code in (-99, -999, -9999, -99999, 9999, 99999):
        found = table.values == code
        if found.sum() > 1 and 3 * np.nanmax(np.abs(table.values[~found]), initial=0) < abs(code):
            yield (
                f"{code} occurs {int(found.sum()):,} times, far from all other values; if it "
                f"stands for a missing value, pass --na {code}"
            )
            break


def export(folder, fitted, table, *, source, algorithm, graphml=False, fdr=SHOWN_RATE, **details):
    """Write everything a fit leaves behind; return its `Results`.

    `details` are those of the report: column_labels, scaled.
    """
    model, notes = fitted.model, [*table.notes, *fitted.remarks]
    document = collect(
        model,
        table.values,
        labels=table.labels,
        label_name=table.label_name,
        fdr=fdr,
        source=Path(source).name,
        notes=notes,
        seconds=fitted.seconds,
        **details,
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
    return Results(folder, summary, document)


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
