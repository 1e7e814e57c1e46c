"""``mnpca demo``: PCA beside MN-PCA on data that PCA cannot read."""

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from sklearn.decomposition import PCA

from mnpca import datasets
from mnpca.cli._results import REPORT_FILE, export, print_json, print_summary, progress_display
from mnpca.cli.fit import fit_table
from mnpca.diagnostics import named_rows
from mnpca.estimators import MNPCA
from mnpca.io import Table, new_folder
from mnpca.metrics import nmi, psnr

CONDITION, SEED = 224, 1000


def fit_demo(output, *, json):
    """Fit the data, write the results, and compare with the truth and with PCA."""
    data, table = demo_data()
    console = Console(stderr=json)
    with new_folder(output, overwrite=True) as folder:
        with progress_display(console, silent=json) as callback:
            fitted = fit_table(MNPCA(random_state=0), table, callback=callback)
        summary, document = export(
            folder, fitted, table, source="the paper's small data", algorithm="mnpca"
        )
    figures = compare(data, fitted.model)
    report = (output / REPORT_FILE).resolve()
    if json:
        print_json(summary | {"comparison": figures, "report": str(report)})
        return
    print_summary(console, summary, document, output)
    shown = RichTable(title="Against the known truth")
    for title in ("", "signal, PSNR in dB", "groups, NMI x 100"):
        shown.add_column(title, justify="right" if title else "left")
    for name, figure in figures.items():
        shown.add_row(name, f"{figure['psnr']:.2f}", f"{figure['nmi']:.1f}")
    console.print(shown)
    console.print(f"The report: [bold]{report}[/bold]", soft_wrap=True)


def demo_data():
    """Return the data with its truth, and as a table with names."""
    data = datasets.make_paper_small(c=CONDITION, seed=SEED)
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
    pca = PCA(2).fit(data.Y)
    scores = {"PCA": pca.transform(data.Y), "MN-PCA": model.transform(named_rows(model, data.Y))}
    signals = {"PCA": pca.inverse_transform(scores["PCA"]), "MN-PCA": model.denoise()}
    return {
        name: {
            "psnr": psnr(signals[name], data.signal),
            "nmi": nmi(scores[name], data.labels, random_state=0),
        }
        for name in scores
    }
