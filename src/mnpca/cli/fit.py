"""``mnpca fit``: from a data file to a matrix that can be fitted, and to a folder of results."""

import contextlib
import csv
import re
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console

from mnpca.cli._results import export, print_json, print_summary, progress_display
from mnpca.cli.app import Algorithm
from mnpca.diagnostics import SHOWN_RATE
from mnpca.estimators import MNPCA, LikelihoodMNPCA, WassersteinMNPCA
from mnpca.io import DataError, check_folder, listed, new_folder, quoted, read_table
from mnpca.model.low_rank import LowRank

MIN_ROWS, MIN_COLUMNS = 4, 2
#: A column of numbers with one of these names is probably a label.
_LABEL_NAMES = {"class", "cluster", "group", "label", "target", "type", "y"}
#: Names of columns that number things, of genes, and of rows that sum up others.
_IDENTIFIER = re.compile(r"(^|[\W_])(id|nr|no|number|code|barcode|key|index)\.?$|I[Dd]$", re.I)
_GENE = re.compile(r"[A-Z][A-Z0-9.-]{1,11}|ENS[A-Z]*G\d{6,}(\.\d+)?|[A-Z][a-z]{1,3}\d*[a-z]?\d*")
_SUMMARIES = {"total", "sum", "mean", "average", "median", "summe", "gesamt", "mittelwert"}
#: Scales whose squares, and their inverses, are ordinary numbers.
SMALLEST_UNIT, LARGEST_UNIT = 1e-100, 1e100

_CLASSES = {
    Algorithm.mnpca: MNPCA,
    Algorithm.likelihood: LikelihoodMNPCA,
    Algorithm.wasserstein: WassersteinMNPCA,
}


