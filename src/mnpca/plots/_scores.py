"""Scores of samples on two components."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca.plots._axes import COLOURS, axes


class ScoresDisplay:
    """Scatter of samples on two components.

    Parameters
    ----------
    scores : array of shape (n, k)
        Scores.
    labels : array of shape (n,), default=None
        Group of each sample: one colour each.
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

    def __init__(self, scores, *, labels=None, components=(0, 1), title=None):
        self.scores = scores
        self.labels = labels
        self.components = components
        self.title = title

    @classmethod
    def from_estimator(cls, estimator, X, *, labels=None, components=(0, 1), title=None):
        """Take the scores of X from a fitted estimator with ``transform``."""
        check_is_fitted(estimator)
        scores = np.asarray(estimator.transform(X))
        if title is None:
            title = type(estimator).__name__
        return cls(scores, labels=labels, components=components, title=title)

    def plot(self, ax=None, **kwargs):
        """Draw the scatter; keyword arguments go to ``Axes.scatter``.

        With a single component the second axis is the position in the data.
        """
        ax = axes(ax)
        first, second = self._coordinates()
        options = {"s": 18, "alpha": 0.8, "linewidths": 0, **kwargs}
        if self.labels is None:
            ax.scatter(first, second, **{"color": COLOURS[0], **options})
        else:
            labels = np.asarray(self.labels)
            for number, label in enumerate(np.unique(labels)):
                chosen = labels == label
                colour = COLOURS[number % len(COLOURS)]
                ax.scatter(
                    first[chosen], second[chosen], label=str(label), **{"color": colour, **options}
                )
            ax.legend(frameon=False)
        ax.set_xlabel(f"component {self.components[0] + 1}")
        one = self.scores.shape[1] == 1
        ax.set_ylabel("position" if one else f"component {self.components[1] + 1}")
        ax.set_title(self.title or "")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _coordinates(self):
        if self.scores.shape[1] == 0:
            raise ValueError("the fit has no component: there are no scores to draw.")
        if self.scores.shape[1] == 1:
            return self.scores[:, 0], np.arange(len(self.scores))
        return self.scores[:, self.components[0]], self.scores[:, self.components[1]]
