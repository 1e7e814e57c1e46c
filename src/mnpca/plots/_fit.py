"""How a fit went and what it leaves: objective, scree, whiteness of the residual.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

from dataclasses import KW_ONLY, dataclass
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
from mnpca.plots._display import COLORS, MUTED, Display, count_along


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
        count_along(ax, "iteration")
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
        count_along(ax, "component")
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
