"""Maximum likelihood for the precision of a correlation matrix on a given support, quickly.

A search makes hundreds of these fits, on up to a million items in thousands of small components,
of a matrix that is never formed, and none may fail. So this one sweeps over all components in one
compiled loop to a rough accuracy, clips regressions that are almost singular, and repairs what is
not definite.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._typing import BoolArray, FloatArray, IntArray
from mnpca.engines.arrays import cholesky
from mnpca.engines.gram import Gram
from mnpca.noise import _support_kernels as kernels
from mnpca.noise.significance import LARGEST

#: Components up to this size are factorized in a compiled loop, larger ones by LAPACK.
SMALL = 32
#: Where C is not definite, it is shrunk until its lowest eigenvalue is this.
LEAST_EIGENVALUE = 2e-3


class Support(NamedTuple):
    """A graph and its connected components of at least two items.

    The blocks of the components lie one after the other in a flat array, from `offsets[c]` on.
    """

    size: int
    i: IntArray
    """First items of the edges, i < j."""
    j: IntArray
    indptr: IntArray
    """The neighbors of item a are ``neighbors[indptr[a]:indptr[a + 1]]``."""
    neighbors: IntArray
    edge_number: IntArray
    """The edge that leads to each neighbor."""
    order: IntArray
    """The items of component c are ``order[bounds[c]:bounds[c + 1]]``."""
    bounds: IntArray
    component: IntArray
    """Of each item, -1 for one without a neighbor."""
    place: IntArray
    """Of each item in its component."""
    offsets: IntArray

    @classmethod
    def of(cls, size: int, i: IntArray, j: IntArray) -> "Support":
        """Return the graph with these edges, i < j."""
        i, j = (np.ascontiguousarray(end, np.int64) for end in (i, j))
        ends = np.column_stack([i, j]).ravel()
        by_end = np.argsort(ends, kind="stable")
        neighbors = np.column_stack([j, i]).ravel()[by_end]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=size))])
        order, bounds, component, place = kernels.components(size, indptr, neighbors)
        offsets = np.concatenate([[0], np.cumsum(np.diff(bounds) ** 2)])
        edges = by_end // 2
        return cls(size, i, j, indptr, neighbors, edges, order, bounds, component, place, offsets)

    @property
    def n_edges(self) -> int:
        """Return the number of edges."""
        return len(self.i)

    @property
    def keys(self) -> IntArray:
        """Return the edges as single numbers ``i * size + j``."""
        return np.asarray(self.i * self.size + self.j)

    def items(self, c: int) -> IntArray:
        """Return the items of component c."""
        return np.asarray(self.order[self.bounds[c] : self.bounds[c + 1]])

    def block(self, flat: FloatArray, c: int) -> FloatArray:
        """Return the block of component c in a flat array of blocks."""
        return flat[self.offsets[c] : self.offsets[c + 1]].reshape(2 * (len(self.items(c)),))

    def entries(self, c: int) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows and columns of component c's links, and their places among the neighbors."""
        items = self.items(c)
        rows = np.repeat(np.arange(len(items)), np.diff(self.indptr)[items])
        places = np.concatenate([np.arange(*self.indptr[item : item + 2]) for item in items])
        return rows, self.place[self.neighbors[places]], places


