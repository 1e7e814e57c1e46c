"""A noise network as a drawing of its strongest edges, or as a matrix."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnpca._typing import IntArray
from mnpca.diagnostics import Edges, communities, drawing, item_names, joined_order, network_edges
from mnpca.plots._axes import COLORS, MUTED, Display
from mnpca.plots._scores import MAX_LEVELS


class NoiseGraphDisplay(Display):
    """The noise network among rows or columns.

    Parameters
    ----------
    edges : mnpca.diagnostics.Edges
        All edges, strongest first.
    names : list of str
        Names of the items.
    side : {"rows", "columns"}
        What the items are.
    labels : array, default=None
        Group of each item: orders the matrix and colors the nodes; communities of the network
        do where there are none.

    Attributes
    ----------
    n_shown_ : int
        Number of edges drawn.
    ax_, figure_ : matplotlib objects
        Set by `plot`.

    Examples
    --------
    >>> from mnpca import LikelihoodMNPCA
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.plots import NoiseGraphDisplay
    >>> data = make_paper_small(c=8, seed=0, n_samples=60, n_features=30)
    >>> model = LikelihoodMNPCA(n_components=2, alpha_row=0.3, alpha_col=0.3).fit(data.Y)
    >>> display = NoiseGraphDisplay.from_estimator(model, "columns").plot(max_edges=20)
    """

    def __init__(self, edges: Edges, names: list[str], side: str, *, labels: Any = None) -> None:
        self.edges = edges
        self.names = names
        self.side = side
        self.labels = labels

    @classmethod
    def from_estimator(
        cls, estimator: Any, side: str | int = "columns", *, labels: Any = None
    ) -> Self:
        """Take the network of one side (of a tensor: of one axis) from a fitted estimator."""
        if not isinstance(side, str | Integral):
            raise TypeError(
                f'side must be "rows" or "columns" (of a tensor, the number of an axis), got a '
                f"{type(side).__name__}. The network is part of the model and needs no data: "
                'from_estimator(model, "columns").'
            )
        edges, names = network_edges(estimator, side), item_names(estimator, side)
        return cls(edges, names, side if isinstance(side, str) else f"axis {side}", labels=labels)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str = "graph",
        max_edges: int = 150,
        names: bool | str = "auto",
    ) -> Self:
        """Draw the network.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; a new figure if None.
        kind : {"graph", "matrix"}, default="graph"
            Nodes and lines, or the matrix of partial correlations of the items that have an edge.
        max_edges : int, default=150
            Strongest edges to draw in the graph; the title says how many there are.
        names : bool or "auto", default="auto"
            Write the names of the nodes; auto does up to 40.
        """
        ax = self._axes(ax)
        if kind == "graph":
            self._plot_graph(ax, max_edges, names)
        elif kind == "matrix":
            self._plot_matrix(ax)
        else:
            raise ValueError(f'kind must be "graph" or "matrix", got {kind!r}.')
        return self

    def _plot_graph(self, ax: Any, max_edges: int, names: bool | str) -> None:
        from matplotlib.collections import LineCollection

        shown = self.edges.strongest(max_edges)
        self.n_shown_ = len(shown)
        nodes, places, first, second = drawing(shown.first, shown.second)
        size = np.abs(shown.partial_correlation)
        lines = LineCollection(
            list(np.stack([places[first], places[second]], axis=1)),
            linewidths=0.5 + 3 * size,
            colors=[COLORS[0] if r > 0 else COLORS[1] for r in shown.partial_correlation],
            alpha=0.7,
            zorder=1,
        )
        ax.add_collection(lines)
        group = self._groups()[nodes]
        for each in np.unique(group):
            color = MUTED if each < 0 else COLORS[each % len(COLORS)]
            at = places[group == each]
            name = None if self.labels is None else _written(np.unique(self._label_texts())[each])
            ax.scatter(*at.T, s=26, color=color, edgecolor="white", zorder=2, label=name)
        if self.labels is not None and 0 < len(np.unique(group)) <= MAX_LEVELS:
            ax.legend(frameon=False, fontsize=7)
        if names is True or (names == "auto" and len(nodes) <= 40):
            for place, node in zip(places, nodes, strict=True):
                ax.annotate(
                    _written(self.names[node]),
                    place,
                    (3, 3),
                    textcoords="offset points",
                    fontsize=7,
                )
        total = len(self.edges)
        count = f"{total or 'no'}" if len(shown) == total else f"{len(shown)} strongest of {total}"
        ax.set_title(f"{count} edge{'s' * (total != 1)} among {self.side}")
        ax.set_axis_off()
        ax.margins(0.08)

    def _plot_matrix(self, ax: Any) -> None:
        self.n_shown_ = len(self.edges)
        order, place = joined_order(self.edges, communities(self.edges), self.labels)
        first, second = place[self.edges.first], place[self.edges.second]
        value = self.edges.partial_correlation
        joined = max(len(order), 1)
        size = max(2.0, 30_000 / joined**1.5)
        dots = ax.scatter(
            np.concatenate([first, second]),
            np.concatenate([second, first]),
            c=np.concatenate([value, value]),
            s=size,
            marker="s",
            cmap="RdBu",
            vmin=-1,
            vmax=1,
            linewidths=0,
        )
        ax.set_xlim(-0.5, joined - 0.5)
        ax.set_ylim(joined - 0.5, -0.5)
        ax.set_aspect("equal")
        ax.set_title(f"partial correlations among {self.side}")
        ax.figure.colorbar(dots, ax=ax, shrink=0.8)

    def _groups(self) -> IntArray:
        if self.labels is None:
            return communities(self.edges)
        return np.unique(self._label_texts(), return_inverse=True)[1]

    def _label_texts(self) -> NDArray[np.str_]:
        return np.asarray(self.labels).astype(str)


def _written(name: str, length: int = 24) -> str:
    """Return a name without its middle where it is long; a dollar sign starts no formula."""
    if len(name) > length:
        name = f"{name[: length - 10]}…{name[-9:]}"
    return name.replace("$", r"\$")
