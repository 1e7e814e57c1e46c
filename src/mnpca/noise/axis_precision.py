"""The noise precision of one side, with what the low-rank step needs of its spectrum."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._components import blocks_by_size
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.thin import rotate_components, weigh
from mnpca.engines.threads import slices

#: Smallest eigenvalue of a precision; data are scaled to a root mean square of 1.
EIGENVALUE_FLOOR = 1e-10
#: Components above this size are diagonalized in float32 (their log-determinant is not).
LARGE = 400
#: Covariance blocks up to this size are used whole, larger ones only on the graph's edges.
WHOLE_BLOCK = 500


class ComponentGroup(NamedTuple):
    """All connected components of one size s: c of them."""

    items: IntArray  # c x s; n_repeats x c x s where the items are there several times
    vectors: FloatArray  # c x s x s, eigenvectors in columns


class AxisPrecision:
    """A precision of q items: diagonal, or sparse with its components diagonalized.

    ``P = V diag(eigenvalues) V'``, block by block over the connected components of the graph.
    Eigenvalue number l of a component stands at the place of the component's item number l, so
    that ``eigenvalues`` and rotated arrays keep the shape of the data. Components of equal size
    are diagonalized together.

    The rows of several matrices are the same items over and over: `n_repeats` sets of them, one
    after the other, independent of each other and each with the precision of `base`.
    """

    def __init__(
        self,
        unscaled: FloatArray | sp.csr_array,
        unscaled_eigenvalues: FloatArray,
        groups: Sequence[ComponentGroup] = (),
        scale: float = 1.0,
        base: "AxisPrecision | None" = None,
    ):
        # The unscaled originals stay: a stored side is rebuilt from them to the last bit.
        self.unscaled = unscaled
        self.scale = scale
        self._unscaled_eigenvalues = unscaled_eigenvalues
        self.weights = unscaled if scale == 1.0 else unscaled * scale
        """The diagonal (one-dimensional) or the precision (CSR)."""
        self.eigenvalues = unscaled_eigenvalues * scale
        if unscaled_eigenvalues is unscaled:
            self.eigenvalues = self.weights
        self.groups = tuple(groups)
        self._base = base

    @classmethod
    def diagonal(cls, weights: FloatArray) -> "AxisPrecision":
        """Independent items with the given inverse variances."""
        low = weights.min(initial=EIGENVALUE_FLOOR) < EIGENVALUE_FLOOR
        return cls(weights, np.maximum(weights, EIGENVALUE_FLOOR) if low else weights)

    @classmethod
    def from_precision(cls, precision: sp.csr_array) -> "AxisPrecision":
        """Diagonalize a sparse precision component by component."""
        precision = sp.csr_array(precision)
        eigenvalues = precision.diagonal()
        groups = []
        for items, blocks in blocks_by_size(precision):
            eigenvalues[items], vectors = _diagonalize(blocks)
            groups.append(ComponentGroup(items, vectors))
        if not groups:
            return cls.diagonal(eigenvalues)
        return cls(precision, np.maximum(eigenvalues, EIGENVALUE_FLOOR), groups)

    @property
    def base(self) -> "AxisPrecision":
        """Return the precision of one set of the items."""
        # No reference to itself: large arrays would wait for the collector of cycles.
        return self if self._base is None else self._base

    @property
    def size(self) -> int:
        """Return the number of items q, repeats counted."""
        return len(self.eigenvalues)

    @property
    def n_repeats(self) -> int:
        """Return how many times the items are there."""
        return self.size // len(self.base.eigenvalues)

    @property
    def is_diagonal(self) -> bool:
        """Tell whether no two items are linked."""
        return not self.groups

    @property
    def precision(self) -> sp.csr_array:
        """Return the precision as a sparse matrix."""
        return sp.csr_array(sp.diags_array(self.weights)) if self.is_diagonal else self.weights

    @property
    def variances(self) -> FloatArray:
        """Return the diagonal of the covariance ``P^-1``."""
        return self.marginal((1.0 / self.eigenvalues)[:, None])[:, 0]

    @property
    def n_edges(self) -> int:
        """Return the number of linked pairs; a pair and its repeats count once."""
        return 0 if self.is_diagonal else int(self.base.precision.nnz - self.base.size) // 2

    @property
    def largest_component(self) -> int:
        """Return the number of items in the largest component."""
        return max((group.items.shape[-1] for group in self.groups), default=1)

    @property
    def log_determinant(self) -> float:
        """Return ``logdet P``."""
        return float(np.log(self.eigenvalues).sum())

    def state(self) -> dict[str, Any]:
        """Return plain values, from which `from_state` makes the same precision to the bit."""
        base = self.base
        return {"unscaled": base.unscaled, "scale": base.scale, "n_repeats": self.n_repeats}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "AxisPrecision":
        """Return the precision of which `state` was taken."""
        unscaled = state["unscaled"]
        base = cls.from_precision(unscaled) if sp.issparse(unscaled) else cls.diagonal(unscaled)
        return base.scaled(state["scale"]).tile(state["n_repeats"])

    def scaled(self, factor: float) -> "AxisPrecision":
        """Return ``factor * P``."""
        base = self.base
        if base.is_diagonal:
            return AxisPrecision.diagonal(base.weights * factor).tile(self.n_repeats)
        scaled = AxisPrecision(
            base.unscaled, base._unscaled_eigenvalues, base.groups, base.scale * factor
        )
        return scaled.tile(self.n_repeats)

    def rescaled(self, scales: FloatArray) -> "AxisPrecision":
        """Return ``D P D`` with D = diag(scales): the precision in other units of the items."""
        if np.ptp(scales) == 0.0:  # the usual case, which keeps the eigenvectors
            return self.scaled(float(scales[0]) ** 2)
        base = self.base
        if base.is_diagonal:
            return AxisPrecision.diagonal(base.weights * scales**2).tile(self.n_repeats)
        diagonal = sp.diags_array(scales)
        rescaled = sp.csr_array(diagonal @ base.weights @ diagonal)
        return AxisPrecision.from_precision(rescaled).tile(self.n_repeats)

    def tile(self, n_repeats: int) -> "AxisPrecision":
        """Return the noise of `n_repeats` independent sets of these items."""
        if n_repeats == 1:
            return self
        first = self.size * np.arange(n_repeats)[:, None, None]
        return AxisPrecision(
            np.tile(self.unscaled, n_repeats)
            if self.is_diagonal
            else sp.csr_array(sp.kron(sp.eye_array(n_repeats), self.unscaled)),
            np.tile(self._unscaled_eigenvalues, n_repeats),
            [ComponentGroup(first + items, vectors) for items, vectors in self.groups],
            self.scale,
            self,
        )

    def pool(self, values: FloatArray) -> FloatArray:
        """Add up, item by item, what the repeats of the items have."""
        return np.asarray(values.reshape(self.n_repeats, -1, *values.shape[1:]).sum(axis=0))

    def apply(self, thin: FloatArray) -> FloatArray:
        """Return ``P Z``."""
        return weigh(self.weights, thin)

    def rotate(self, thin: FloatArray) -> FloatArray:
        """Return ``V' Z``: coordinates in which the noise is independent."""
        if self.is_diagonal:
            return thin
        rotated = thin.copy()
        for items, vectors in self.groups:
            rotate_components(items, vectors, thin, rotated)
        return rotated

    def unrotate(self, thin: FloatArray) -> FloatArray:
        """Return ``V Z``, the inverse of `rotate`."""
        if self.is_diagonal:
            return thin
        original = thin.copy()
        for items, vectors in self.groups:
            rotate_components(items, vectors.transpose(0, 2, 1), thin, original)
        return original

    def whiten(self, thin: FloatArray) -> FloatArray:
        """Return ``diag(eigenvalues)^(1/2) V' Z``: white noise has unit variance there."""
        return np.asarray(np.sqrt(self.eigenvalues)[:, None] * self.rotate(thin))

    def color(self, thin: FloatArray) -> FloatArray:
        """Return ``V diag(eigenvalues)^(-1/2) Z``, the inverse of `whiten`."""
        return self.unrotate(thin / np.sqrt(self.eigenvalues)[:, None])

    def marginal(self, spectral: FloatArray) -> FloatArray:
        """Return ``(V * V) Z``: diagonals of ``V diag(z) V'`` for each column z of Z."""
        if self.is_diagonal:
            return spectral
        diagonals = spectral.copy()
        for items, vectors in self.groups:
            diagonals[items] = np.matmul(vectors * vectors, spectral[items].astype(vectors.dtype))
        return diagonals

    def function(self, spectral: FloatArray) -> tuple[FloatArray, sp.csr_array | None]:
        """Return diagonal and off-diagonal part of ``V diag(spectral) V'``, added over repeats.

        The off-diagonal part is sparse: whole blocks for components of up to `WHOLE_BLOCK`
        items, the graph's own edges for larger ones; None for a diagonal precision.
        """
        spectral, base = self.pool(spectral), self.base
        if self.is_diagonal:
            return spectral, None
        rows, cols, values = [], [], []
        for items, vectors in base.groups:
            size = items.shape[1]
            if size <= WHOLE_BLOCK:
                weighted = vectors * spectral[items][:, None, :]
                blocks = np.matmul(weighted, vectors.transpose(0, 2, 1))
                off = ~np.eye(size, dtype=bool)
                rows.append(np.repeat(items, size - 1))
                cols.append(np.tile(items, (1, size)).reshape(-1, size, size)[:, off].ravel())
                values.append(blocks[:, off].ravel())
                continue
            for members, basis in zip(items, vectors, strict=True):
                i, j = _links(base.weights, members)
                rows.append(members[i])
                cols.append(members[j])
                values.append(_function_at(i, j, basis, spectral[members].astype(basis.dtype)))
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols)))
        off_diagonal = sp.csr_array(entries, shape=(base.size, base.size))
        return base.marginal(spectral[:, None])[:, 0], off_diagonal


def _links(precision: sp.csr_array, members: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places, in a component, of the two ends of its edges, both ways."""
    part = precision[members][:, members].tocoo()
    i, j = part.coords
    return i[i != j], j[i != j]


def _function_at(i: IntArray, j: IntArray, vectors: FloatArray, spectral: FloatArray) -> FloatArray:
    """Return the listed entries of ``V diag(spectral) V'``, a few at a time."""
    weighted = vectors * spectral
    value = np.empty(len(i))
    for e in slices(len(i), 2048):
        value[e] = np.einsum("el,el->e", weighted[i[e]], vectors[j[e]])
    return value


def _diagonalize(blocks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of each block."""
    if blocks.shape[1] <= LARGE:
        values, vectors = np.linalg.eigh(blocks)
        return values, vectors
    values, vectors = np.linalg.eigh(blocks.astype(np.float32))
    values = np.maximum(values.astype(np.float64), 1e-6 * values.max())
    # Single precision spoils the small eigenvalues; Cholesky gives the log-determinant exactly.
    for value, block in zip(values, blocks, strict=True):
        try:
            factor = np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            continue
        exact = 2.0 * np.log(np.diag(factor)).sum()
        value *= np.exp((exact - np.log(value).sum()) / len(value))
    return values, vectors
