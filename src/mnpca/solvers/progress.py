"""What a running fit reports: where it is, how it does, and the state to resume from.

A solver takes ``report: Report = silent`` and ``resume: State | None = None``. After every outer
iteration, the last one too, it calls ``report(Progress(stage, iteration, objective, state))``,
where ``state`` is a function that returns everything the next iteration reads. With ``resume`` it
takes all of that from the state instead of starting, and then does exactly the operations of an
uninterrupted run, so that the results agree to the bit.

- ``state`` is called at once or never, so it may refer to arrays that are updated in place.
- `pack` makes the state of any dataclass, `unpack` the dataclass again.
- A loop around a solver (ranks, starts, stages) nests its state with `nested` and `inner_state`.
- What is cheap and deterministic in the data (a mean, a Gram matrix) is recomputed, not stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import UnionType
from typing import Any, ClassVar, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from mnpca.engines.arrays import Array, is_foreign_array, like, on_host

State: TypeAlias = Mapping[str, Any]
"""What a solver needs to continue, by name: numbers, strings, arrays, sparse arrays, lists and
dictionaries of these."""


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


@dataclass
class Resumable:
    """A running fit, as a dataclass: its state is all of it but the fields `given` from outside."""

    given: ClassVar[tuple[str, ...]]

    def state(self) -> State:
        """Return all that `resume` needs beside what is given."""
        return {name: pack(each) for name, each in vars(self).items() if name not in self.given}

    @classmethod
    def resume(cls, state: State, **given: Any) -> Self:
        """Return the object of which `state` was taken."""
        kinds = get_type_hints(cls)
        names = [field.name for field in fields(cls) if field.name not in cls.given]
        return cls(**given, **{name: unpack(kinds[name], state[name]) for name in names})


def pack(value: Any) -> Any:
    """Return a value as a checkpoint can hold it.

    Dataclasses and named tuples become dictionaries of their fields, tuples lists, and arrays of
    another library NumPy's. A class with ``from_state(state)`` makes its own state, by ``state()``.
    """
    if hasattr(value, "from_state"):
        return pack(value.state())
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: pack(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [pack(each) for each in value]
    return on_host(value)


def unpack(kind: Any, state: Any, data: Array | None = None) -> Any:
    """Return the value of a type that `pack` was given; its matrices live where the data do."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return None if state is None else unpack(parts[0], state, data)
    if hasattr(origin, "from_state"):
        return origin.from_state({name: unpack(Any, each, data) for name, each in state.items()})
    if origin is list:
        return [unpack(parts[0], each, data) for each in state]
    if origin is tuple:
        kinds = parts[:1] * len(state) if parts[-1] is ... else parts
        return tuple(unpack(part, each, data) for part, each in zip(kinds, state, strict=True))
    if origin is dict:
        return {name: unpack(parts[1], each, data) for name, each in state.items()}
    if is_dataclass(origin) or hasattr(origin, "_asdict"):
        hints = get_type_hints(origin)
        return origin(**{name: unpack(hints[name], each, data) for name, each in state.items()})
    if origin in (bool, int, float, str):
        if isinstance(state, str) != (origin is str):
            raise TypeError(f"a checkpoint has {state!r} where a {origin.__name__} belongs")
        return origin(state)
    if data is not None and is_foreign_array(data) and np.ndim(state) == 2:
        return like(state, data)
    return state
