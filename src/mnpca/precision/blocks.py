"""Connected components: their variables, and what is kept of them for a warm start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mnpca.precision._kernels.blocks import group
from mnpca.precision._types import Array, Index


class Component(NamedTuple):
    """The variables of one component, and of all variables the component and the place in it."""

    variables: Index
    number: Index
    place: Index


@dataclass(frozen=True, eq=False)
class Groups:
    """Components of two variables or more.

    Attributes
    ----------
    order : ndarray
        Their variables, component after component, in rising order in each.
    bounds : ndarray
        Component c has the variables ``order[bounds[c] : bounds[c + 1]]``.
    number : ndarray of shape (p,)
        Component of each variable; -1 for one that stands alone.
    place : ndarray of shape (p,)
        Its place among the variables of its component.
    """

    order: Index
    bounds: Index
    number: Index
    place: Index

    @classmethod
    def of(cls, labels: Index) -> Groups:
        """Return the groups of variables with the same label, 0, 1 and so on."""
        return cls(*group(labels))

    @property
    def count(self) -> int:
        """Number of components."""
        return len(self.bounds) - 1

    def __getitem__(self, c: int) -> Component:
        variables = self.order[self.bounds[c] : self.bounds[c + 1]]
        return Component(variables, self.number, self.place)

    def __iter__(self) -> Iterator[Component]:
        return (self[c] for c in range(self.count))


@dataclass(frozen=True, eq=False)
class Block:
    """One component: its variables, its working covariance, and log-determinant of its precision.

    The log-determinant is nan if it was not computed yet.
    """

    index: Index
    working_covariance: Array
    logdet: float


@dataclass(frozen=True, eq=False)
class Blocks:
    """What is kept of every component; ``covariances[offsets[c]:]`` starts with that of c."""

    groups: Groups
    covariances: Array
    offsets: Index
    logdets: tuple[float, ...]

    @classmethod
    def join(cls, groups: Groups, covariances: Sequence[Array], logdets: Sequence[float]) -> Blocks:
        """Store the components' covariances one after the other."""
        offsets = np.cumsum([0, *(W.size for W in covariances)])
        rows = [W.reshape(-1) for W in covariances]
        flat = rows[0] if groups.count == 1 else np.concatenate([np.empty(0), *rows])
        return cls(groups, flat, offsets, tuple(logdets))

    @classmethod
    def from_list(cls, blocks: Sequence[Block], p: int) -> Blocks:
        """Rebuild from the blocks of p variables, or raise if they are not such."""
        labels = np.full(p, -1)
        for c, block in enumerate(blocks):
            index, k = block.index, len(block.index)
            fits = k > 1 and block.working_covariance.shape == (k, k)
            if not fits or index[0] < 0 or index[-1] >= p or np.any(np.diff(index) <= 0):
                raise ValueError("the state of a precision is damaged: sizes do not agree.")
            labels[index] = c
        alone = np.flatnonzero(labels < 0)
        if len(alone) + sum(len(block.index) for block in blocks) > p:
            raise ValueError("the state of a precision is damaged: components overlap.")
        labels[alone] = len(blocks) + np.arange(len(alone))
        groups = Groups.of(labels)
        return cls.join(
            groups,
            [block.working_covariance for block in blocks],
            [block.logdet for block in blocks],
        )

    def __len__(self) -> int:
        return self.groups.count

    def __getitem__(self, c: int) -> Block:
        index = self.groups[c].variables
        W = self.covariances[self.offsets[c] : self.offsets[c + 1]].reshape(len(index), -1)
        return Block(index, W, self.logdets[c])

    def __iter__(self) -> Iterator[Block]:
        return (self[c] for c in range(len(self)))
