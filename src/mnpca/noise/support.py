"""Maximum likelihood for the precision of a correlation matrix on a given support, quickly.

A search makes hundreds of these fits, on up to a million items in thousands of small components,
of a matrix that is never formed, and none may fail. So this one sweeps over all components in one
compiled loop to a rough accuracy, clips regressions that are almost singular, and repairs what is
not definite.
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from mnpca._typing import BoolArray, FloatArray, IntArray
from mnpca.engines.gram import Gram
from mnpca.noise import _support_kernels as kernels
from mnpca.noise.significance import LARGEST

#: Components up to this size are factorized in a compiled loop, larger ones by LAPACK.
SMALL = 32


class Support:
    """A graph (edges i < j) and its connected components."""

    def __init__(self, size: int, i: IntArray, j: IntArray):
        self.size = size
        self.i = i
        self.j = j
        self.indptr, self.neighbors, self.edge_number = kernels.adjacency(size, i, j)
        self.order, self.bounds, self.component, self.place = kernels.components(
            size, self.indptr, self.neighbors
        )
        self.offsets = np.concatenate([[0], np.cumsum(np.diff(self.bounds) ** 2)])

    @property
    def n_edges(self) -> int:
        """Return the number of edges."""
        return len(self.i)

    @cached_property
    def keys(self) -> IntArray:
        """Return the edges as single numbers ``i * size + j``."""
        return np.asarray(self.i * self.size + self.j)

    def items(self, c: int) -> IntArray:
        """Return the items of component c."""
        return np.asarray(self.order[self.bounds[c] : self.bounds[c + 1]])

    def mask(self, c: int) -> BoolArray:
        """Return where component c's block may be nonzero, the diagonal included."""
        items = self.items(c)
        allowed = np.eye(len(items), dtype=bool)
        for a, item in enumerate(items):
            neighbors = self.neighbors[self.indptr[item] : self.indptr[item + 1]]
            allowed[a, self.place[neighbors]] = True
        return allowed


class SupportFit:
    """The precision on a support that maximizes ``logdet P - tr(C P)``; no penalty.

    Parameters
    ----------
    support : Support
        Where P may be nonzero.
    correlations : array
        ``C_ij`` of the support's edges; C has a unit diagonal.
    gram : Gram
        Gives the blocks of C, the start of the iteration.
    start : SupportFit, optional
        An earlier fit whose covariance is the start instead.
    max_sweeps, tol : int, float
        At most so many sweeps, until no covariance changes by more than `tol`.
    definite : bool
        Whether P must be definite. To see which edges are weak it need not.
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

        def from_blocks() -> FloatArray:
            return gram.component_blocks(support.order, support.bounds, support.offsets)

        warm = start is not None and start.support.n_edges > 0
        covariance = self._covariance_of(start) if start is not None and warm else from_blocks()
        failed = self._sweep(covariance, max_sweeps, tol)
        if not definite:
            return
        failed |= self._indefinite(failed)
        if failed.any() and warm:
            # A far start can lead into a singular corner that C itself avoids.
            failed = self._sweep(from_blocks(), max_sweeps, tol)
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
        s = self.support
        graph = (s.indptr, s.neighbors, s.component, s.place, s.bounds, s.offsets)
        with_edge, scale = kernels.given_common_neighbors(s.i, s.j, *graph, self.covariance)
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

    def _sweep(self, covariance: FloatArray, max_sweeps: int, tol: float) -> BoolArray:
        """Fit from a covariance, which becomes the fitted one; tell which components failed."""
        support = self.support
        self.covariance = covariance
        off_diagonal, self.diagonal, failed = kernels.fit_components(
            support.indptr,
            support.neighbors,
            self.correlations[support.edge_number],
            support.order,
            support.bounds,
            support.place,
            support.offsets,
            covariance,
            max_sweeps,
            tol,
        )
        self.edge_values = np.bincount(
            support.edge_number, weights=off_diagonal / 2, minlength=support.n_edges
        )
        return np.asarray(failed)

    def _covariance_of(self, start: "SupportFit") -> FloatArray:
        support, old = self.support, start.support
        covariance = np.zeros(support.offsets[-1])
        kernels.copy_covariance(
            support.order,
            support.bounds,
            support.offsets,
            covariance,
            old.component,
            old.place,
            old.bounds,
            old.offsets,
            start.covariance,
        )
        return covariance

    def _block(self, c: int) -> FloatArray:
        """Return component c's precision as a dense block."""
        support = self.support
        items = support.items(c)
        block = np.diag(self.diagonal[items])
        degrees = np.diff(support.indptr)[items]
        rows = np.repeat(np.arange(len(items)), degrees)
        entries = np.concatenate(
            [np.arange(support.indptr[item], support.indptr[item + 1]) for item in items]
        )
        cols = support.place[support.neighbors[entries]]
        block[rows, cols] = self.edge_values[support.edge_number[entries]]
        return block

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
            doubtful[small],
            support.indptr,
            support.neighbors,
            support.edge_number,
            support.order,
            support.bounds,
            support.place,
            self.diagonal,
            self.edge_values,
        )
        for c in doubtful[~small]:
            try:
                np.linalg.cholesky(self._block(c))
            except np.linalg.LinAlgError:
                failed[c] = True
        return failed

    def _repair(self, c: int) -> None:
        """Replace a component's fit by a safe one: floored covariance, inverted, masked."""
        support = self.support
        items = support.items(c)
        block = self.covariance[support.offsets[c] : support.offsets[c + 1]]
        block = block.reshape(len(items), len(items))
        values, vectors = np.linalg.eigh((block + block.T) / 2)
        precision = (vectors / np.maximum(values, 1e-2)) @ vectors.T
        precision = np.where(support.mask(c), precision, 0.0)
        lowest = np.linalg.eigvalsh(precision)[0]
        if lowest < 1e-3:
            precision += (1e-3 - lowest) * np.eye(len(items))
        covariance = np.linalg.inv(precision)
        scale = 1.0 / np.sqrt(np.diag(covariance))
        block[:] = covariance * scale * scale[:, None]
        self.diagonal[items] = np.diag(precision)
        edges = np.flatnonzero(support.component[support.i] == c)
        place = support.place
        self.edge_values[edges] = precision[place[support.i[edges]], place[support.j[edges]]]


def without_edge(correlation: FloatArray, entry: FloatArray) -> FloatArray:
    """Return the correlation of two unit variances once `entry` of their precision is 0."""
    implied = correlation / (1.0 - correlation**2) + entry
    return np.asarray(2.0 * implied / (1.0 + np.sqrt(1.0 + 4.0 * implied**2)))


def gain_of_edge(correlation: FloatArray, without: FloatArray) -> FloatArray:
    """Return twice the divergence of pairs with one correlation from pairs with the other."""
    rest = 1.0 - without**2
    gain = np.log(rest / (1.0 - correlation**2)) + 2.0 * (1.0 - correlation * without) / rest - 2.0
    return np.asarray(np.maximum(gain, 0.0))
