"""The objective along a fit."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mnpca.plots._axes import COLOURS, axes, count_along


class ConvergenceDisplay:
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
        ax = axes(ax)
        number = np.arange(1, len(self.objective) + 1)
        options = {"color": COLOURS[0], "marker": "o", "ms": 4, **kwargs}
        ax.plot(number, self.objective, **options)
        count_along(ax, "iteration")
        ax.set_ylabel("objective")
        ax.set_title("converged" if self.converged else "not converged")
        self.ax_, self.figure_ = ax, ax.figure
        return self
