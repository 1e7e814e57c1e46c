"""Scores of samples; how a fit went and what it leaves: objective, scree, whiteness.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray
from mnpca.diagnostics import (
    Correlations,
    Scree,
    histograms,
    residual_correlations,
    scree,
    training_view,
)
from mnpca.engines.arrays import on_host

#: Colors that stay apart for most kinds of color vision (after Okabe and Ito).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5e4fa2", "#8c6d31")
MUTED = "#9aa0a6"
MARKERS = "os^D"
#: Numeric labels with more values than this are shown on a color scale, and get no legend.
MAX_LEVELS = 12


class Display:
    """What is drawn keeps its axes and its figure."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        """Return the given axes, or those of a new figure."""
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


def _count_along(ax: Any, name: str) -> None:
    """Let the first axis count whole things: iterations, components."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


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


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display):
    """Objective after each iteration.

    Parameters
    ----------
    objective : array
        Values in the order of the iterations.
    converged : bool, default=True
        Whether the fit stopped by itself.

    Examples
    --------
    >>> display = mnpca.plots.ConvergenceDisplay.from_estimator(model).plot()
    """

    objective: Any
    _: KW_ONLY
    converged: bool = True

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the history of a fitted estimator."""
        check_is_fitted(estimator)
        return cls(estimator.objective_history_, converged=estimator.converged_)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history; keyword arguments go to ``Axes.plot``."""
        ax = self._axes(ax)
        options = {"color": COLORS[0], "marker": "o", "ms": 4, **kwargs}
        ax.plot(np.arange(1, len(self.objective) + 1), self.objective, **options)
        _count_along(ax, "iteration")
        ax.set_ylabel("objective")
        ax.set_title("converged" if self.converged else "not converged")
        return self


@dataclass(eq=False, repr=False)
class SelectionDisplay(Display):
    """Scree of the data before and after whitening, with the noise edge and the chosen rank.

    Parameters
    ----------
    scree : mnpca.diagnostics.Scree
        Leading singular values in units of the noise edge.

    Examples
    --------
    >>> display = mnpca.plots.SelectionDisplay.from_estimator(model, X).plot()
    """

    scree: Scree

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, count: int = 20) -> Self:
        """Take the leading singular values of the training data X."""
        return cls(scree(*training_view(estimator, X), count=count))

    def plot(self, ax: Any = None) -> Self:
        """Draw the two screes; the edge of the noise is 1."""
        ax = self._axes(ax)
        plain, whitened, kept = self.scree.plain, self.scree.generalized, self.scree.n_components
        number = np.arange(1, len(whitened) + 1)
        ax.plot(number, plain, "o-", color=MUTED, ms=4, lw=1, label="PCA")
        ax.plot(number, whitened, "o-", color=COLORS[0], ms=5, lw=1.2, label="whitened")
        marks = {"color": COLORS[1], "ms": 7, "label": f"kept: {kept}"}
        ax.plot(number[:kept], whitened[:kept], "o", **marks)
        ax.axhline(1.0, color="black", lw=1, ls="--", label="noise edge")
        _count_along(ax, "component")
        ax.set_ylabel("singular value / noise edge")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)
        return self


@dataclass(eq=False, repr=False)
class WhitenessDisplay(Display):
    """Correlations and singular values of the residual, plain and whitened.

    Parameters
    ----------
    before, after : mnpca.diagnostics.Correlations
        Of the residual, and of the residual whitened by the two noise networks.

    Examples
    --------
    >>> display = mnpca.plots.WhitenessDisplay.from_estimator(model, X).plot()
    """

    before: Correlations
    after: Correlations

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any) -> Self:
        """Take the residual of the training data X from a fitted estimator."""
        return cls(*residual_correlations(*training_view(estimator, X)))

    def plot(self, ax: Any = None, *, kind: str = "singular values") -> Self:
        """Draw one of the three comparisons.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; a new figure if None.
        kind : {"singular values", "rows", "columns"}, default="singular values"
            Singular values against the Marchenko-Pastur law, or correlations of pairs of rows or
            columns against those of white noise.
        """
        compared = histograms(self.before, self.after, kind)
        ax = self._axes(ax)
        for bars, color, label in (
            (compared.before, MUTED, "residual"),
            (compared.after, COLORS[0], "whitened"),
        ):
            ax.stairs(bars, compared.bins, color=color, label=label, alpha=0.6, fill=True)
        values = kind == "singular values"
        law = "white noise (Marchenko-Pastur)" if values else "white noise"
        ax.plot(compared.at, compared.law, color="black", lw=1.2, label=law)
        ax.set_xlabel("singular value" if values else "correlation of a pair")
        ax.set_title(f"{'' if values else 'correlations of '}{kind} of the residual")
        ax.set_ylabel("density")
        ax.legend(frameon=False)
        return self
