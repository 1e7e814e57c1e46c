"""``mnpca fit``: from a data file to a folder of results."""

from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import (
    _READING,
    Algorithm,
    Debug,
    Decimal,
    Drop,
    Encoding,
    Index,
    Json,
    Na,
    Output,
    Overwrite,
    RowCovariates,
    Strip,
    Transpose,
    flag,
    value,
)


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, XLSX, Parquet, NPY, NPZ, MTX or H5AD file, also .gz.",
            show_default=False,
        ),
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
            metavar="KIND",
            help="'auto', 'graph', 'diagonal' or 'identity'; two with a comma for rows, columns.",
        ),
    ] = None,
    prior: Annotated[
        str | None,
        value(
            "--prior",
            metavar="KIND",
            help="What scores and loadings are drawn from: 'auto', 'gaussian' or 'mixture'.",
        ),
    ] = None,
    robust: Annotated[bool, flag("--robust", help="Leave single outlying entries out.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random start.")] = 0,
    scale: Annotated[
        bool, flag("--scale", help="Scale columns to unit variance for the fit.")
    ] = False,
    drop_constant: Annotated[
        bool, flag("--drop-constant", help="Leave constant columns out.")
    ] = False,
    row_covariates: RowCovariates = None,
    col_covariates: Annotated[
        Path | None,
        value(
            "--col-covariates",
            "--column-covariates",
            metavar="FILE",
            help="Table of known covariates of the columns.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        value(
            "--labels",
            metavar="COLUMN",
            help="Column with a label per row: shown, not analyzed.",
            **_READING,
        ),
    ] = None,
    column_labels: Annotated[
        Path | None,
        value(
            "--column-labels",
            metavar="FILE",
            help="Table of two columns, name and label of a column: colors of their network.",
        ),
    ] = None,
    index: Index = None,
    columns: Annotated[
        list[str] | None,
        value("--columns", metavar="COLUMN", help="Use these columns only.", **_READING),
    ] = None,
    drop: Drop = None,
    decimal: Decimal = ".",
    strip: Strip = None,
    na: Na = None,
    encoding: Encoding = None,
    transpose: Transpose = False,
    output: Output = None,
    overwrite: Overwrite = False,
    graphml: Annotated[bool, flag("--graphml", help="Also write the networks as GraphML.")] = False,
    checkpoint: Annotated[
        Path | None,
        value("--checkpoint", metavar="FILE", help="Keep the state of a long fit in this file."),
    ] = None,
    resume: Annotated[
        bool, flag("--resume", help="Go on from the checkpoint, where it exists.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
):
    """Split a matrix into a low-rank signal and two noise networks.

    Writes scores.csv, components.csv, row_graph.csv, col_graph.csv, model.mnpca and report.html
    into one folder (by default NAME-mnpca). Empty cells count as missing; the completed matrix
    and its standard errors are then in completed.csv and completed_std.csv.
    """
    from rich.console import Console

    from mnpca.cli._data import as_written, load_column_labels, load_covariates, load_table
    from mnpca.cli._export import export
    from mnpca.cli._fitting import fit_table, make_estimator
    from mnpca.cli._progress import progress_display
    from mnpca.cli._summary import print_json, print_summary
    from mnpca.io import DataError, check_folder, new_folder

    out = Path(f"{plain_name(data)}-mnpca") if output is None else output
    check_folder(out, overwrite=overwrite)
    if resume and checkpoint is None:
        raise DataError("--resume needs --checkpoint FILE: the file to go on from.")
    console = Console(stderr=json)
    written = as_written(decimal, strip, na, encoding)
    table = load_table(
        data,
        transpose=transpose,
        drop_constant=drop_constant,
        labels=labels,
        index=index,
        columns=tuple(columns or ()),
        drop=tuple(drop or ()),
        **written,
    )
    groups = None if column_labels is None else load_column_labels(column_labels, table, encoding)
    estimator = make_estimator(
        algorithm,
        n_components,
        table.values.shape,
        noise=noise,
        prior=prior,
        robust=robust,
        seed=seed,
    )
    covariates = {
        f"{side}_covariates": load_covariates(file, table, side, **written)
        for side, file in (("row", row_covariates), ("col", col_covariates))
        if file is not None
    }
    with new_folder(out, overwrite=overwrite) as folder:
        with progress_display(console, silent=json) as callback:
            fitted = fit_table(
                estimator,
                table,
                scale=scale,
                covariates=covariates,
                callback=callback,
                checkpoint=checkpoint,
                resume=resume and checkpoint.exists(),
            )
        summary, document = export(
            folder,
            fitted,
            table,
            source=data,
            algorithm=algorithm,
            column_labels=groups,
            scaled=scale,
            graphml=graphml,
        )
    if json:
        print_json(summary | {"output": str(out)})
    else:
        print_summary(console, summary, document, out)


def plain_name(data):
    """Return a data file's name without its endings."""
    name = data.with_suffix("") if data.suffix.lower() == ".gz" else data
    return name.stem
