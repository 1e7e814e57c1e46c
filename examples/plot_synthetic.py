"""
Where PCA fails and MN-PCA does not
===================================

Three groups of rows in noise that is correlated among rows *and* among columns: the small data of
the MN-PCA paper at its hardest setting (condition number 224). PCA takes the correlated noise for
signal; MN-PCA estimates the two noise networks and looks at what is left.
"""

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from mnpca import MNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import nmi, psnr
from mnpca.plots import NoiseGraphDisplay, ScoresDisplay, SelectionDisplay, WhitenessDisplay

data = make_paper_small(c=224, seed=1000)
pca = PCA(2).fit(data.Y)
model = MNPCA(random_state=0).fit(data.Y)

print("components found:", model.n_components_)
print(f"{'':8}{'PSNR':>8}{'NMI':>8}")
rows = {
    "PCA": (pca.inverse_transform(pca.transform(data.Y)), pca.transform(data.Y)),
    "MN-PCA": (model.denoise(), model.transform(data.Y)),
}
for name, (signal, scores) in rows.items():
    print(f"{name:8}{psnr(signal, data.signal):8.2f}{nmi(scores, data.labels):8.1f}")

# %%
# The same rows under both methods.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
ScoresDisplay.from_estimator(pca, data.Y, labels=data.labels).plot(axes[0])
ScoresDisplay.from_estimator(model, data.Y, labels=data.labels).plot(axes[1])

# %%
# Why: after whitening, two singular values stand above the noise edge. Before, many do.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
SelectionDisplay.from_estimator(model, data.Y).plot(axes[0])
WhitenessDisplay.from_estimator(model, data.Y).plot(axes[1])

# %%
# The noise networks themselves.
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
NoiseGraphDisplay.from_estimator(model, "rows").plot(axes[0])
NoiseGraphDisplay.from_estimator(model, "columns").plot(axes[1])
