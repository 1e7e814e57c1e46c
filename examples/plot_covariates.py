"""
Batches and other covariates, removed inside the fit
====================================================

Samples from three batches, in the order they were measured; neighbors in that order share noise.
The batch effects are estimated together with the noise, by generalized least squares, and the
scores are free of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_paper_small

n = 240
data = make_paper_small(c=8, seed=1000, n_samples=n, row_precision=chain_precision(n, 0.7))
rng = np.random.default_rng(0)
batch = rng.integers(0, 3, n)
effects = rng.standard_normal((3, 200))
X = data.Y + effects[batch]
batches = np.eye(3)[batch]

plain = MNPCA(4, noise="graph").fit(X)
model = MNPCA(2, noise="graph", center=True).fit(X, row_covariates=batches)

# %%
# Without covariates the batches are the strongest components; with them the three groups are.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
scores = plain.transform(X), model.transform(X, row_covariates=batches)
for axis, points, title in zip(axes, scores, ("no covariates", "batches given"), strict=True):
    for group in np.unique(data.labels):
        for b, marker in enumerate("os^"):
            chosen = (data.labels == group) & (batch == b)
            axis.scatter(*points[chosen, :2].T, s=18, marker=marker, color=f"C{group}")
    axis.set(title=title, xlabel="component 1", ylabel="component 2")
figure.suptitle("color: group, marker: batch")

# %%
# The effects, against those of least squares before any fit.
centered = batches - batches.mean(axis=0)
before = np.linalg.pinv(centered) @ (X - X.mean(axis=0))
truth = centered @ effects
for name, coef in (("least squares before", before), ("inside the fit", model.row_coef_)):
    print(
        f"{name:>20}: error of the effects {np.sqrt(np.mean((centered @ coef - truth) ** 2)):.3f}"
    )
