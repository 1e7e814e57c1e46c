"""What a running fit tells: where it is, how it does, and the state to resume from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

State: TypeAlias = Mapping[str, Any]
"""Arrays, sparse arrays, numbers and strings by name: all a solver needs to go on."""


@dataclass(frozen=True)
class Progress:
    """One report of a solver's loop, made after every outer iteration.

    Attributes
    ----------
    stage : str
        What the solver is doing, in the model's words ("diagonal noise", "row graph", ...).
    iteration : int
        Iterations done in this stage, from 1.
    objective : float
        Value of what this stage improves.
    state : callable
        Makes the state to resume from; called only when somebody wants to store it.
    """

    stage: str
    iteration: int
    objective: float
    state: Callable[[], State]


Report: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Take a report and do nothing with it."""
