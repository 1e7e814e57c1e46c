"""``mnpca transform``: scores of new rows under a fitted model."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import (
    Debug,
    Decimal,
    Drop,
    Encoding,
    Index,
    Json,
    Na,
    Overwrite,
    RowCovariates,
    Strip,
    Transpose,
    value,
)


def transform(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file, or the folder that fit wrote.", show_default=False
        ),
    ],
    new: Annotated[
        Path,
        typer.Argument(metavar="NEW", help="Data file with the same columns.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        value(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV file for the scores; by default NAME-scores.csv.",
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
    import numpy as np
    from rich.console import Console
    from rich.markup import escape

    import mnpca
    from mnpca.cli._data import as_written, check_finite, check_observed, load_covariates
    from mnpca.cli._export import write_scores
    from mnpca.cli._summary import print_json
    from mnpca.cli.fit import plain_name
    from mnpca.diagnostics import named_rows
    from mnpca.io import DataError, quoted, read_table

    out = output or Path(f"{plain_name(new)}-scores.csv")
    found = model_file(model)
    for name in (new, found):
        if out.exists() and name.exists() and out.samefile(name):
            raise DataError(f"the scores would replace {quoted(name, 200)}; name another file.")
    if out.exists() and not overwrite:
        raise DataError(
            f"the file {quoted(out, 200)} exists; name another with -o, or pass --overwrite."
        )
    fitted = mnpca.load(found)
    if not hasattr(fitted, "transform"):
        raise DataError(f"a {type(fitted).__name__} has no components to project on.")
    written = as_written(decimal, strip, na, encoding)
    table = read_table(new, index=index, drop=tuple(drop or ()), **written)
    table = table.transposed() if transpose else table
    table = match_columns(fitted, table.with_distinct_columns())
    check_finite(table)
    check_observed(table, "row")
    known = {}
    if row_covariates is not None:
        known["row_covariates"] = load_covariates(row_covariates, table, "row", **written)
    elif getattr(fitted, "row_covariates_", None) is not None:
        raise DataError("the model was fitted with row covariates; pass --row-covariates FILE.")
    scores = np.asarray(fitted.transform(named_rows(fitted, table.values), **known))
    write_scores(out, [table.row_name(i) for i in range(len(scores))], scores)
    notes = list(table.notes)
    if json:
        print_json({"output": str(out), "n_rows": len(scores), "notes": notes})
        return
    console = Console()
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)
    console.print(f"Scores of {len(scores):,} rows in [bold]{escape(str(out))}[/bold].")


def model_file(path):
    """Return the model file itself, or the one inside an output folder."""
    from mnpca.cli._export import MODEL_FILE
    from mnpca.io import DataError, quoted

    found = path / MODEL_FILE if path.is_dir() else path
    if not found.is_file():
        raise DataError(f"no model file: {quoted(found, 200)}; name one that mnpca fit wrote.")
    return found


def match_columns(model, table):
    """Return the columns that the model wants, in its order."""
    from mnpca.io import DataError, listed

    wanted = getattr(model, "feature_names_in_", None)
    if wanted is None or table.column_names is None:
        if table.values.shape[1] != model.n_features_in_:
            raise DataError(
                f"the model has {model.n_features_in_} columns, the file "
                f"{table.values.shape[1]}; fit and transform need the same ones."
            )
        return table
    wanted = [str(name) for name in wanted]
    if wanted == table.column_names:
        return table
    position = {name: j for j, name in enumerate(table.column_names)}
    missing = [name for name in wanted if name not in position]
    if missing:
        raise DataError(
            f"{len(missing)} columns of the model are not in the file: {listed(missing)}."
        )
    extra = sorted(set(table.column_names) - set(wanted))
    notes = [*table.notes, *([f"columns not in the model left out: {listed(extra)}"] * bool(extra))]
    values = table.values[:, [position[name] for name in wanted]]
    return replace(table, values=values, column_names=wanted, notes=tuple(notes))
