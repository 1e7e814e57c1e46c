"""The leading components of MNPCA against PCA's, on single cells with a known truth.

Counts are normalized as usual: log1p(counts / library x median library), the most variable genes.
rnamix_sortseq has mixtures of three cell lines: R2 of the proportions by linear regression on the
scores, 5-fold. cells5 has five cell lines: normalized mutual information of k-means with them. The
model is fitted once; where more components are asked for than it has, again with that many.

    python benchmarks/nested.py FOLDER --genes 200 500 1000

FOLDER holds rnamix_sortseq.npz and cells5.npz.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import KFold, cross_val_score

from mnpca import MNPCA

NUMBERS = range(1, 7)
SEEDS = range(1000, 1005)


def explained(scores, proportions):
    """Return the cross-validated R2 of the proportions."""
    folds = KFold(5, shuffle=True, random_state=1000)
    return cross_val_score(LinearRegression(), scores, proportions, cv=folds).mean()


def agreement(scores, labels):
    """Return the mean normalized mutual information of k-means with the labels."""
    n_clusters = len(np.unique(labels))
    runs = [KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(scores) for seed in SEEDS]
    return np.mean([normalized_mutual_info_score(labels, run) for run in runs])


SETS = {"rnamix_sortseq": ("proportions", explained), "cells5": ("labels", agreement)}


def prepared(path, n_genes):
    """Return log-normalized counts of the most variable genes, and the file."""
    file = np.load(path, allow_pickle=True)
    library = file["library"].reshape(-1, 1).astype(float)
    values = np.log1p(file["counts"] / library * np.median(library))
    genes = np.argsort(-values.var(axis=0))[:n_genes]
    return values[:, np.sort(genes)], file


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--genes", type=int, nargs="+", default=[200, 500, 1000])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | genes | rank | seconds | nested |" + "".join(f" {k} |" for k in NUMBERS))
    gains = []
    for name, (key, measure) in SETS.items():
        for n_genes in args.genes:
            X, file = prepared(args.folder / f"{name}.npz", n_genes)
            truth = file[key]
            started = time.process_time()
            whole = MNPCA().fit(X)
            seconds = time.process_time() - started
            rank, scores = whole.n_components_, whole.transform(X)
            few = MNPCA(min(2, rank)).fit(X)
            nested = np.array_equal(few.components_, whole.components_[: min(2, rank)])
            cells = []
            for k in NUMBERS:
                own = scores[:, :k] if k <= rank else MNPCA(k).fit_transform(X)
                ours = measure(own, truth)
                plain = measure(PCA(k).fit_transform(X), truth)
                gains.append(ours - plain)
                cells.append(f" {ours:.3f} ({plain:.3f}) |")
            print(
                f"| {name} | {n_genes} | {rank} | {seconds:.0f} | {nested} |" + "".join(cells),
                flush=True,
            )
    print(f"MNPCA less PCA: mean {np.mean(gains):.3f}, least {min(gains):.3f}")


if __name__ == "__main__":
    main()
