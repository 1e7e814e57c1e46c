"""
Digits: the network of the pixels, found without being told
===========================================================

Images of handwritten digits, eight by eight pixels, come as a table: a row for each image, a column
for each pixel. The table does not say which pixels are neighbors. The components are the shapes of
digits; what an image deviates from them by, a line a little thicker or further to the left, moves
neighboring pixels together. So the network among the columns should be the grid of the image.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mnpca import MNPCA, ModelCheckWarning

# %%
# Every third image, and the pixels that vary. Gray levels from 0 to 16 are not Gaussian, and the
# check of the model says so.
images = load_digits().data[::3]
pixels = np.flatnonzero(load_digits().data.std(axis=0) > 0.5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ModelCheckWarning)
    model = MNPCA(random_state=0).fit(images[:, pixels])
print(images[:, pixels].shape)
print(model.choice_)
print(model.model_check_["advice"])

# %%
# The edges with a false discovery rate of 5%, strongest first, and where they lie: two pixels are
# neighbors if they touch, also by a corner.
row, col = np.divmod(pixels, 8)


def touching(first, second):
    steps = np.maximum(np.abs(row[first] - row[second]), np.abs(col[first] - col[second]))
    return steps == 1


table = model.edges("columns", fdr=0.05)
order = np.argsort(-np.abs(np.asarray(table["partial_correlation"])))
first, second = (np.asarray(table[name])[order] for name in ("node_1", "node_2"))
strength = np.asarray(table["partial_correlation"])[order]
all_pairs = np.triu_indices(len(pixels), 1)
correlation = np.corrcoef(images[:, pixels].T)[all_pairs]
strongest = np.argsort(-np.abs(correlation))[:60]
print(f"{len(table)} edges among {len(all_pairs[0])} pairs of pixels")
print(f"neighbors among the 60 strongest edges: {touching(first, second)[:60].mean():.0%}")
print(
    "neighbors among the 60 strongest correlations: "
    f"{touching(all_pairs[0][strongest], all_pairs[1][strongest]).mean():.0%}"
)
print(f"neighbors among all pairs: {touching(*all_pairs).mean():.0%}")

# %%
# The 60 strongest on the grid: blue pixels get darker together, orange ones one at the cost of the
# other. Strokes are mostly upright, and so are the edges. The few long ones join the top and the
# bottom of a column: a tall digit reaches both.
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
axes[0].imshow(images[0].reshape(8, 8), cmap="Greys")
axes[0].set_title("an image")
axes[1].imshow(images.mean(axis=0).reshape(8, 8), cmap="Greys", alpha=0.25)
for a, b, partial in zip(first[:60], second[:60], strength[:60], strict=True):
    axes[1].plot(
        col[[a, b]],
        row[[a, b]],
        color="C0" if partial > 0 else "C1",
        lw=8 * abs(partial),
        alpha=0.8,
    )
axes[1].scatter(col, row, s=12, color="black", zorder=3)
axes[1].set_title("60 strongest edges among pixels")
for axis in axes:
    axis.set(xticks=[], yticks=[])
