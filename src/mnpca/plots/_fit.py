"""How a fit went and what it leaves: objective, scree, whiteness of the residual."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca.diagnostics import (
    Correlations,
    Scree,
    histograms,
    residual_correlations,
    scree,
    training_view,
)
from mnpca.plots._axes import COLORS, MUTED, Display, count_along


class ConvergenceDisplay(Display):
    """Objective after each iteration.

    Parameters
    ----------
    objective : array
        Values in the order of the iterations.
    converged : bool
        Whether the fit stopped by itself.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Set by `plot`.

    Examples
    --------
    >>> from mnpca import LikelihoodMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.plots import ConvergenceDisplay
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> model = LikelihoodMNPCA(n_components=2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    >>> display = ConvergenceDisplay.from_estimator(model).plot()
    """

    def __init__(self, objective: Any, *, converged: bool = True) -> None:
        self.objective = np.asarray(objective, dtype=float)
        self.converged = converged

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Take the history of a fitted estimator."""
        check_is_fitted(estimator)
        return cls(estimator.objective_history_, converged=estimator.converged_)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history; keyword arguments go to ``Axes.plot``."""
        ax = self._axes(ax)
        number = np.arange(1, len(self.objective) + 1)
        options = {"color": COLORS[0], "marker": "o", "ms": 4, **kwargs}
        ax.plot(number, self.objective, **options)
        count_along(ax, "iteration")
        ax.set_ylabel("objective")
        ax.set_title("converged" if self.converged else "not converged")
        return self


class SelectionDisplay(Display):
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
        ax = self._axes(ax)
        number = np.arange(1, len(self.scree.generalized) + 1)
        ax.plot(number, self.scree.plain, "o-", color=MUTED, ms=4, lw=1, label="PCA")
        ax.plot(
            number, self.scree.generalized, "o-", color=COLORS[0], ms=5, lw=1.2, label="whitened"
        )
        kept = number <= self.scree.n_components
        ax.plot(
            number[kept],
            self.scree.generalized[kept],
            "o",
            color=COLORS[1],
            ms=7,
            label=f"kept: {self.scree.n_components}",
        )
        ax.axhline(1.0, color="black", lw=1, ls="--", label="noise edge")
        count_along(ax, "component")
        ax.set_ylabel("singular value / noise edge")
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False)
        return self


class WhitenessDisplay(Display):
    """Correlations and singular values of the residual, plain and whitened.

    Parameters
    ----------
    before, after : mnpca.diagnostics.Correlations
        Of the residual, and of the residual whitened by the two noise networks.

    Attributes
    ----------
    ax_, figure_ : matplotlib objects
        Set by `plot`.

    Examples
    --------
    >>> from mnpca import LikelihoodMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.plots import WhitenessDisplay
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> model = LikelihoodMNPCA(n_components=2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    >>> display = WhitenessDisplay.from_estimator(model, data.Y).plot()
    """

    def __init__(self, before: Correlations, after: Correlations) -> None:
        self.before = before
        self.after = after

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
        options = {"alpha": 0.6, "fill": True}
        ax.stairs(compared.before, compared.bins, color=MUTED, label="residual", **options)
        ax.stairs(compared.after, compared.bins, color=COLORS[0], label="whitened", **options)
        values = kind == "singular values"
        law = "white noise (Marchenko-Pastur)" if values else "white noise"
        ax.plot(compared.at, compared.law, color="black", lw=1.2, label=law)
        ax.set_xlabel("singular value" if values else "correlation of a pair")
        ax.set_title(f"{'' if values else 'correlations of '}{kind} of the residual")
        ax.set_ylabel("density")
        ax.legend(frameon=False)
        return self
