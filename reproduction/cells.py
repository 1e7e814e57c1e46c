"""The unit of work: one method on one data set with one seed."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Cell(NamedTuple):
    """What is computed once and never again.

    Attributes
    ----------
    experiment : str
        Kind of computation ("small", "large", "real-paper", ...). Tables may share one.
    data : str
        Data within it ("c=32", "p=2000", "wine", ...).
    method : str
        Name of the method.
    seed : int
        Of everything random in the cell.
    """

    experiment: str
    data: str
    method: str
    seed: int

    @property
    def file_name(self):
        """Name for files that belong to the cell."""
        return "_".join(str(part) for part in self).replace("/", "-")


@dataclass
class Outcome:
    """What a cell gave.

    Attributes
    ----------
    metrics : dict
        Numbers by name; nan where there is no result.
    note : str
        Why there is none, or what else a reader should know.
    arrays : dict
        Arrays for the pictures, by name.
    """

    metrics: dict[str, float]
    note: str = ""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
