"""States of running fits: whatever is packed is the same again, and what lies is refused."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.progress import Resumable, pack, unpack


class Pair(NamedTuple):
    row: float
    col: float | None


@dataclass
class Loop(Resumable):
    given = ("data",)

    data: list[float]
    noise: list[AxisPrecision]
    best: Pair | None = None
    history: list[tuple[str, int]] = field(default_factory=list)
    ends: dict[str, Pair] = field(default_factory=dict)
    factors: tuple[np.ndarray | None, ...] = ()


def test_a_loop_is_resumed_as_it_was():
    noise = [AxisPrecision.diagonal(np.arange(1.0, 4.0)).scaled(1 / 3).tile(2)]
    ends = {"first": Pair(1.0, None), "second": Pair(2.0, 3.0)}
    loop = Loop([1.0], noise, ends["first"], [("a", 1), ("b", 2)], ends, (np.eye(2), None))
    state = loop.state()
    assert "data" not in state
    again = Loop.resume(state | {"of somebody else": 1}, data=loop.data)
    np.testing.assert_array_equal(again.noise[0].weights, noise[0].weights)
    assert (again.best, again.history, again.ends) == (loop.best, loop.history, loop.ends)
    np.testing.assert_array_equal(again.factors[0], np.eye(2))
    assert again.factors[1] is None


@pytest.mark.parametrize("state", [{"row": "1", "col": 2.0}, {"row": 1.0}, [1.0, 2.0], "x"])
def test_a_state_that_lies_is_refused(state):
    with pytest.raises((TypeError, KeyError, AttributeError)):
        unpack(Pair, state)
    assert unpack(Pair, pack(Pair(1.0, None))) == Pair(1.0, None)