class SupportFit:
    """The precision on a support that maximizes ``logdet P - tr(C P)``; no penalty.

    C has a unit diagonal; `correlations` are its entries on the edges. Sweeps begin with the blocks
    of C, which `gram` gives, or with the covariance of an earlier fit, `start`; they end when no
    covariance changes by more than `tol`. P need not be `definite` to see which edges are weak.
    """

    def __init__(
        self,
        support: Support,
        correlations: FloatArray,
        gram: Gram,
        start: "SupportFit | None" = None,
        *,
        max_sweeps: int = 30,
        tol: float = 1e-3,
        definite: bool = True,
    ):
        self.support = support
        self.correlations = correlations

        self.coefficients = np.zeros(len(support.neighbors))
        self.unexplained = np.ones(support.size)
        if start is None or start.support.n_edges == 0:
            self.failed = self._sweep(self._blocks_of(gram), self._every(), max_sweeps, tol)
        else:
            # What did not change since a rough fit is looked at again in the last one.
            due = self._every() if definite else self._changed_since(start)
            self.failed = self._sweep(self._covariance_of(start), due, max_sweeps, tol)
        if not definite:
            return
        failed = self.failed | self._indefinite(self.failed)
        if failed.any() and start is not None:
            # A far start can lead into a singular corner that C itself avoids.
            failed = self._sweep(self._blocks_of(gram), self._every(), max_sweeps, tol)
            failed |= self._indefinite(failed)
        for c in np.flatnonzero(failed):
            self._repair(int(c))

    @property
    def edge_gains(self) -> FloatArray:
        """Return twice the log-likelihood, per observation, that each edge is worth.

        Given the common neighbors of its ends i and j, these have a covariance S with the
        correlation r. Without the edge their correlation would be the r' that all other edges
        imply, ``r' / (1 - r'^2) = r / (1 - r^2) + P_ij sqrt(S_ii S_jj)``, if nothing else
        followed. The gain is twice the divergence of the two normal distributions of the pair,
        ``log((1 - r'^2) / (1 - r^2)) + 2 (1 - r r') / (1 - r'^2) - 2``. In a decomposable graph
        this is exact: r' = 0, and the edge is worth ``-log(1 - r^2)``.
        """
        with_edge, scale = kernels.given_common_neighbors(self.support, self.covariance)
        with_edge = np.clip(with_edge, -LARGEST, LARGEST)
        return gain_of_edge(with_edge, without_edge(with_edge, self.edge_values * scale))

    def precision(self) -> sp.csr_array:
        """Return P as a sparse matrix."""
        support = self.support
        every = np.arange(support.size)
        data = np.concatenate([self.edge_values, self.edge_values, self.diagonal])
        rows = np.concatenate([support.i, support.j, every])
        cols = np.concatenate([support.j, support.i, every])
        return sp.csr_array((data, (rows, cols)), shape=(support.size, support.size))

    def covariance_of(self, i: IntArray, j: IntArray) -> FloatArray:
        """Return the fitted covariances of pairs; 0 between components."""
        s = self.support
        i, j = np.broadcast_arrays(i, j)
        inside = (s.component[i] == s.component[j]) & (s.component[i] >= 0)
        value = inside.astype(float)
        i, j = i[inside], j[inside]
        c = s.component[i]
        value[inside] = self.covariance[
            s.offsets[c] + s.place[i] * np.diff(s.bounds)[c] + s.place[j]
        ]
        return np.asarray(value)

    def _sweep(
        self, covariance: FloatArray, due: BoolArray, max_sweeps: int, tol: float
    ) -> BoolArray:
        """Fit from a covariance, which becomes the fitted one; tell which components failed."""
        support = self.support
        self.covariance = covariance
        failed = kernels.fit_components(
            support,
            self.correlations[support.edge_number],
            covariance,
            self.coefficients,
            self.unexplained,
            due,
            max_sweeps,
            tol,
        )
        self.diagonal = 1.0 / self.unexplained
        ends = np.repeat(self.diagonal, np.diff(support.indptr))
        self.edge_values = np.bincount(
            support.edge_number, weights=-self.coefficients * ends / 2, minlength=support.n_edges
        )
        return np.asarray(failed)

    def _every(self) -> BoolArray:
        return np.ones(self.support.size, bool)

    def _changed_since(self, start: "SupportFit") -> BoolArray:
        """Take over the regressions of an earlier fit; tell which items have other neighbors."""
        due = self._every()
        known = start.support, start.coefficients, start.unexplained
        kernels.copy_regressions(self.support, self.coefficients, self.unexplained, due, *known)
        return due

    def _blocks_of(self, gram: Gram) -> FloatArray:
        """Return the blocks of C; where a large one is not definite, C is shrunk there.

        The posterior covariances in C are sparse: what was left out can make it indefinite, and
        the likelihood of a dense graph has no maximum then. Off-diagonal entries times
        ``1 - t``, ``(1 - t) lowest + t = LEAST_EIGENVALUE``, have one.
        """
        support = self.support
        blocks = gram.component_blocks(support.order, support.bounds, support.offsets)
        for c in np.flatnonzero(np.diff(support.bounds) > SMALL):
            block = support.block(blocks, int(c))
            np.fill_diagonal(block, 1.0)
            if cholesky(block) is None:
                share = (1.0 - LEAST_EIGENVALUE) / (1.0 - np.linalg.eigvalsh(block)[0])
                block *= share
                inside = support.component[support.i] == c
                self.correlations = np.where(inside, share * self.correlations, self.correlations)
        return blocks

    def _covariance_of(self, start: "SupportFit") -> FloatArray:
        covariance = np.zeros(self.support.offsets[-1])
        kernels.copy_covariance(self.support, covariance, start.support, start.covariance)
        return covariance

    def _indefinite(self, known: BoolArray) -> BoolArray:
        """Tell which components' precisions fail a Cholesky factorization.

        Diagonally dominant ones cannot fail, which spares most of them the test.
        """
        support = self.support
        linked = np.abs(self.edge_values)
        reach = np.bincount(support.i, weights=linked, minlength=support.size)
        reach += np.bincount(support.j, weights=linked, minlength=support.size)
        doubtful = support.component[(reach >= self.diagonal) & (support.component >= 0)]
        failed = np.zeros_like(known)
        sizes = np.diff(support.bounds)
        doubtful = np.unique(doubtful)
        doubtful = doubtful[~known[doubtful] & (sizes[doubtful] > 2)]
        # There can be many thousands of small ones.
        small = sizes[doubtful] <= SMALL
        failed[doubtful[small]] = kernels.indefinite_components(
            doubtful[small], support, self.diagonal, self.edge_values
        )
        for c in doubtful[~small]:
            block = np.diag(self.diagonal[support.items(c)])
            rows, cols, places = support.entries(c)
            block[rows, cols] = self.edge_values[support.edge_number[places]]
            failed[c] = cholesky(block) is None
        return failed

    def _repair(self, c: int) -> None:
        """Replace a component's fit by a safe one: floored covariance, inverted, masked."""
        support = self.support
        items, block = support.items(c), support.block(self.covariance, c)
        rows, cols, places = support.entries(c)
        values, vectors = np.linalg.eigh((block + block.T) / 2)
        whole = (vectors / np.maximum(values, 1e-2)) @ vectors.T
        precision = np.diag(np.diag(whole))
        precision[rows, cols] = whole[rows, cols]
        lowest = np.linalg.eigvalsh(precision)[0]
        if lowest < 1e-3:
            precision += (1e-3 - lowest) * np.eye(len(items))
        covariance = np.linalg.inv(precision)
        scale = 1.0 / np.sqrt(np.diag(covariance))
        block[:] = covariance * scale * scale[:, None]
        diagonal = np.diag(precision)
        self.diagonal[items] = diagonal
        self.unexplained[items] = 1.0 / diagonal
        self.coefficients[places] = -precision[rows, cols] / diagonal[rows]
        self.edge_values[support.edge_number[places]] = precision[rows, cols]


def without_edge(correlation: FloatArray, entry: FloatArray) -> FloatArray:
    """Return the correlation of two unit variances once `entry` of their precision is 0."""
    implied = correlation / (1.0 - correlation**2) + entry
    return np.asarray(2.0 * implied / (1.0 + np.sqrt(1.0 + 4.0 * implied**2)))


def gain_of_edge(correlation: FloatArray, without: FloatArray) -> FloatArray:
    """Return twice the divergence of pairs with one correlation from pairs with the other."""
    rest = 1.0 - without**2
    gain = np.log(rest / (1.0 - correlation**2)) + 2.0 * (1.0 - correlation * without) / rest - 2.0
    return np.asarray(np.maximum(gain, 0.0))
