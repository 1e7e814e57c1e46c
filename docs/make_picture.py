"""Draw the picture of the README: the same rows under PCA and under MN-PCA.

python docs/make_picture.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from sklearn.decomposition import PCA

from mnpca import MNPCA
from mnpca.datasets import make_paper_small
from mnpca.plots import NoiseGraphDisplay, ScoresDisplay

PICTURE = Path(__file__).parent / "_static" / "pca_beside_mnpca.png"


def draw():
    """Return the figure: PCA's scores, MN-PCA's, and the noise network among columns."""
    data = make_paper_small(c=224, seed=1000)
    labels = [f"group {label + 1}" for label in data.labels]
    model = MNPCA(random_state=0).fit(data.Y)
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    ScoresDisplay.from_estimator(PCA(2).fit(data.Y), data.Y, labels=labels).plot(axes[0])
    ScoresDisplay.from_estimator(model, data.Y, labels=labels).plot(axes[1])
    NoiseGraphDisplay.from_estimator(model, "columns").plot(axes[2], names=False)
    axes[0].set_title("PCA: the groups are lost in correlated noise")
    axes[1].set_title("MN-PCA: the same rows")
    axes[2].set_title("... and a noise network it found")
    return figure


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    draw().savefig(PICTURE, dpi=110)
    print(PICTURE)
