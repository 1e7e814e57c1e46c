"""Blocks of rows that Dask holds: on the threads of this process, or on the user's cluster.

Every call is one Dask graph, run by whatever scheduler the user has set up. What is kept stays on
the workers as persisted tasks, so Dask computes it anew where a worker is lost.
"""

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed, delayed

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.file_rows import FileRows, scratch, used_columns
from mnpca.engines.rows import BLOCK, Rows, Where, add_up, block_rows
from mnpca.engines.threads import slices

# Its settings must be there before one of them is changed for a while: Dask would otherwise take
# all of them away again with the changed one.
with contextlib.suppress(ImportError):
    import distributed  # noqa: F401 - imported for its settings

#: Terms that one task adds up.
FAN_IN = 8
#: Blocks that are computed together on their way to a file.
AT_ONCE = 8


class DaskRows(Rows):
    """Row blocks as delayed objects, with the number of rows of each."""

    def __init__(self, blocks: list[Delayed], lengths: Any, width: int, dtype: Any):
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        self.shape = (int(bounds[-1]), width)
        self.dtype = np.dtype(dtype)
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(bounds)]
        self._starts = bounds[:-1]
        self._numbers = {ends: number for number, ends in enumerate(pairwise(bounds.tolist()))}
        self._lengths = lengths
        self._blocks = blocks

    @classmethod
    def of(cls, array: Any) -> "DaskRows":
        """Return the rows of a dask array, in its chunks of rows or nearly so."""
        array = array.rechunk({0: _aligned(array.chunks[0]), 1: -1})
        blocks = list(array.to_delayed().ravel())
        return cls(blocks, array.chunks[0], array.shape[1], array.dtype)

    def calls(self, function, shared, sources, along):
        call, shared = delayed(function, pure=False), _share(shared)
        return [
            call(*(rows.gather(where) for rows, where in source), shared, *own)
            for source, *own in zip(sources, *along, strict=True)
        ]

    def results(self, calls):
        return _compute(calls)

    def total_of(self, calls):
        return add_up(_compute([_tree(calls)]))

    def stream(self) -> Iterator[FloatArray]:
        return (_compute([block])[0] for block in self._blocks)

    def kept(self, function, shared, dtype):
        blocks = self._on_groups(function, shared, self.parts, ())
        if on_cluster():
            return DaskRows(_persist(blocks), self._lengths, self.shape[1], dtype)
        # Without workers to hold the blocks, a file does; some blocks at a time go there.
        matrix = scratch(self.shape, dtype)
        for some in slices(len(blocks), AT_ONCE):
            for part, block in zip(self.parts[some], _compute(blocks[some]), strict=True):
                matrix[part] = block
        return FileRows(matrix)

    def derived(self, width, function, shared, *along):
        blocks = self._on_groups(function, shared, self.parts, self._cut(along))
        return DaskRows(blocks, self._lengths, width, self.dtype)

    def filtered(self, mix, rest):
        width = self.shape[1]
        mixed = [
            used_columns(mix[part].astype(self.dtype))
            for part in slices(mix.shape[0], block_rows(width))
        ]
        groups, pieces = [used for used, _ in mixed], [piece for _, piece in mixed]
        blocks = _persist(self._on_groups(_mix, None, groups, [pieces]))
        lengths = [piece.shape[0] for piece in pieces]
        bounds = np.searchsorted(rest, [*self._starts, self.shape[0]])
        others = [rest[a:b] for a, b in pairwise(bounds) if b > a]
        blocks += [self.gather(group) for group in others]
        return DaskRows(blocks, [*lengths, *map(len, others)], width, self.dtype)

    def gather(self, where: Where) -> Delayed:
        """Return a block, or rows from all blocks in the order of their numbers in `where`."""
        if isinstance(where, slice):
            return self._blocks[self._numbers[where.start, where.stop]]
        block = np.searchsorted(self._starts, where, side="right") - 1
        take = delayed(_take, pure=False)
        pieces, places = [], []
        for b in np.unique(block):
            here = np.flatnonzero(block == b)
            places.append(here)
            pieces.append(take(self._blocks[b], where[here] - self._starts[b]))
        return delayed(_assemble, pure=False)(pieces, np.argsort(np.concatenate(places)))


def on_cluster() -> bool:
    """Tell whether Dask computes on the workers of a distributed client."""
    scheduler = dask.base.get_scheduler()
    owner = type(getattr(scheduler, "__self__", None))
    return owner.__module__.split(".")[0] == "distributed"


def _aligned(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunks that end at multiples of `BLOCK`, unless chunks are smaller than that.

    Sums in float32 are over the same rows then whatever the chunks, and so is their rounding.
    """
    if min(lengths[:-1], default=0) < BLOCK:
        return lengths
    ends = np.cumsum(lengths)
    ends[:-1] = (ends[:-1] + BLOCK // 2) // BLOCK * BLOCK
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
    return sum(terms[1:], start=np.float64(0.0) + terms[0])


def _mix(rows: FloatArray, _: None, mix: sp.csr_array) -> FloatArray:
    return np.asarray(mix @ rows)


def _take(block: FloatArray, where: IntArray) -> FloatArray:
    return np.asarray(block[where])


def _assemble(pieces: list[FloatArray], order: IntArray) -> FloatArray:
    return np.concatenate(pieces)[order]
