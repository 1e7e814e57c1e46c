"""What a running fit reports: where it is, how it does, and the state to resume from.

A solver takes ``report: Report = silent`` and ``resume: State | None = None``. After every outer
iteration, the last one too, it calls ``report(Progress(stage, iteration, objective, state))``,
where ``state`` is a function that returns everything the next iteration reads. With ``resume`` it
takes all of that from the state instead of starting, and then does exactly the operations of an
uninterrupted run, so that the results agree to the bit.

- ``state`` is called at once or never, so it may refer to arrays that are updated in place.
- Values may be numbers, strings, None, arrays, sparse arrays, lists, tuples, dicts and LowRank.
- A loop around a solver (ranks, starts, stages) nests its state with `nested` and `inner_state`.
- What is cheap and deterministic in the data (a mean, a Gram matrix) is recomputed, not stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from mnpca.engines.arrays import Array, is_foreign_array, like
from mnpca.model.low_rank import LowRank

State: TypeAlias = Mapping[str, Any]
"""Arrays, sparse arrays, numbers and strings by name: all a solver needs to continue."""


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
        Value of what this stage improves. Estimators report what they minimize.
    state : callable
        Makes the state to resume from; called only when somebody wants to store it.
    most : int, default=None
        Iterations after which this stage ends at the latest, where that is known.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> told, model = [], mnpca.LikelihoodMNPCA(2, alpha_row=0.3, alpha_col=0.3)
    >>> _ = model.fit(data.Y, callback=told.append)
    >>> float(model.objective_history_[-1]) == told[-1].objective
    True
    """

    stage: str
    iteration: int
    objective: float
    state: Callable[[], State]
    most: int | None = None


Report: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Take a report and do nothing with it."""


def negated(report: Report) -> Report:
    """Return a report for a solver that maximizes: estimators report what falls."""

    def tell(progress: Progress) -> None:
        report(replace(progress, objective=-progress.objective))

    return tell


def nested(report: Report, outer: Callable[[], State]) -> Report:
    """Return a report for an inner solver whose checkpoints also hold the outer loop's state.

    `outer` makes that state (which rank, the fits so far); `inner_state` gives the rest back.
    """

    def tell(progress: Progress) -> None:
        report(replace(progress, state=lambda: {**outer(), "inner": dict(progress.state())}))

    return tell


def inner_state(state: State | None) -> State | None:
    """Return the inner solver's part of a nested state, None where there is none.

    The outer loop resumes its inner solver once and then passes None.
    """
    inner: State | None = None if state is None else state.get("inner")
    return inner


def beside(value: Any, data: Array) -> Any:
    """Return a state that was kept in the host's memory with its matrices where the data live."""
    if not is_foreign_array(data):
        return value
    if isinstance(value, Mapping):
        return {name: beside(each, data) for name, each in value.items()}
    if isinstance(value, LowRank):
        return LowRank(*(beside(each, data) for each in value))
    if isinstance(value, list | tuple):
        return [beside(each, data) for each in value]
    is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2
    return like(value, data) if is_matrix else value