def fit_file(options):
    """Fit the data file and write the results; `options` are those of the command."""
    out, checkpoint = options.output, options.checkpoint
    out = Path(f"{plain_name(options.data)}-mnpca") if out is None else out
    check_folder(out, overwrite=options.overwrite)
    if options.resume and checkpoint is None:
        raise DataError("--resume needs --checkpoint FILE: the file to go on from.")
    if options.fdr != SHOWN_RATE and options.algorithm != Algorithm.mnpca:
        raise DataError(f"--fdr belongs to the algorithm mnpca, not {options.algorithm}.")
    if not 0.0 < options.fdr <= 1.0:
        raise DataError(f"--fdr must be above 0 and at most 1, got {options.fdr:g}.")
    console = Console(stderr=options.json)
    written = as_written(options)
    table = load_table(
        options.data,
        transpose=options.transpose,
        drop_constant=options.drop_constant,
        labels=options.labels,
        index=options.index,
        columns=tuple(options.columns or ()),
        drop=tuple(options.drop or ()),
        **written,
    )
    groups = None
    if options.column_labels is not None:
        groups = load_column_labels(options.column_labels, table, options.encoding)
    estimator = make_estimator(
        options.algorithm,
        options.n_components,
        table.values.shape,
        noise=options.noise,
        prior=options.prior,
        robust=options.robust,
        seed=options.seed,
    )
    covariates = {
        f"{side}_covariates": load_covariates(file, table, side, **written)
        for side, file in (("row", options.row_covariates), ("col", options.col_covariates))
        if file is not None
    }
    with new_folder(out, overwrite=options.overwrite) as folder:
        with progress_display(console, silent=options.json) as callback:
            fitted = fit_table(
                estimator,
                table,
                scale=options.scale,
                **covariates,
                callback=callback,
                checkpoint=checkpoint,
                resume_from=checkpoint if options.resume and checkpoint.exists() else None,
            )
        summary, document = export(
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
    if options.json:
        print_json(summary | {"output": str(out)})
    else:
        print_summary(console, summary, document, out)


def make_estimator(algorithm, n_components, shape, *, noise=None, prior=None, robust=False, seed=0):
    """Return the estimator for an algorithm and ``-k``: "auto" or a number as text.

    MNPCA chooses the rank itself; for the paper's algorithms "auto" is the paper's rule. `noise`
    is a structure as Python takes it, or two with a comma between, for rows and columns.
    """
    rank = _rank(n_components, shape, lowest=0 if algorithm == Algorithm.mnpca else 1)
    params = {"robust": True} if robust else {}
    if noise is not None:
        parts = tuple(part.strip() for part in noise.split(","))
        params["noise"] = parts[0] if len(parts) == 1 else parts
    if prior is not None:
        params["prior"] = prior
    if algorithm == Algorithm.mnpca:
        return _CLASSES[algorithm](rank, random_state=seed, **params)
    for name in params:
        raise DataError(f"--{name} belongs to the algorithm mnpca, not {algorithm}.")
    return _CLASSES[algorithm]("paper" if rank == "auto" else rank)


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


class Fitted(NamedTuple):
    """A fit in the units of the data."""

    model: Any
    seconds: float
    remarks: list[str]


def fit_table(estimator, table, *, scale=False, **params):
    """Fit the table's values, with parameters of ``fit``; warnings become remarks."""
    frame = table.frame() if table.row_names or table.column_names else table.values
    unit = _unit(table) if scale else None
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator.fit(frame / unit if scale else frame, **params)
    seconds = time.perf_counter() - start
    if scale:
        change_units(model, unit)
    remarks = [" ".join(str(w.message).split()) for w in caught]
    return Fitted(model, seconds, list(dict.fromkeys(remarks)))


def _unit(table):
    """Return the standard deviation of each column; refuse those that are no units."""
    with np.errstate(over="ignore", under="ignore"):
        unit = np.nanstd(table.values, axis=0)
    for j in np.flatnonzero(~((unit > SMALLEST_UNIT) & (unit < LARGEST_UNIT))):
        raise DataError(
            f"--scale: column {quoted(table.column_name(j))} has a spread of {unit[j]:.3g}, "
            "beyond what its squares can represent; change its units first."
        )
    return unit


def change_units(model, unit):
    """Turn a fit of ``X / unit`` into one of X, exactly.

    With D = diag(unit): the mean becomes D mean, the loadings D W, and the noise precision among
    columns inv(D) B inv(D). Scores, likelihood ratios and the metric W'BW stay as they are.
    """
    for name in ("mean_", "components_", "completed_", "completed_std_", "row_coef_"):
        if getattr(model, name, None) is not None:
            setattr(model, name, getattr(model, name) * unit)
    powers = {"low_rank_": 1, "full_signal_": 1, "signal_variance_": 2, "full_signal_variance_": 2}
    for name, power in powers.items():
        if getattr(model, name, None) is not None:
            left, right = getattr(model, name)
            setattr(model, name, LowRank(left, right * unit[:, None] ** power))
    if getattr(model, "col_covariates_", None) is not None:
        model.col_covariates_ = model.col_covariates_ * unit[:, None]
    shrink = sp.diags_array(1.0 / unit)
    model.col_precision_ = sp.csr_array(shrink @ model.col_precision_ @ shrink)


def as_written(options):
    """Return the options of a command that say how cells are written."""
    return {
        "decimal": options.decimal,
        "strip": tuple(options.strip or ()),
        "na": tuple(options.na or ()),
        "encoding": options.encoding,
    }


def plain_name(data):
    """Return a data file's name without its endings."""
    name = data.with_suffix("") if data.suffix.lower() == ".gz" else data
    return name.stem


def load_table(path, *, transpose=False, drop_constant=False, **options):
    """Read a file and check that a fit can use it; the options are those of `read_table`."""
    table = read_table(path, **options)
    turn = None if transpose else _transpose(table)
    if transpose:
        table = table.transposed()
    table = table.with_distinct_columns()
    check_finite(table)
    _check_size(table)
    check_observed(table, "row")
    check_observed(table, "column")
    table = _with_missing_note(_without_constant(table, drop_constant))
    hints = [turn, *(hint(table) for hint in (_label, _identifier, _total, _code_for_missing))]
    return replace(table, notes=(*table.notes, *(hint for hint in hints if hint)))


def load_covariates(path, table, side, **options):
    """Return the covariates of the rows or columns of a table, in its order.

    They are matched by name where both have names. A column of text becomes indicators.
    """
    known = read_table(path, categories=True, **options)
    names = table.row_names if side == "row" else table.column_names
    count = table.values.shape[0 if side == "row" else 1]
    items, option = ("rows" if side == "row" else "columns"), f"--{side}-covariates"
    if np.isnan(known.values).any():
        i, j = np.argwhere(np.isnan(known.values))[0]
        raise DataError(
            f"{option}: {known.row_place(i)} has no value of {quoted(known.column_name(j))}; "
            f"covariates must be complete: fill it in, or leave these {items} out."
        )
    if names is None or known.row_names is None:
        if len(known.values) != count:
            raise DataError(
                f"{option}: the file has {len(known.values):,} rows for {count:,} {items}; give "
                f"both files names, or one row for each in the same order."
            )
        return known.values
    place = {name: i for i, name in enumerate(known.row_names)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"{option}: nothing about {len(missing):,} of {count:,} {items}: {listed(missing)}; "
            "the first column must name them as the data do."
        )
    return known.values[[place[name] for name in names]]


def load_column_labels(path, table, encoding=None):
    """Return the label of each column from a table of two columns: its name and its label."""
    with open(path, newline="", encoding=encoding or "utf-8-sig") as stream:
        head = stream.readline()
        stream.seek(0)
        delimiter = max(",;\t", key=head.count)
        known = dict(row[:2] for row in csv.reader(stream, delimiter=delimiter) if len(row) > 1)
    names = table.column_names or []
    if not any(name in known for name in names):
        raise DataError(
            f"--column-labels: {quoted(path, 200)} names no column of the data; it needs two "
            "columns, the name of a column of the data and its label."
        )
    return np.array([known.get(name, "") for name in names])


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
    if len(empty):
        if side == "row":
            first, remedy = table.row_place(empty[0]), "delete such rows from the file"
        else:
            first = quoted(table.column_name(empty[0]))
            remedy = f"leave such columns out: --drop {first}"
        raise DataError(
            f"{len(empty):,} {side}{'s' * (len(empty) > 1)} without any value, first {first}; "
            f"nothing can be said about {'them' if len(empty) > 1 else 'it'}: {remedy}."
        )


def _with_missing_note(table):
    """Say how many values are missing and what is done about it."""
    missing = np.isnan(table.values)
    if not missing.any():
        return table
    note = (
        f"{int(missing.sum()):,} missing values ({missing.mean():.1%}) in "
        f"{int(missing.any(axis=0).sum()):,} of {missing.shape[1]:,} columns: the model fills "
        "them in while it is fitted"
    )
    return replace(table, notes=(*table.notes, note))


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
    low, high = np.nanmin(table.values, axis=0), np.nanmax(table.values, axis=0)
    constant = low == high
    if not constant.any():
        return table
    names = listed(table.column_name(j) for j in np.flatnonzero(constant))
    count = int(constant.sum())
    if not drop:
        raise DataError(
            f"{count} constant column{'s' * (count > 1)}: {names}; a constant has no noise to "
            "model. Pass --drop-constant to leave such columns out."
        )
    kept = np.flatnonzero(~constant)
    table = replace(
        table,
        values=np.ascontiguousarray(table.values[:, kept]),
        column_names=None if table.column_names is None else [table.column_names[j] for j in kept],
        notes=(*table.notes, f"{count} constant column{'s' * (count > 1)} left out: {names}"),
    )
    _check_size(table)
    return table


def _label(table):
    for name in table.column_names or []:
        if table.labels is None and name.strip().lower() in _LABEL_NAMES:
            return f"column {quoted(name)} was analyzed as data; if it is a label, pass --labels"
    return None


def _identifier(table):
    """Point out a column of whole numbers, all different, that counts up or is called so."""
    for j, column in enumerate(table.values.T):
        name = table.column_name(j)
        if not np.array_equal(column, np.round(column)) or len(np.unique(column)) < len(column):
            continue
        if _IDENTIFIER.search(name.strip()) or (np.diff(column) == 1).all():
            return (
                f"column {quoted(name)} looks like an identifier and was analyzed as data; pass "
                f"--index {quoted(name)} to name the rows by it, or --drop {quoted(name)}"
            )
    return None


def _transpose(table):
    """Point out a table whose rows seem to be genes."""
    (n, p), names = table.values.shape, table.row_names
    if names is None or n < 5 * p or n < 100:
        return None
    if sum(bool(_GENE.fullmatch(name)) for name in names[:200]) < 0.8 * min(n, 200):
        return None
    return (
        f"{n:,} rows with names such as {quoted(names[0])} and {p:,} columns: if the features are "
        "in rows, pass --transpose"
    )


def _total(table):
    """Point out a last row that sums up the others."""
    if table.row_names and table.row_names[-1].strip().lower().rstrip(":") in _SUMMARIES:
        return (
            f"the last row is called {quoted(table.row_names[-1])} and was analyzed as data; if it "
            "sums up the others, delete it"
        )
    return None


def _code_for_missing(table):
    """Point out a number far from all others that repeats, such as -999."""
    for code in (-99, -999, -9999, -99999, 9999, 99999):
        found = table.values == code
        if found.sum() > 1 and 3 * np.nanmax(np.abs(table.values[~found]), initial=0) < abs(code):
            return (
                f"{code} occurs {int(found.sum()):,} times, far from all other values; if it "
                f"stands for a missing value, pass --na {code}"
            )
    return None
