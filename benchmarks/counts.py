"""Single cells: components of MNPCA against scanpy's PCA, where the truth is known.

    python benchmarks/counts.py mixology FOLDER   # cells5.npz and rnamix_sortseq.npz in FOLDER
    python benchmarks/counts.py pbmc              # scanpy's pbmc68k_reduced

Both methods get the same values: `normalize_counts` for the counts of mixology; the raw part of
pbmc68k_reduced is normalized already. cells5 has five cell lines (normalized mutual information of
k-means with the labels), rnamix_sortseq mixtures of three (share R2 of the variance of the
proportions that a regression on two components explains), pbmc68k_reduced ten types of blood cells
(adjusted Rand index of Leiden clusters; share of the cells whose type their neighbors name).
"""

import argparse
import warnings
from pathlib import Path

import anndata
import numpy as np
import scanpy as sc
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mnpca.interop.anndata import fit_anndata, normalize_counts

SEEDS = range(1000, 1005)
RESOLUTIONS = (0.5, 1.0, 1.5)
#: "auto" is the number that MNPCA chooses; PCA gets the same.
NUMBERS = {"cells5": (4, 10, "auto"), "rnamix_sortseq": (2, "auto"), "pbmc": (10, 30, "auto")}


def read(path):
    """Return the counts as normalized values, and the truth."""
    stored = np.load(path)
    adata = anndata.AnnData(stored["counts"].astype(float))
    adata.obs["library"] = stored["library"]
    normalize_counts(adata)
    return adata, stored["labels" if "labels" in stored else "proportions"]


def scores(adata, number):
    """Yield the name of each method and its scores, PCA with as many components as MNPCA."""
    fit_anndata(adata, n_comps=number)
    ours = adata.obsm["X_mnpca"]
    sc.pp.pca(adata, n_comps=ours.shape[1])
    yield "scanpy PCA", adata.obsm["X_pca"]
    yield "MNPCA", ours


def agreement(found, labels):
    """Return the mean normalized mutual information of k-means over the seeds."""
    n_clusters = len(set(labels))
    return np.mean(
        [
            normalized_mutual_info_score(
                labels, KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(found)
            )
            for seed in SEEDS
        ]
    )


def explained(found, proportions):
    """Return R2 of the proportions."""
    return LinearRegression().fit(found, proportions).score(found, proportions)


def mixology(folder):
    """Print the table of the two sets with known cell lines."""
    print("| data | components | method | what | value |\n|---|---|---|---|---|")
    for name, measure, what in (
        ("cells5", agreement, "NMI"),
        ("rnamix_sortseq", explained, "R2"),
    ):
        adata, truth = read(Path(folder) / f"{name}.npz")
        for number in NUMBERS[name]:
            for method, found in scores(adata, number):
                shown = f"{found.shape[1]}{' (auto)' * (number == 'auto')}"
                print(f"| {name} | {shown} | {method} | {what} | {measure(found, truth):.3f} |")


def leiden(adata, found):
    """Return the mean adjusted Rand index of Leiden clusters over resolutions and seeds."""
    adata.obsm["X_used"] = found
    values = []
    for seed in SEEDS:
        sc.pp.neighbors(adata, use_rep="X_used", random_state=seed)
        for resolution in RESOLUTIONS:
            sc.tl.leiden(
                adata,
                resolution=resolution,
                random_state=seed,
                flavor="igraph",
                n_iterations=2,
                directed=False,
            )
            values.append(adjusted_rand_score(adata.obs["bulk_labels"], adata.obs["leiden"]))
    return np.mean(values)


def pbmc():
    """Print the table of the blood cells."""
    print(
        "| components | method | adjusted Rand index | named by 15 neighbors |\n|---|---|---|---|"
    )
    adata = sc.datasets.pbmc68k_reduced().raw.to_adata()
    for number in NUMBERS["pbmc"]:
        for method, found in scores(adata, number):
            shown = f"{found.shape[1]}{' (auto)' * (number == 'auto')}"
            types = adata.obs["bulk_labels"].to_numpy()
            named = cross_val_score(KNeighborsClassifier(15), found, types, cv=10).mean()
            print(f"| {shown} | {method} | {leiden(adata, found):.3f} | {named:.3f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["mixology", "pbmc"])
    parser.add_argument("folder", nargs="?", default=".")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.task == "mixology":
        mixology(args.folder)
    else:
        pbmc()
