"""Held-out likelihood of rows of real tables: MNPCA with all defaults beside what can be forced.

Prints per set the mean log-likelihood per cell of the rows of each test fold, the scale of every
row profiled out (returns and expression have heavy tails; a fixed scale would punish the model
that is right for most rows): MNPCA with all defaults, the best rank and noise that can be forced
on it in hindsight, MNPCA without a network among rows, Ledoit-Wolf, probabilistic PCA and factor
analysis with ranks by cross-validation, and GraphicalLassoCV up to 500 columns.

Rows that err together fall into both parts of a random fold. What they share then looks as if it
held for all rows. `--apart` holds out rows that the network of a fit to the whole table does not
link with the others, as far as it falls apart.

    python benchmarks/held_out.py --data FOLDER --sets wine sonar --folds 5 --jobs 2
"""

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

sys.path.insert(0, str(Path(__file__).parents[1]))  # for reproduction/

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.covariance import GraphicalLassoCV, LedoitWolf
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.model_selection import KFold, cross_val_score

from mnpca import MNPCA
from mnpca.solvers.mnpca import fit_mnpca
from reproduction.real_sets import load_real

SMALL = [
    *("zoo", "tae", "wine", "sonar", "glass", "heart-statlog", "iono", "3sources"),
    *("balance-scale", "wisc", "vehicle", "german", "mfeat", "gesture", "eeg-eye"),
]
NETWORKS = ["alon", "khan", "sorlie", "rnamix_sortseq", "cells5", "wheat", "stocks"]
RANKS = (1, 2, 3, 5, 8, 12, 18, 27, 40)
#: A table with more rows is thinned to so many, evenly.
MOST_ROWS = 2000


def matrix(name, folder):
    """Return a table, its columns standardized."""
    if name in NETWORKS:
        file = np.load(Path(folder) / "networks" / f"{name}.npz", allow_pickle=True)
        if "counts" in file:
            counts = file["counts"][:, :500].astype(float)
            X = np.log1p(1e4 * counts / file["library"].reshape(-1, 1))
        else:
            X = file["X"].astype(float)
    else:
        X = load_real(name, data_home=folder, standardize=False).X
    X = X[:: max(1, len(X) // MOST_ROWS)]
    X = X[:, X.std(axis=0) > 1e-9 * max(np.abs(X).max(), 1.0)]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def profiled(rows, mean, covariance):
    """Mean Gaussian log-likelihood per cell, each row's scale at its maximum."""
    p = rows.shape[1]
    covariance = covariance + 1e-8 * np.trace(covariance) / p * np.eye(p)
    root = np.linalg.cholesky(covariance)
    distance = np.sum(np.linalg.solve(root, (rows - mean).T) ** 2, axis=0)
    log_volume = 2.0 * np.log(np.diag(root)).sum() / p
    values = -0.5 * (np.log(2 * np.pi * distance / p) + 1.0 + log_volume)
    return float(values.mean())


def ours(train, test, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MNPCA(**options).fit(train)
    noise = "/".join(side["structure"][0] for side in model.noise_.values())
    value = profiled(test, model.mean_, model.get_covariance())
    return value, f"{model.n_components_} {noise}"


def peer(name, train, test):
    ranks = [k for k in RANKS if k < min(2 * len(train) // 3, train.shape[1]) - 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "Ledoit-Wolf":
            model = LedoitWolf().fit(train)
            return profiled(test, model.location_, model.covariance_)
        if name == "graphical lasso":
            if train.shape[1] > 500:
                return np.nan
            model = GraphicalLassoCV().fit(train)
            return profiled(test, model.location_, model.covariance_)
        make = PCA if name == "PPCA" else FactorAnalysis
        scores = [cross_val_score(make(k), train, cv=3).mean() for k in ranks]
        model = make(ranks[int(np.argmax(scores))]).fit(train)
    return profiled(test, model.mean_, model.get_covariance())


PEERS = ("Ledoit-Wolf", "PPCA", "factors", "graphical lasso")


def one_fold(X, train, test, forced):
    """Return the likelihoods of all methods on one fold."""
    started = time.perf_counter()
    default, choice = ours(X[train], X[test])
    seconds = time.perf_counter() - started
    independent, _ = ours(X[train], X[test], noise=("diagonal", "auto"))
    rivals = {}
    if forced:
        for noise in (
            "identity",
            "diagonal",
            ("identity", "graph"),
            ("diagonal", "graph"),
            "graph",
        ):
            for k in [0, *RANKS]:
                if k < min(len(train), X.shape[1]) - 1:
                    rivals[noise, k] = forced_fit(X[train], X[test], noise, k)
    peers = [peer(name, X[train], X[test]) for name in PEERS]
    return default, choice, seconds, rivals, [independent, *peers]


def unlinked_folds(X):
    """Return five folds between which the network among the rows has few edges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MNPCA().fit(X).row_precision_
    # Neighbors in this order are linked, so that pieces of it have few links to the rest.
    order = reverse_cuthill_mckee(sp.csr_matrix(network), symmetric_mode=True)
    return [(np.setdiff1d(order, part), np.sort(part)) for part in np.array_split(order, 5)]


def forced_fit(train, test, noise, k):
    """Likelihood of a fit at exactly this rank and noise."""
    fit = fit_mnpca(train, k, noise=noise)
    model = MNPCA(k, noise=noise)
    model._store_fit(
        train,
        mean=fit.mean,
        low_rank=fit.low_rank,
        components=fit.loadings.T,
        singular_values=fit.singular_values,
        row_precision=fit.row_noise.precision,
        col_precision=fit.col_noise.precision,
    )
    return profiled(test, model.mean_, model.get_covariance())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("MNPCA_DATA"), help="folder of the files")
    parser.add_argument("--sets", nargs="+", default=SMALL + NETWORKS)
    parser.add_argument("--folds", type=int, default=5, help="folds of five that are run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--apart", action="store_true", help="hold out rows without linked ones")
    parser.add_argument("--forced", action="store_true", help="also force ranks and noise")
    args = parser.parse_args()
    if not args.data:
        parser.error("name the folder with the data by --data or the variable MNPCA_DATA")
    titles = "".join(f"{name:>17s}" for name in ("no row network", *PEERS))
    print(f"{'set':16s}{'defaults':>9s}{'forced':>8s}{titles}  seconds, choices")
    behind = []
    for name in args.sets:
        X = matrix(name, args.data)
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        folds = (unlinked_folds(X) if args.apart else folds)[: args.folds]
        runs = Parallel(args.jobs)(delayed(one_fold)(X, *fold, args.forced) for fold in folds)
        default = np.mean([run[0] for run in runs])
        rivals = {key: np.mean([run[3][key] for run in runs]) for key in runs[0][3]}
        best = max(rivals, key=rivals.get) if rivals else None
        peers = np.mean([run[4] for run in runs], axis=0)
        cells = "".join(f"{value:17.3f}" for value in peers)
        if best is not None:
            behind.append(rivals[best] - default)
        forced = "" if best is None else f"{rivals[best]:8.3f}"
        seconds = np.median([run[2] for run in runs])
        print(
            f"{name:16s}{default:9.3f}{forced:8s}{cells}  {seconds:.1f} s, "
            f"{', '.join(run[1] for run in runs)}{'' if best is None else f'; best {best}'}",
            flush=True,
        )
    if behind:
        print(
            f"behind the best forced: {np.mean(behind):.3f} in the mean, {max(behind):.3f} at most"
        )


if __name__ == "__main__":
    main()
