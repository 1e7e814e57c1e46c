"""How many components stand above the noise."""

from typing import Any, Self

import numpy as np

from mnpca.diagnostics import Scree, scree, training_view
from mnpca.plots._axes import COLOURS, MUTED, axes, count_along


class SelectionDisplay:
    """Scree of the data before and after whitening, with the noise edge and the chosen rank.

    Parameters
    ----------
    scree : mnpca.diagnostics.Scree
        Leading singular values in units of the noise edge.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Set by `plot`.

    Examples
    --------
    >>> from mnpca import GeneralizedPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.plots import SelectionDisplay
    >>> data = make_paper_small(c=8, seed=0)
    >>> model = GeneralizedPCA(n_components=2).fit(data.Y)
    >>> display = SelectionDisplay.from_estimator(model, data.Y).plot()
    """

    def __init__(self, scree: Scree) -> None:
        self.scree = scree

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, count: int = 20) -> Self:
        """Take the leading singular values of the training data X."""
        return cls(scree(*training_view(estimator, X), count=count))

    def plot(self, ax: Any = None) -> Self:
        """Draw the two screes; the edge of the noise is 1."""
        ax = axes(ax)
        number = np.arange(1, len(self.scree.generalized) + 1)
        ax.plot(number, self.scree.plain, "o-", color=MUTED, ms=4, lw=1, label="PCA")
        ax.plot(
            number, self.scree.generalized, "o-", color=COLOURS[0], ms=5, lw=1.2, label="whitened"
        )
        kept = number <= self.scree.n_components
        ax.plot(
            number[kept],
            self.scree.generalized[kept],
            "o",
            color=COLOURS[1],
            ms=7,
            label=f"kept: {self.scree.n_components}",
        )
        ax.axhline(1.0, color="black", lw=1, ls="--", label="noise edge")
        count_along(ax, "component")
        ax.set_ylabel("singular value / noise edge")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
