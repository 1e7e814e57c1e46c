"""
A tensor: a noise network on every axis
=======================================

Samples by genes by hours: noise can be correlated along each of the three. `TensorMNPCA` finds a
low-rank (Tucker) signal and one sparse network per axis.
"""

import matplotlib.pyplot as plt
import numpy as np

from mnpca import TensorMNPCA
from mnpca.datasets import chain_precision, make_tensor_normal, planted_precision
from mnpca.metrics import psnr

shape = (40, 30, 20)
precisions = [
    planted_precision(40, random_state=1000),
    planted_precision(30, random_state=1001),
    chain_precision(20, 0.7),
]
data = make_tensor_normal(shape, 2, precisions=precisions, random_state=1002)
model = TensorMNPCA(2).fit(data.Y)
plain = TensorMNPCA(2, noise="identity").fit(data.Y)
print(f"with networks:         {psnr(model.denoise(), data.signal):.1f} dB")
print(f"Tucker, white noise:   {psnr(plain.denoise(), data.signal):.1f} dB")

# %%
# Each network: the estimate above the diagonal, the truth below.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, found, truth, name in zip(
    axes, model.precisions_, data.precisions, ("samples", "genes", "hours"), strict=True
):
    values = []
    for precision in (found, truth):
        scale = 1 / np.sqrt(precision.diagonal())
        values.append(-precision.toarray() * scale * scale[:, None])
    image = ax.imshow(
        np.triu(values[0], 1) + np.tril(values[1], -1), cmap="RdBu_r", vmin=-0.6, vmax=0.6
    )
    ax.axline((0, 0), slope=1, color="gray", linewidth=0.5)
    ax.set(title=f"noise among {name}", xticks=[], yticks=[])
figure.colorbar(image, ax=axes, shrink=0.8, label="partial correlation")

# %%
# One sample, genes by hours: as measured, as estimated, and the truth.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
top = np.abs(data.signal[0]).max()
for ax, values, title in zip(
    axes,
    (data.Y[0], model.denoise()[0], data.signal[0]),
    ("sample 1, measured", "estimated signal", "true signal"),
    strict=True,
):
    ax.imshow(values, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto")
    ax.set(title=title, xlabel="hours", ylabel="genes", xticks=[], yticks=[])
