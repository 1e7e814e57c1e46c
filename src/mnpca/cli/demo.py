"""``mnpca demo``: PCA beside MN-PCA on data that PCA cannot read, and the network of pixels."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from mnpca import datasets
from mnpca.cli.fit import REPORT_FILE, export, fit_table
from mnpca.diagnostics import SHOWN_RATE, named_rows, tested_edges
from mnpca.estimators import MNPCA
from mnpca.io import Table, new_folder
from mnpca.metrics import nmi, psnr

CONDITION, SEED = 224, 1000
#: Every third image of a digit; how many edges among its pixels are compared with the grid.
STEP, STRONGEST = 3, 60


def fit_demo(output, callback):
    """Fit the data and write the results; return them, and comparisons with PCA and the grid."""
    data, table = demo_data()
    images, places = digits_data()
    with new_folder(output, overwrite=True) as folder:
        (folder / "digits").mkdir()
        fitted, results = _fit(folder, table, "the paper's small data", callback)
        digits, _ = _fit(folder / "digits", images, "handwritten digits", callback)
    grid = compare_with_grid(digits.model, places)
    grid["report"] = str((output / "digits" / REPORT_FILE).resolve())
    return results._replace(folder=output), compare(data, fitted.model), grid


def _fit(folder, table, source, callback):
    fitted = fit_table(MNPCA(random_state=0), table, callback=callback)
    return fitted, export(folder, fitted, table, source=source, algorithm="mnpca")


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
