"""
Two Swiss rolls under correlated noise
======================================

No linear method unrolls a Swiss roll. But before a nonlinear one can, the roll must be seen: here
two interleaved rolls are measured through 200 features whose noise is correlated among samples and
among features. PCA's components are partly noise; MN-PCA's show the rolls.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from mnpca import MNPCA
from mnpca.datasets import make_low_rank_matrix_normal, make_two_swiss_rolls
from mnpca.metrics import psnr

rolls = make_two_swiss_rolls(300, noise=0.0, random_state=1000)
points = rolls.signal / rolls.signal.std()
features = np.random.RandomState(1001).standard_normal((3, 200))
data = make_low_rank_matrix_normal(
    300, 200, signal=2 * points @ features, condition=1000, density=0.02, random_state=1002
)

pca = PCA(3).fit(data.Y)
model = MNPCA(3, random_state=0).fit(data.Y)
print(f"PCA     {psnr(pca.inverse_transform(pca.transform(data.Y)), data.signal):6.2f} dB")
print(f"MN-PCA  {psnr(model.denoise(), data.signal):6.2f} dB")

# %%
# To compare with the true rolls, the scores are mapped linearly onto their three axes; the picture
# shows the plane of the spirals.
panels = {"truth": points}
for name, scores in {"PCA": pca.transform(data.Y), "MN-PCA": model.transform(data.Y)}.items():
    scores = np.column_stack([scores, np.ones(len(scores))])
    panels[name] = scores @ np.linalg.lstsq(scores, points)[0]
figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained")
for ax, (name, place) in zip(axes, panels.items(), strict=True):
    ax.scatter(place[:, 0], place[:, 2], c=rolls.labels, cmap="coolwarm", s=14)
    ax.set_title(name)
    ax.set_aspect("equal")
