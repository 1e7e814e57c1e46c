"""``mnpca transform``: scores of new rows under a fitted model."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from mnpca.cli.fit import (
    MODEL_FILE,
    check_finite,
    check_observed,
    plain_name,
    reading_options,
    write_factor,
)
from mnpca.cli.side_data import load_covariates
from mnpca.diagnostics import named_rows
from mnpca.estimators._load import load
from mnpca.io import DataError, listed, quoted, read_table


def transform_file(options):
    """Write the scores of a data file; return the new file, the number of rows and the notes."""
    out = options.output or Path(f"{plain_name(options.new)}-scores.csv")
    found = options.model / MODEL_FILE if options.model.is_dir() else options.model
    if not found.is_file():
        raise DataError(f"no model file: {quoted(found, 200)}; name one that mnpca fit wrote.")
    for name in (options.new, found):
        if out.exists() and name.exists() and out.samefile(name):
            raise DataError(f"the scores would replace {quoted(name, 200)}; name another file.")
    if out.exists() and not options.overwrite:
        raise DataError(
            f"the file {quoted(out, 200)} exists; name another with -o, or pass --overwrite."
        )
    model = load(found)
    if not hasattr(model, "transform"):
        raise DataError(f"a {type(model).__name__} has no components to project on.")
    table = read_table(options.new, **reading_options(options, "index", "drop"))
    table = table.transposed() if options.transpose else table
    table = match_columns(model, table.with_distinct_columns())
    check_finite(table)
    check_observed(table, "row")
    known = {}
    if (file := options.row_covariates) is not None:
        known["row_covariates"] = load_covariates(file, table, "row", **reading_options(options))
    elif getattr(model, "row_covariates_", None) is not None:
        raise DataError("the model was fitted with row covariates; pass --row-covariates FILE.")
    scores = np.asarray(model.transform(named_rows(model, table.values), **known))
    write_factor(out, [table.row_name(i) for i in range(len(scores))], scores)
    return out, len(scores), list(table.notes)


def match_columns(model, table):
    """Return the columns that the model wants, in its order."""
    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None or table.column_names is None:
        if table.values.shape[1] != model.n_features_in_:
            raise DataError(
                f"the model has {model.n_features_in_} columns, the file "
                f"{table.values.shape[1]}; fit and transform need the same ones."
            )
        return table
    wanted = [str(name) for name in wanted]
    position = {name: j for j, name in enumerate(table.column_names)}
    missing = [name for name in wanted if name not in position]
    if missing:
        raise DataError(
            f"{len(missing)} columns of the model are not in the file: {listed(missing)}."
        )
    extra = sorted(position.keys() - wanted)
    notes = [f"columns not in the model left out: {listed(extra)}"] if extra else []
    values = table.values[:, [position[name] for name in wanted]]
    return replace(table, values=values, column_names=wanted, notes=(*table.notes, *notes))
