"""
Several matrices: one network from many small tables
====================================================

Thirty subjects, each measured in twenty regions by fifteen instruments. One table is far too small
for a network among its regions; all tables together show it, because the noise of every table has
the same one.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnpca import MNPCA
from mnpca.datasets import make_several_matrices
from mnpca.metrics import edge_recovery, psnr

data = make_several_matrices(30, 20, 15, n_components=2, random_state=1003)
together = MNPCA(2, noise="graph").fit(data.Y)
alone = MNPCA(1, noise="diagonal").fit(data.Y[0])
print(f"signal of all tables: {psnr(together.denoise(), data.signal):.1f} dB")
print(f"one table by itself:  {psnr(alone.denoise(), data.signal[0]):.1f} dB")

# %%
# The network among regions: the truth, what one table gives away (the correlations of its rows),
# and the network from all.
found = edge_recovery(together.row_precision_, data.row_precision)
print(f"{found.tpr:.0%} of the edges found, {found.ppv:.0%} of those found are true")


def partial(precision):
    """Partial correlations, the diagonal left out."""
    scale = 1 / np.sqrt(precision.diagonal())
    values = -precision.toarray() * scale * scale[:, None]
    return values - np.diag(np.diag(values))


first = np.corrcoef(data.Y[0] - alone.denoise())
pictures = {
    "truth": partial(data.row_precision),
    "one table: correlations": first - np.eye(20),
    "thirty tables: network": partial(together.row_precision_),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained")
for ax, (title, values) in zip(axes, pictures.items(), strict=True):
    image = ax.imshow(values, cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    ax.set(title=title, xticks=[], yticks=[])
figure.colorbar(image, ax=axes, shrink=0.8, label="(partial) correlation")
