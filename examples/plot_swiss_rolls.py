"""
Two Swiss rolls: what a linear method can and cannot do
=======================================================

Two interleaved rolls in three dimensions. No linear projection unrolls them, and with three
columns there is hardly a column network to find. The paper uses this data to show what its
likelihood algorithm makes of the *row* network: rows that deviate together are neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from mnpca import LikelihoodMNPCA
from mnpca.datasets import make_two_swiss_rolls
from mnpca.plots import ScoresDisplay

data = make_two_swiss_rolls(200, random_state=1000)
pca = PCA(2).fit(data.Y)
model = LikelihoodMNPCA(2, random_state=0).fit(data.Y)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
ScoresDisplay.from_estimator(pca, data.Y, labels=data.labels).plot(axes[0])
ScoresDisplay.from_estimator(model, data.Y, labels=data.labels).plot(axes[1])

# %%
# How often do the two ends of an edge among rows lie on the same roll, and how far apart are they
# compared with any two points?
graph = model.noise_graph("rows")
pairs = np.array(graph.edges)
print(f"{len(pairs)} edges among {len(data.Y)} rows")
if len(pairs):
    same = np.mean(data.labels[pairs[:, 0]] == data.labels[pairs[:, 1]])
    print(f"same roll: {100 * same:.0f}% of the edges")
