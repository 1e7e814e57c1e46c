"""``mnpca demo``: PCA beside MN-PCA on data that PCA cannot read."""

from pathlib import Path
from typing import Annotated

import typer

from mnpca.cli._options import Debug, Json

CONDITION, SEED = 224, 1000


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT", help="Folder for the results; an earlier demo's goes."
        ),
    ] = Path("mnpca-demo"),
    json: Json = False,
    debug: Debug = False,
):
    """Fit the paper's small data at a hard condition number and write the report.

    300 rows in three groups and 200 columns, in noise correlated along two sparse networks with
    condition number 224.
    """
    from rich.console import Console

    from mnpca.cli._export import REPORT_FILE, export
    from mnpca.cli._fitting import fit_table, make_estimator
    from mnpca.cli._options import Algorithm
    from mnpca.cli._progress import progress_display
    from mnpca.cli._summary import print_json, print_summary
    from mnpca.io import new_folder

    data, table = demo_data()
    console = Console(stderr=json)
    estimator = make_estimator(Algorithm.mnpca, "auto", table.values.shape)
    with new_folder(output, overwrite=True) as folder:
        with progress_display(console, silent=json) as callback:
            fitted = fit_table(estimator, table, callback=callback)
        summary, document = export(
            folder, fitted, table, source="the paper's small data", algorithm="mnpca"
        )
    figures = compare(data, fitted.model)
    report = (output / REPORT_FILE).resolve()
    if json:
        print_json(summary | {"comparison": figures, "report": str(report)})
        return
    print_summary(console, summary, document, output)
    _print_comparison(console, figures)
    console.print(f"The report: [bold]{report}[/bold]", soft_wrap=True)


def demo_data():
    """Return the data with its truth, and as a table with names."""
    import numpy as np

    from mnpca.datasets import make_paper_small
    from mnpca.io import Table

    data = make_paper_small(c=CONDITION, seed=SEED)
    n, p = data.Y.shape
    table = Table(
        data.Y,
        row_names=[f"sample {i + 1}" for i in range(n)],
        column_names=[f"feature {j + 1}" for j in range(p)],
        labels=np.array([f"group {label + 1}" for label in data.labels]),
        label_name="group",
    )
    return data, table


def compare(data, model):
    """Return PSNR of the signal and NMI of the groups, of PCA (given the true rank) and MN-PCA."""
    from sklearn.decomposition import PCA

    from mnpca.diagnostics import named_rows
    from mnpca.metrics import nmi, psnr

    pca = PCA(2).fit(data.Y)
    pca_scores = pca.transform(data.Y)
    scores = model.transform(named_rows(model, data.Y))
    return {
        "PCA": {
            "psnr": psnr(pca.inverse_transform(pca_scores), data.signal),
            "nmi": nmi(pca_scores, data.labels, random_state=0),
        },
        "MN-PCA": {
            "psnr": psnr(model.denoise(), data.signal),
            "nmi": nmi(scores, data.labels, random_state=0),
        },
    }


def _print_comparison(console, figures):
    from rich.table import Table

    table = Table(title="Against the known truth")
    table.add_column("")
    table.add_column("signal, PSNR in dB", justify="right")
    table.add_column("groups, NMI x 100", justify="right")
    for name, figure in figures.items():
        table.add_row(name, f"{figure['psnr']:.2f}", f"{figure['nmi']:.1f}")
    console.print(table)
