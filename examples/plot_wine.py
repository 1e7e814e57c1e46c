"""
Wine: which measurements err together
=====================================

178 wines from three cultivars, 13 chemical measurements. The scores separate the cultivars, as
PCA's do; what PCA does not give is the network of measurements whose deviations from the low-rank
signal go together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mnpca import MNPCA
from mnpca.plots import NoiseGraphDisplay, ScoresDisplay

wine = load_wine(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(wine.data)
cultivar = wine.target.map(lambda number: wine.target_names[number])

pca = PCA(2).fit(X)
model = MNPCA(2, noise="graph", random_state=0).fit(X)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
ScoresDisplay.from_estimator(pca, X, labels=cultivar).plot(axes[0])
ScoresDisplay.from_estimator(model, X, labels=cultivar).plot(axes[1])

# %%
# The network among the measurements: blue edges rise and fall together, orange ones against each
# other, given the two components and all other measurements.
NoiseGraphDisplay.from_estimator(model, "columns").plot()

# %%
# The same as numbers.
graph = model.noise_graph("columns")
edges = sorted(graph.edges(data=True), key=lambda e: -abs(e[2]["partial_correlation"]))
for first, second, edge in edges[:8]:
    names = graph.nodes[first]["name"], graph.nodes[second]["name"]
    print(f"{edge['partial_correlation']:+.2f}  {names[0]} - {names[1]}")
