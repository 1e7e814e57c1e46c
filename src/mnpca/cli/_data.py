"""From a data file to a matrix that can be fitted, or a line that says why not."""

from dataclasses import replace

import numpy as np

from mnpca.io import DataError, listed, quoted, read_table

MIN_ROWS, MIN_COLUMNS = 4, 2
#: A column of numbers with one of these names is probably a label.
_LABEL_NAMES = {"class", "cluster", "group", "label", "target", "type", "y"}


def load_table(path, *, labels=None, transpose=False, drop_constant=False):
    """Read a file and check that a fit can use it."""
    table = read_table(path, labels=labels)
    if transpose:
        table = table.transposed()
    table = table.with_distinct_columns()
    check_finite(table)
    _check_size(table)
    check_observed(table, "row")
    check_observed(table, "column")
    table = _with_missing_note(_without_constant(table, drop_constant))
    return table if labels is not None else _with_label_hint(table)


def check_finite(table):
    """Refuse infinite values."""
    infinite = np.isinf(table.values)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise DataError(
            f"{int(infinite.sum()):,} infinite values, first in row {quoted(table.row_name(i))}, "
            f"column {quoted(table.column_name(j))}; correct them or remove the row."
        )


def check_observed(table, side):
    """Refuse rows or columns without a single value."""
    empty = np.flatnonzero(np.isnan(table.values).all(axis=1 if side == "row" else 0))
    if len(empty):
        name = table.row_name(empty[0]) if side == "row" else table.column_name(empty[0])
        raise DataError(
            f"{len(empty):,} {side}{'s' * (len(empty) > 1)} without any value, first "
            f"{quoted(name)}; nothing can be said about {'them' if len(empty) > 1 else 'it'}: "
            "remove before fitting."
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
            "delimiter a comma, semicolon or tab? decimals need a point, not a comma)."
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


def _with_label_hint(table):
    likely = [name for name in table.column_names or [] if name.strip().lower() in _LABEL_NAMES]
    if not likely:
        return table
    note = f"column {quoted(likely[0])} was analyzed as data; if it is a label, pass --labels"
    return replace(table, notes=(*table.notes, note))
