"""Scores of samples on two components."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray
from mnpca.engines.arrays import on_host
from mnpca.plots._axes import COLORS, Display

MARKERS = "os^D"
#: Numeric labels with more values than this are shown on a color scale.
MAX_LEVELS = 12


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

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Set by `plot`.

    Examples
    --------
    >>> from mnpca import GeneralizedPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.plots import ScoresDisplay
    >>> data = make_paper_small(c=8, seed=0)
    >>> model = GeneralizedPCA(n_components=2).fit(data.Y)
    >>> display = ScoresDisplay.from_estimator(model, data.Y, labels=data.labels).plot()
    """

    def __init__(
        self,
        scores: FloatArray,
        *,
        labels: Any = None,
        components: tuple[int, int] = (0, 1),
        title: str | None = None,
    ) -> None:
        self.scores = scores
        self.labels = labels
        self.components = components
        self.title = title

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
        if title is None:
            title = type(estimator).__name__
        return cls(scores, labels=labels, components=components, title=title)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the scatter; keyword arguments go to ``Axes.scatter``.

        With a single component the second axis is the position in the data.
        """
        ax = self._axes(ax)
        first, second = self._coordinates()
        options = {"s": 18, "alpha": 0.8, "linewidths": 0, **kwargs}
        labels = self._checked_labels()
        if labels is None:
            ax.scatter(first, second, **{"color": COLORS[0], **options})
        elif labels.dtype.kind in "iuf" and len(np.unique(labels)) > MAX_LEVELS:
            dots = ax.scatter(first, second, **{"c": labels, **options})
            ax.figure.colorbar(dots, ax=ax)
        else:
            self._plot_groups(ax, first, second, labels, options)
        ax.set_xlabel(f"component {self.components[0] + 1}")
        one = self.scores.shape[1] == 1
        ax.set_ylabel("position" if one else f"component {self.components[1] + 1}")
        ax.set_title(self.title or "")
        return self

    @staticmethod
    def _plot_groups(
        ax: Any, first: FloatArray, second: FloatArray, labels: Any, options: dict[str, Any]
    ) -> None:
        # Missing labels among text are a group of their own.
        labels = labels.astype(str) if labels.dtype == object else labels
        groups, group = np.unique(labels, return_inverse=True)
        for number, name in enumerate(groups):
            chosen = group == number
            # Where colors repeat, the shape of the dots tells the groups apart.
            style = {
                "color": COLORS[number % len(COLORS)],
                "marker": MARKERS[number // len(COLORS) % len(MARKERS)],
            }
            ax.scatter(first[chosen], second[chosen], label=str(name), **{**style, **options})
        ax.legend(frameon=False)

    def _checked_labels(self) -> Any:
        if self.labels is None:
            return None
        labels = np.asarray(self.labels)
        if labels.shape != (len(self.scores),):
            raise ValueError(
                f"labels must be {len(self.scores)} values, one per row, and have {labels.shape}."
            )
        return labels

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
