"""What the caller of a fit asked for, and the stages of the search that this calls for."""

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from mnpca.noise.estimate import Structure
from mnpca.solvers.mnpca.low_rank_step import Center
from mnpca.solvers.mnpca.priors import PriorChoice

Allowed: TypeAlias = Structure | Literal["auto"]
"""The structure that a side has to have; "auto" leaves it to the evidence."""

#: The trails, in their order.
EQUAL = "equal variances"
UNEQUAL = "unequal variances"
NETWORKS_FIRST = "networks first"
SIGNAL_FIRST = "signal first"
BOTH_AT_ONCE = "both at once"
#: What follows a trail where the rank is to be chosen.
FEWER = "fewer components"
SETTLING = "settling"

#: Most items of the shorter axis for which the trail of both at once is taken: its start costs the
#: cube of their number.
JOINT_ITEMS = 60


@dataclass(frozen=True)
class Settings:
    """What the caller asked for."""

    rank: int | None
    """None leaves it to the evidence."""
    row_structure: Allowed
    col_structure: Allowed
    center: Center
    max_iter: int
    tol: float
    seed: int
    n_matrices: int = 1
    """The data are so many matrices, one under the other, with the same noise."""
    prior: PriorChoice | None = None
    """What scores and loadings are drawn from in the end; None ends with the search."""
    complete: bool = True
    """All cells were observed: columns that are combinations of others are looked for where they
    may be linked by a network, and rows in units of their own."""
    most: int = 64
    """A trail looks for no more components than this; see `fit_with`."""

    def structures(self, trail: str) -> tuple[Structure, Structure]:
        """Return the structures of rows and columns on a trail."""
        own: Structure = "graph"
        if trail in (EQUAL, UNEQUAL):
            own = "identity" if trail == EQUAL else "diagonal"

        def of(allowed: Allowed) -> Structure:
            if trail == EQUAL:
                return "identity"
            if allowed == "auto" or (allowed == "graph" and trail == UNEQUAL):
                return own
            return allowed

        return of(self.row_structure), of(self.col_structure)

    def allows(self, trail: str) -> bool:
        """Tell whether the end of a trail has the structures that were asked for."""
        asked = (self.row_structure, self.col_structure)
        return all(
            allowed in ("auto", own)
            for allowed, own in zip(asked, self.structures(trail), strict=True)
        )


class Stage(NamedTuple):
    """A trail, or what follows it."""

    trail: str
    part: str = ""

    @property
    def name(self) -> str:
        """Return the name for reports."""
        return f"{self.trail}, {self.part}" if self.part else self.trail


def trails_of(settings: Settings, shape: tuple[int, int]) -> list[str]:
    """Return the trails that the settings call for, in order; each may be another's start."""
    asked = (settings.row_structure, settings.col_structure)
    trails = [EQUAL]
    if asked != ("identity", "identity"):
        trails.append(UNEQUAL)
    if "auto" in asked or "graph" in asked:
        trails += [NETWORKS_FIRST, SIGNAL_FIRST]
    shorter = settings.col_structure if shape[1] <= shape[0] else settings.row_structure
    if shorter in ("auto", "graph") and min(shape) <= JOINT_ITEMS and settings.n_matrices == 1:
        trails.append(BOTH_AT_ONCE)
    return trails


def trail_of(stage_name: str) -> str:
    """Return the trail that a stage belongs to."""
    return stage_name.split(", ")[0]
