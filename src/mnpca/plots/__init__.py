"""Display classes: ``Display.from_estimator(...)`` collects the data, ``.plot(ax=None)`` draws."""

from mnpca.plots._convergence import ConvergenceDisplay
from mnpca.plots._layout import force_layout
from mnpca.plots._noise_graph import NoiseGraphDisplay
from mnpca.plots._scores import ScoresDisplay
from mnpca.plots._selection import SelectionDisplay
from mnpca.plots._whiteness import WhitenessDisplay

__all__ = [
    "ConvergenceDisplay",
    "NoiseGraphDisplay",
    "ScoresDisplay",
    "SelectionDisplay",
    "WhitenessDisplay",
    "force_layout",
]
