"""
Learned priors: groups of samples, features that take no part
=============================================================

Samples of three kinds, two components in which most features take no part, and noise that links
samples and features. What scores and loadings are drawn from is learned from the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnpca import MNPCA
from mnpca.datasets import make_paper_small
from mnpca.metrics import psnr

data = make_paper_small(c=32, seed=1000)
models = {prior: MNPCA(2, prior=prior).fit(data.Y) for prior in ("gaussian", "auto")}
learned = models["auto"].priors_
groups = learned["rows"]["groups"].argmax(axis=1)
print({side: prior["family"] for side, prior in learned.items()}, np.bincount(groups))

# %%
# The denoised samples, on the same two axes. With Gaussian priors every sample keeps noise of its
# own. Learned priors know that samples of one kind have the same scores; the color is the group
# that a sample most likely belongs to.
figure, panels = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
axes = np.linalg.svd(data.signal - data.signal.mean(axis=0), full_matrices=False)[2][:2]
for panel, (prior, model) in zip(panels, models.items(), strict=False):
    signal = model.denoise()
    samples = (signal - signal.mean(axis=0)) @ axes.T
    panel.scatter(*samples.T, c=groups, cmap="viridis", s=12)
    panel.set_title(f'prior="{prior}": {psnr(signal, data.signal):.0f} dB')

# %%
# Features with a large probability of zero take no part in the signal.
zero = learned["columns"]["zero"]
takes_part = np.abs(data.signal - data.signal.mean(axis=0)).sum(axis=0) > 0
for name, chosen in (("take part", takes_part), ("do not", ~takes_part)):
    panels[2].hist(zero[chosen], bins=np.linspace(0, 1, 21), alpha=0.6, label=f"truly {name}")
panels[2].set(title="features", xlabel="probability of zero")
panels[2].legend()
plt.show()
