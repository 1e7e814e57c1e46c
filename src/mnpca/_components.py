"""Sparse matrices by connected component: every part of the package that needs them asks here."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mnpca._typing import FloatArray, IntArray

#: An eigenvalue below this share of the largest one counts as zero.
NULL = 1e-13


def label_components(graph: sp.csr_array) -> IntArray:
    """Return the component of each item, numbered from 0 in order of appearance."""
    labels: IntArray = connected_components(graph, directed=False)[1].astype(np.int64)
    return labels


def group_by_label(labels: IntArray) -> list[IntArray]:
    """Return the items of each label, in increasing order."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])


def blocks_by_size(matrix: sp.csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield items (c x s) and dense blocks (c x s x s) of the c components of each size s > 1."""
    label = label_components(matrix)
    sizes = np.bincount(label)
    order = np.argsort(label, kind="stable")
    place = np.empty(len(label), np.int64)
    for size in np.unique(sizes[sizes > 1]):
        items = order[sizes[label[order]] == size].reshape(-1, size)
        place[items] = np.arange(size)
        part = matrix[items.ravel()].tocoo()
        blocks = np.zeros((*items.shape, size))
        row, col = part.coords
        blocks[row // size, row % size, place[col]] = part.data
        yield items, blocks


def blocks(matrix: sp.csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield (items, dense block) of every component with more than one item."""
    for items, dense in blocks_by_size(matrix):
        yield from zip(items, dense, strict=True)


class Root(NamedTuple):
    """F with ``M = F F'``: a scale for items alone, a square block for items that hang together.

    A block is lower triangular, or symmetric where M is only semi-definite.
    """

    scale: FloatArray
    blocks: list[tuple[IntArray, FloatArray]]
    singular: bool = False

    def times(self, x: FloatArray) -> FloatArray:
        """Return ``F x``."""
        result: FloatArray = x * self.scale[:, None]
        for items, block in self.blocks:
            result[items] = block @ x[items]
        return result

    def adjoint(self, x: FloatArray) -> FloatArray:
        """Return ``F' x``."""
        result: FloatArray = x * self.scale[:, None]
        for items, block in self.blocks:
            result[items] = block.T @ x[items]
        return result

    def solve_adjoint(self, x: FloatArray) -> FloatArray:
        """Return the smallest y with ``F' y = x`` on the range of F."""
        seen = self.scale[:, None] > 0
        result: FloatArray = np.divide(x, self.scale[:, None], where=seen, out=np.zeros_like(x))
        for items, block in self.blocks:
            if np.diag(block).all() and not np.triu(block, 1).any():
                result[items] = scipy.linalg.solve_triangular(block, x[items], lower=True, trans=1)
            else:
                result[items] = np.linalg.pinv(block, rcond=NULL**0.5, hermitian=True) @ x[items]
        return result


def root(precision: sp.csr_array) -> Root:
    """Return the root of a positive definite matrix: lower Cholesky factors of its components."""
    factors = [(items, np.linalg.cholesky(block)) for items, block in blocks(precision)]
    return Root(np.sqrt(precision.diagonal()), factors)
