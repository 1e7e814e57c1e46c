"""The residual before and after the noise networks are taken out."""

from typing import Any, Self

import numpy as np

from mnpca._typing import FloatArray
from mnpca.diagnostics import Correlations, correlations, marchenko_pastur, training_view, whiten
from mnpca.plots._axes import COLOURS, MUTED, axes


class WhitenessDisplay:
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
        model, X = training_view(estimator, X)
        residual = X - model.denoise()
        whitened = whiten(residual, model.row_precision_, model.col_precision_)
        return cls(correlations(residual), correlations(whitened))

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
        ax = axes(ax)
        if kind == "singular values":
            self._plot_values(ax)
        elif kind in ("rows", "columns"):
            self._plot_correlations(ax, kind)
        else:
            raise ValueError(f'kind must be "singular values", "rows" or "columns", got {kind!r}.')
        ax.set_ylabel("density")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_values(self, ax: Any) -> None:
        before, after = self.before.singular_values, self.after.singular_values
        shape = self.after.shape
        top = 1.05 * max(before[0], after[0], sum(np.sqrt(shape)))
        self._histograms(ax, before, after, np.linspace(0, top, 60))
        at = np.linspace(0, top, 400)
        law = marchenko_pastur(at, shape)
        ax.plot(at, law, color="black", lw=1.2, label="white noise (Marchenko-Pastur)")
        ax.set_xlabel("singular value")
        ax.set_title("singular values of the residual")

    def _plot_correlations(self, ax: Any, kind: str) -> None:
        attribute = "row_correlations" if kind == "rows" else "column_correlations"
        before, after = getattr(self.before, attribute), getattr(self.after, attribute)
        spread = 1 / np.sqrt(self.after.shape[1] if kind == "rows" else self.after.shape[0])
        limit = min(1.0, 8 * spread)
        self._histograms(ax, before, after, np.linspace(-limit, limit, 61))
        at = np.linspace(-limit, limit, 400)
        normal = np.exp(-((at / spread) ** 2) / 2) / (spread * np.sqrt(2 * np.pi))
        ax.plot(at, normal, color="black", lw=1.2, label="white noise")
        ax.set_xlabel("correlation of a pair")
        ax.set_title(f"correlations of {kind} of the residual")

    @staticmethod
    def _histograms(ax: Any, before: FloatArray, after: FloatArray, bins: FloatArray) -> None:
        # Values beyond the axis are counted in its last bars.
        ends = bins[0], bins[-1]
        options = {"bins": bins, "density": True}
        ax.hist(np.clip(before, *ends), color=MUTED, alpha=0.6, label="residual", **options)
        ax.hist(np.clip(after, *ends), color=COLOURS[0], alpha=0.6, label="whitened", **options)
