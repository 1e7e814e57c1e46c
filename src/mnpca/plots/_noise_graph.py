"""A noise network as a drawing of its strongest edges, or as a matrix.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from mnpca.diagnostics import Edges, communities, drawing, item_names, joined_order, network_edges
from mnpca.plots._displays import COLORS, MAX_LEVELS, MUTED, Display


@dataclass(eq=False, repr=False)
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
        Group of each item, which orders the matrix and colors the nodes; by default the
        communities of the network do.

    Attributes
    ----------
    n_shown_ : int
        Number of edges drawn, set by `plot`.

    Examples
    --------
    >>> from mnpca.plots import NoiseGraphDisplay
    >>> display = NoiseGraphDisplay.from_estimator(model, "columns").plot(max_edges=20)
    """

    edges: Edges
    names: list[str]
    side: str
    _: KW_ONLY
    labels: Any = None

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
        lines = LineCollection(
            list(np.stack([places[first], places[second]], axis=1)),
            linewidths=0.5 + 3 * np.abs(shown.partial_correlation),
            colors=[COLORS[0] if r > 0 else COLORS[1] for r in shown.partial_correlation],
            alpha=0.7,
            zorder=1,
        )
        ax.add_collection(lines)
        labels, group = None, communities(self.edges)
        if self.labels is not None:
            labels, group = np.unique(np.asarray(self.labels).astype(str), return_inverse=True)
        present = np.unique(group[nodes])
        for each in present:
            color = MUTED if each < 0 else COLORS[each % len(COLORS)]
            name = None if labels is None else _written(labels[each])
            at = places[group[nodes] == each]
            ax.scatter(*at.T, s=26, color=color, edgecolor="white", zorder=2, label=name)
        if labels is not None and 0 < len(present) <= MAX_LEVELS:
            ax.legend(frameon=False, fontsize=7)
        if names is True or (names == "auto" and len(nodes) <= 40):
            style = {"textcoords": "offset points", "fontsize": 7}
            for place, node in zip(places, nodes, strict=True):
                ax.annotate(_written(self.names[node]), place, (3, 3), **style)
        total = len(self.edges)
        count = f"{total or 'no'}" if len(shown) == total else f"{len(shown)} strongest of {total}"
        ax.set_title(f"{count} edge{'s' * (total != 1)} among {self.side}")
        ax.set_axis_off()
        ax.margins(0.08)

    def _plot_matrix(self, ax: Any) -> None:
        self.n_shown_ = len(self.edges)
        order, place = joined_order(self.edges, communities(self.edges), self.labels)
        pairs = place[np.stack([self.edges.first, self.edges.second])]
        joined = max(len(order), 1)
        dots = ax.scatter(
            pairs.ravel(),
            pairs[::-1].ravel(),
            c=np.tile(self.edges.partial_correlation, 2),
            s=max(2.0, 30_000 / joined**1.5),
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


def _written(name: str, length: int = 24) -> str:
    """Return a name without its middle where it is long; a dollar sign starts no formula."""
    if len(name) > length:
        name = f"{name[: length - 10]}…{name[-9:]}"
    return name.replace("$", r"\$")
