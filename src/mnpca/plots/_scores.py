"""Scores of samples on two components.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray
from mnpca.engines.arrays import on_host
from mnpca.plots._display import COLORS, MAX_LEVELS, Display

MARKERS = "os^D"


@dataclass(eq=False, repr=False)
class ScoresDisplay(Display):
    """Scatter of samples on two components.

    Parameters
    ----------
    scores : array of shape (n, k)
        Scores.
    labels : array of shape (n,), default=None
        Group of each sample, one color each; numbers of many values, on a color scale.
    components : tuple of int, default=(0, 1)
        Components on the two axes, from 0.
    title : str, default=None
        Title of the axes.

    Examples
    --------
    >>> display = mnpca.plots.ScoresDisplay.from_estimator(model, X).plot()
    """

    scores: FloatArray
    _: KW_ONLY
    labels: Any = None
    components: tuple[int, int] = (0, 1)
    title: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        labels: Any = None,
        components: tuple[int, int] = (0, 1),
        title: str | None = None,
    ) -> Self:
        """Take the scores of X from a fitted estimator with ``transform``."""
        check_is_fitted(estimator)
        scores = np.asarray(on_host(estimator.transform(X)))
        title = type(estimator).__name__ if title is None else title
        return cls(scores, labels=labels, components=components, title=title)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the scatter; keyword arguments go to ``Axes.scatter``.

        With a single component the second axis is the position in the data.
        """
        ax = self._axes(ax)
        first, second = self._coordinates()
        options = {"s": 18, "alpha": 0.8, "linewidths": 0, **kwargs}
        labels = None if self.labels is None else np.asarray(self.labels)
        if labels is not None and labels.shape != (len(self.scores),):
            raise ValueError(
                f"labels must be {len(self.scores)} values, one per row, and have {labels.shape}."
            )
        if labels is None:
            ax.scatter(first, second, **{"color": COLORS[0], **options})
        elif labels.dtype.kind in "iuf" and len(np.unique(labels)) > MAX_LEVELS:
            dots = ax.scatter(first, second, **{"c": labels, **options})
            ax.figure.colorbar(dots, ax=ax)
        else:
            # Missing labels among text are a group of their own.
            labels = labels.astype(str) if labels.dtype == object else labels
            groups, group = np.unique(labels, return_inverse=True)
            for number, name in enumerate(groups):
                # Where colors repeat, the shape of the dots tells the groups apart.
                turn, color = divmod(number, len(COLORS))
                style = {"color": COLORS[color], "marker": MARKERS[turn % len(MARKERS)]} | options
                chosen = group == number
                ax.scatter(first[chosen], second[chosen], label=str(name), **style)
            ax.legend(frameon=False)
        ax.set_xlabel(f"component {self.components[0] + 1}")
        one = self.scores.shape[1] == 1
        ax.set_ylabel("position" if one else f"component {self.components[1] + 1}")
        ax.set_title(self.title or "")
        return self

    def _coordinates(self) -> tuple[Any, Any]:
        count = self.scores.shape[1]
        if count == 0:
            raise ValueError("the fit has no component: there are no scores to draw.")
        if count == 1:
            return self.scores[:, 0], np.arange(len(self.scores))
        if not all(0 <= number < count for number in self.components):
            raise ValueError(
                f"components must be two numbers from 0 to {count - 1}, got {self.components}."
            )
        return self.scores[:, self.components[0]], self.scores[:, self.components[1]]
