"""Blocks of rows that Dask holds: on the threads of this process, or on the user's cluster.

Every call is one Dask graph, run by whatever scheduler the user has set up. What is kept (`kept`,
`mixed`) stays on the workers as persisted tasks, so Dask computes it anew where a worker is
lost.
"""

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import dask
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from dask.delayed import Delayed, delayed

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.rows import ROW_UNIT, LocalRows, scratch, used_columns
from mnpca.engines.threads import slices

# Its settings must be there before one of them is changed for a while: Dask would otherwise take
# all of them away again with the changed one.
with contextlib.suppress(ImportError):
    import distributed  # noqa: F401 - imported for its settings

#: Terms that one task adds up.
FAN_IN = 8
#: Blocks that are computed together on their way to a file.
AT_ONCE = 8


class DaskRows:
    """Row blocks as delayed objects; see `mnpca.engines.rows.Rows` for the methods.

    Parameters
    ----------
    blocks : list of Delayed
        The blocks.
    lengths : sequence of int
        Rows of every block.
    width : int
        Columns.
    dtype : numpy dtype
        Type of the blocks.
    """

    def __init__(self, blocks: list[Delayed], lengths: Any, width: int, dtype: npt.DTypeLike):
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        self.shape: tuple[int, int] = (int(bounds[-1]), width)
        self.dtype = np.dtype(dtype)
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        self._starts = bounds[:-1]
        self._lengths = lengths
        self._blocks = blocks

    @classmethod
    def of(cls, array: Any) -> "DaskRows":
        """Return the rows of a dask array, in its chunks of rows or nearly so."""
        array = array.rechunk({0: _aligned(array.chunks[0]), 1: -1})
        blocks = list(array.to_delayed().ravel())
        return cls(blocks, array.chunks[0], array.shape[1], array.dtype)

    def map(self, function, shared, *along):  # noqa: D102 - see Rows
        return _compute(self._calls(function, shared, along))

    def total(self, function, shared, *along):  # noqa: D102 - see Rows
        return _compute([_tree(self._calls(function, shared, along))])[0]

    def map_groups(self, function, shared, groups, *along):  # noqa: D102 - see Rows
        return _compute(self._group_calls(function, shared, groups, along))

    def total_groups(self, function, shared, groups, *along):  # noqa: D102 - see Rows
        return _compute([_tree(self._group_calls(function, shared, groups, along))])[0]

    def map_two_groups(  # noqa: D102 - see Rows
        self, function, shared, groups, other, other_groups, *along
    ):
        call, shared = delayed(function, pure=False), _share(shared)
        pieces = zip(groups, other_groups, *along, strict=True)
        return _compute(
            [
                call(self._gather(group), other._gather(other_group), shared, *rest)
                for group, other_group, *rest in pieces
            ]
        )

    def map_corners(self, function, shared, other, corners, *along):  # noqa: D102 - see Rows
        call, shared = delayed(function, pure=False), _share(shared)
        return _compute(
            [
                call(self._blocks[b], other._blocks[c], shared, *rest)
                for (b, c), *rest in zip(corners, *along, strict=True)
            ]
        )

    def stream(self) -> Iterator[FloatArray]:  # noqa: D102 - see Rows
        return (_compute([block])[0] for block in self._blocks)

    def kept(self, function, shared, dtype):  # noqa: D102 - see Rows
        blocks = self._calls(function, shared, ())
        if on_cluster():
            return DaskRows(_persist(blocks), self._lengths, self.shape[1], dtype)
        # Without workers to hold the blocks, a file does; some blocks at a time go there.
        matrix = scratch(self.shape, dtype)
        for some in slices(len(blocks), AT_ONCE):
            for part, block in zip(self.parts[some], _compute(blocks[some]), strict=True):
                matrix[part] = block
        return LocalRows(matrix)

    def derived(self, width, function, shared, *along):  # noqa: D102 - see Rows
        blocks = self._calls(function, shared, along)
        return DaskRows(blocks, self._lengths, width, self.dtype)

    def mixed(self, mix, bounds):  # noqa: D102 - see Rows
        parts = [used_columns(mix[a:b].astype(self.dtype)) for a, b in pairwise(bounds)]
        groups, pieces = [used for used, _ in parts], [piece for _, piece in parts]
        blocks = self._group_calls(_mix, None, groups, (pieces,))
        return DaskRows(_persist(blocks), np.diff(bounds), self.shape[1], self.dtype)

    def _calls(self, function: Any, shared: Any, along: Any) -> list[Delayed]:
        call, shared = delayed(function, pure=False), _share(shared)
        return [
            call(block, shared, *(array[part] for array in along))
            for block, part in zip(self._blocks, self.parts, strict=True)
        ]

    def _group_calls(self, function: Any, shared: Any, groups: Any, along: Any) -> list[Delayed]:
        call, shared = delayed(function, pure=False), _share(shared)
        pieces = zip(groups, *along, strict=True)
        return [call(self._gather(group), shared, *rest) for group, *rest in pieces]

    def _gather(self, group: IntArray) -> Delayed:
        """Return rows from all blocks, in the order of the group."""
        block = np.searchsorted(self._starts, group, side="right") - 1
        take = delayed(_take, pure=False)
        pieces, places = [], []
        for b in np.unique(block):
            here = np.flatnonzero(block == b)
            places.append(here)
            pieces.append(take(self._blocks[b], group[here] - self._starts[b]))
        return delayed(_assemble, pure=False)(pieces, np.argsort(np.concatenate(places)))


def on_cluster() -> bool:
    """Tell whether Dask computes on the workers of a distributed client."""
    scheduler = dask.base.get_scheduler()
    owner = type(getattr(scheduler, "__self__", None))
    return owner.__module__.split(".")[0] == "distributed"


def _aligned(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunks that end at multiples of `ROW_UNIT`, unless chunks are smaller than that.

    Sums in float32 are over the same rows then whatever the chunks, and so is their rounding.
    """
    if min(lengths[:-1], default=0) < ROW_UNIT:
        return lengths
    ends = np.cumsum(lengths)
    ends[:-1] = (ends[:-1] + ROW_UNIT // 2) // ROW_UNIT * ROW_UNIT
    return tuple(
        int(length) for length in np.diff(np.unique(np.minimum(ends, ends[-1])), prepend=0)
    )


def _share(shared: Any) -> Any:
    """Send an object once for all tasks."""
    return None if shared is None else delayed(shared, traverse=False, pure=False)


def _compute(tasks: list[Any]) -> list[Any]:
    # The thin arrays are part of the graph; that they are large is known.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GB"}):
        return list(dask.compute(*tasks))


def _persist(tasks: list[Delayed]) -> list[Delayed]:
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GB"}):
        return list(dask.persist(*tasks))


def _tree(terms: list[Delayed]) -> Delayed:
    """Add up some terms at a time, always in the same order."""
    add = delayed(_add, pure=False)
    while len(terms) > 1:
        terms = [add(terms[k : k + FAN_IN]) for k in range(0, len(terms), FAN_IN)]
    return terms[0]


def _add(terms: list[Any]) -> Any:
    return sum(terms[1:], start=terms[0])


def _mix(rows: FloatArray, _: None, mix: sp.csr_array) -> FloatArray:
    return np.asarray(mix @ rows)


def _take(block: FloatArray, where: IntArray) -> FloatArray:
    return np.asarray(block[where])


def _assemble(pieces: list[FloatArray], order: IntArray) -> FloatArray:
    return np.concatenate(pieces)[order]
