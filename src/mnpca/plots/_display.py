"""What the displays share."""

from typing import Any

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


def count_along(ax: Any, name: str) -> None:
    """Let the first axis count whole things: iterations, components."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(name)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
