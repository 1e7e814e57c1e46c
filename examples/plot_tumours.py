"""
Tumors: which measurements err together
========================================

569 tumors, ten characteristics of the cell nuclei, each as a mean, a standard error and a worst
value over the nuclei: 30 columns. The scores separate benign from malignant, as PCA's do; what PCA
does not give is the network of measurements whose deviations from the low-rank signal go together.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mnpca import MNPCA, ModelCheckWarning
from mnpca.plots import NoiseGraphDisplay, ScoresDisplay

tumors = load_breast_cancer(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(np.log1p(tumors.data))
diagnosis = tumors.target.map(lambda number: tumors.target_names[number])

# %%
# Two components are shown; the networks are fitted beside all components that the evidence finds.
# As most real data, these are not what the model says to the letter, so we read the strongest edges
# only.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ModelCheckWarning)
    model = MNPCA(2, random_state=0).fit(X)
print(model.choice_)
print(model.model_check_["advice"])

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
ScoresDisplay.from_estimator(PCA(2).fit(X), X, labels=diagnosis).plot(axes[0])
ScoresDisplay.from_estimator(model, X, labels=diagnosis).plot(axes[1])

# %%
# The 25 strongest edges: blue ones rise and fall together, orange ones against each other, given
# the components and all other measurements.
NoiseGraphDisplay.from_estimator(model, "columns").plot(max_edges=25)

# %%
# As numbers. Nobody told the model which columns are versions of one characteristic, or that
# perimeter and area measure one outline.
graph = model.noise_graph("columns")
edges = sorted(graph.edges(data=True), key=lambda e: -abs(e[2]["partial_correlation"]))
for first, second, edge in edges[:12]:
    names = graph.nodes[first]["name"], graph.nodes[second]["name"]
    print(f"{edge['partial_correlation']:+.2f}  {names[0]} - {names[1]}")


# %%
# How many of the 25 join versions of one characteristic? By chance it would be 30 of all 435 pairs,
# one in fifteen.
def characteristic(node):
    words = graph.nodes[node]["name"].split()
    return " ".join(word for word in words if word not in ("mean", "error", "worst"))


same = sum(characteristic(first) == characteristic(second) for first, second, _ in edges[:25])
print(f"{same} of 25")
