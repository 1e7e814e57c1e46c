"""
Single cells: an AnnData object and scanpy
==========================================

Simulated log expression of 240 cells of three types, with groups of co-regulated genes and cells
that share a droplet batch. ``mnpca.interop.anndata.mnpca`` writes scores, loadings and networks
where scanpy expects them.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mnpca.datasets import make_low_rank_matrix_normal, random_sparse_precision
from mnpca.interop.anndata import fit_anndata
from mnpca.plots import ScoresDisplay

# %%
# Cells of three types differ in 60 marker genes; noise has a network among genes and one among
# cells.
rng = np.random.RandomState(1000)
cell_type = np.repeat(["T", "B", "NK"], 80)
profiles = np.zeros((3, 150))
for number in range(3):
    profiles[number, 20 * number : 20 * (number + 1)] = 2.0
signal = profiles[np.repeat(np.arange(3), 80)]
data = make_low_rank_matrix_normal(
    240,
    150,
    signal=signal,
    row_precision=random_sparse_precision(240, 0.01, 64, rng),
    col_precision=random_sparse_precision(150, 0.01, 64, rng),
    random_state=rng,
)
adata = anndata.AnnData(
    5.0 + data.Y,
    obs=pd.DataFrame({"cell_type": cell_type}, index=[f"cell{i}" for i in range(240)]),
    var=pd.DataFrame(index=[f"gene{j}" for j in range(150)]),
)

# %%
# One call; then everything is in the object and survives ``write_h5ad``.
fit_anndata(adata)
print(adata)
print("components:", adata.uns["mnpca"]["n_components"])

# %%
# Scanpy finds the neighborhoods under ``mnpca_neighbors`` (from the scores) and ``mnpca_noise``
# (the noise network among cells)::
#
#     sc.tl.leiden(adata, neighbors_key="mnpca_neighbors", flavor="igraph", n_iterations=2)
#     sc.tl.umap(adata, neighbors_key="mnpca_neighbors")
scores = adata.obsm["X_mnpca"]
ScoresDisplay(scores, labels=adata.obs["cell_type"].to_numpy(), title="X_mnpca").plot()

# %%
# The genes' noise network as a sparse matrix in ``varp``.
figure, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.spy(adata.varp["mnpca_precision"], markersize=1)
ax.set_title("gene precision")
