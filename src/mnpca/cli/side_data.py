"""Data beside the matrix: covariates, labels of columns, and their units."""

import csv

import numpy as np
import scipy.sparse as sp

from mnpca.io import DataError, listed, quoted, read_table
from mnpca.model.low_rank import LowRank

#: Scales whose squares, and their inverses, are ordinary numbers.
SMALLEST_UNIT, LARGEST_UNIT = 1e-100, 1e100


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


def units_of(table):
    """Return the standard deviation of each column; refuse those that cannot be units."""
    with np.errstate(over="ignore", under="ignore"):
        unit = np.nanstd(table.values, axis=0)
    for j in np.flatnonzero(~((unit > SMALLEST_UNIT) & (unit < LARGEST_UNIT))):
        raise DataError(
            f"--scale: column {quoted(table.column_name(j))} has a standard deviation of "
            f"{unit[j]:.3g}, beyond what its squares can represent; change its units first."
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
