"""``mnpca demo``: PCA beside MN-PCA on data that PCA cannot read, and the network of pixels."""

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mnpca import datasets
from mnpca.cli._results import REPORT_FILE, export, print_json, print_summary, progress_display
from mnpca.cli.fit import fit_table
from mnpca.diagnostics import SHOWN_RATE, named_rows, tested_edges
from mnpca.estimators import MNPCA
from mnpca.io import Table, new_folder
from mnpca.metrics import nmi, psnr

CONDITION, SEED = 224, 1000
#: Every third image of a digit; how many edges among its pixels are compared with the grid.
STEP, STRONGEST = 3, 60


def fit_demo(output, *, json):
    """Fit the data, write the results, and compare with the truth and with PCA."""
    data, table = demo_data()
    images, places = digits_data()
    console = Console(stderr=json)
    with new_folder(output, overwrite=True) as folder:
        fitted, summary, document = _fit(folder, table, "the paper's small data", console, json)
        (folder / "digits").mkdir()
        digits, *_ = _fit(folder / "digits", images, "handwritten digits", console, json)
    figures, grid = compare(data, fitted.model), compare_with_grid(digits.model, places)
    report, network = ((output / part / REPORT_FILE).resolve() for part in ("", "digits"))
    if json:
        grid["report"] = str(network)
        print_json(summary | {"comparison": figures, "digits": grid, "report": str(report)})
        return
    print_summary(console, summary, document, output)
    shown = RichTable(title="Against the known truth")
    for title in ("", "signal, PSNR in dB", "groups, NMI x 100"):
        shown.add_column(title, justify="right" if title else "left")
    for name, figure in figures.items():
        shown.add_row(name, f"{figure['psnr']:.2f}", f"{figure['nmi']:.1f}")
    console.print(shown)
    console.print(
        f"Handwritten digits: of the {grid['n_edges']} strongest edges among pixels "
        f"{grid['touching']:.0%} join pixels that touch, of all pairs "
        f"{grid['touching_by_chance']:.0%}. Nothing in the table says where a pixel lies.",
        highlight=False,
    )
    console.print(f"The report of the digits: [bold]{network}[/bold]", soft_wrap=True)
    console.print(f"The report: [bold]{report}[/bold]", soft_wrap=True)


def _fit(folder, table, source, console, json):
    """Fit a table and write its results; return the fit, its summary and the document."""
    with progress_display(console, silent=json) as callback:
        fitted = fit_table(MNPCA(random_state=0), table, callback=callback)
    return fitted, *export(folder, fitted, table, source=source, algorithm="mnpca")


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


def digits_data():
    """Return images of digits as a table, a column for each pixel that varies, and its place."""
    digits = load_digits()
    varying = np.flatnonzero(digits.data.std(axis=0) > 0.5)
    places = np.column_stack(np.divmod(varying, 8))
    table = Table(
        digits.data[::STEP, varying],
        column_names=[f"row {row + 1}, column {column + 1}" for row, column in places],
        labels=digits.target[::STEP],
        label_name="digit",
    )
    return table, places


def compare_with_grid(model, places):
    """Return how many of the strongest edges join pixels that touch, also by a corner."""
    edges = tested_edges(model, "columns", SHOWN_RATE).strongest(STRONGEST)

    def touching(first, second):
        share = np.mean(np.abs(places[first] - places[second]).max(axis=1) == 1)
        return round(float(share), 3)

    return {
        "n_edges": len(edges),
        "touching": touching(edges.first, edges.second),
        "touching_by_chance": touching(*np.triu_indices(len(places), k=1)),
    }


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
