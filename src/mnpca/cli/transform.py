"""``mnpca transform``: scores of new rows under a fitted model."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mnpca.cli._options import Debug, Json, Transpose
from mnpca.io import DataError, Table, listed, quoted


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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="CSV file for the scores; by default NAME-scores.csv.",
            show_default=False,
        ),
    ] = None,
    transpose: Transpose = False,
    json: Json = False,
    debug: Debug = False,
):
    """Project new rows on the components of a fitted model.

    Columns are matched by name where the model has names; others in the file are left out.
    """
    from rich.console import Console
    from rich.markup import escape

    import mnpca
    from mnpca.cli._data import check_finite, check_observed
    from mnpca.cli._export import write_scores
    from mnpca.cli._summary import print_json
    from mnpca.cli.fit import plain_name
    from mnpca.diagnostics import named_rows
    from mnpca.io import read_table

    out = output or Path(f"{plain_name(new)}-scores.csv")
    found = model_file(model)
    for name in (new, found):
        if out.exists() and name.exists() and out.samefile(name):
            raise DataError(f"the scores would replace {quoted(name, 200)}; name another file.")
    fitted = mnpca.load(found)
    if not hasattr(fitted, "transform"):
        raise DataError(f"a {type(fitted).__name__} has no components to project on.")
    table = read_table(new)
    table = table.transposed() if transpose else table
    table = match_columns(fitted, table.with_distinct_columns())
    check_finite(table)
    check_observed(table, "row")
    scores = fitted.transform(named_rows(fitted, table.values))
    write_scores(out, [table.row_name(i) for i in range(len(scores))], np.asarray(scores))
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

    found = path / MODEL_FILE if path.is_dir() else path
    if not found.is_file():
        raise DataError(f"no model file: {quoted(found, 200)}; name one that mnpca fit wrote.")
    return found


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
    return Table(values, table.row_names, wanted, notes=tuple(notes))
