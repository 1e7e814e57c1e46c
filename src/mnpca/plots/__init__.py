"""Display classes: ``Display.from_estimator(...)`` collects the data, ``.plot(ax=None)`` draws.

`plot` keeps what it drew as ``ax_`` and ``figure_``, matplotlib's objects, and returns the display.
"""

from mnpca.diagnostics import force_layout
from mnpca.plots._displays import (
    ConvergenceDisplay,
    ScoresDisplay,
    SelectionDisplay,
    WhitenessDisplay,
)
from mnpca.plots._noise_graph import NoiseGraphDisplay

__all__ = [
    "ConvergenceDisplay",
    "NoiseGraphDisplay",
    "ScoresDisplay",
    "SelectionDisplay",
    "WhitenessDisplay",
    "force_layout",
]
