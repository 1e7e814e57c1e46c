"""The networks of real matrices against a truth that is not in the matrix, all defaults.

- stocks: daily returns of 452 stocks. How many column edges lie within a sector?
- wheat: 1279 markers of 599 lines. How related are lines with an edge, by their pedigree?
- digits: scikit-learn's images of 8 x 8 pixels, the pixels with a standard deviation above .5. How
  many of the 60 strongest column edges join neighbors?

The figure for all pairs is what edges at random would give.

    python benchmarks/outside_truth.py FOLDER

FOLDER holds stocks.npz and wheat.npz; digits come with scikit-learn.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from mnpca import MNPCA

#: Of the digits' edges.
STRONGEST = 60


def stocks(folder):
    """Return returns, and for every pair of columns whether they share a sector."""
    file = np.load(folder / "stocks.npz", allow_pickle=True)
    sectors = file["col_labels"]
    return file["X"].astype(float), "columns", sectors[:, None] == sectors, None


def wheat(folder):
    """Return markers, and the relationship of every pair of rows."""
    file = np.load(folder / "wheat.npz", allow_pickle=True)
    return file["X"].astype(float), "rows", file["row_relationship"], None


def digits(folder):
    """Return images, and for every pair of pixels whether they touch."""
    images = load_digits().data
    kept = np.flatnonzero(images.std(axis=0) > 0.5)
    place = np.stack(np.divmod(kept, 8), axis=1)
    apart = np.abs(place[:, None] - place).max(axis=2)
    return images[:, kept], "columns", apart == 1, STRONGEST


SETS = {"stocks": stocks, "wheat": wheat, "digits": digits}


def edges_of(precision):
    """Return pairs of items with an edge, the strongest first."""
    scale = sp.diags_array(1.0 / np.sqrt(precision.diagonal()))
    partial = sp.coo_array(sp.triu(scale @ precision @ scale, 1))
    order = np.argsort(-np.abs(partial.data))
    return partial.row[order], partial.col[order]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| data | components | rows | columns | edges | truth at edges | at all pairs | seconds |"
    )
    for name in args.sets:
        X, axis, truth, strongest = SETS[name](args.folder)
        started = time.process_time()
        model = MNPCA().fit(X)
        seconds = time.process_time() - started
        sides = [model.noise_[side]["structure"] for side in ("rows", "columns")]
        precision = model.col_precision_ if axis == "columns" else model.row_precision_
        i, j = edges_of(precision)
        mean = truth[i[:strongest], j[:strongest]].mean() if len(i) else np.nan
        chance = truth[np.triu_indices(len(truth), 1)].mean()
        print(
            f"| {name} | {model.n_components_} | {sides[0]} | {sides[1]} | {len(i)} of {axis} | "
            f"{mean:.3f} | {chance:.3f} | {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
