"""Metrics of generalized PCA: how they multiply, their roots, and two made from distances."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import pdist, squareform

from mnpca._components import NULL, Root, blocks, group_by_label, label_components
from mnpca._typing import FloatArray

# An eigenvalue below minus this share of the largest one is negative, not a rounding error.
NEGATIVE = 1e-8
# Larger connected components are checked by Lanczos iterations instead of a factor.
DENSE_LIMIT = 3000
# Two halves of a matrix that differ by more than this share of its largest entry are not one.
ASYMMETRY = 1e-8
SMALLEST_DENSITY = 1e-4


class MetricError(ValueError):
    """The matrix is not a metric: not square, not symmetric or not positive semi-definite."""


@dataclass(frozen=True, eq=False)
class Metric:
    """A symmetric positive semi-definite matrix M of which products are known.

    The matrix is sparse, dense or an operator, or None for the identity. The name is for messages.
    """

    size: int
    matrix: Any = None
    name: str = "metric"

    @property
    def is_identity(self) -> bool:
        """Whether the matrix is the identity."""
        return self.matrix is None

    @property
    def is_operator(self) -> bool:
        """Whether only products are known."""
        return isinstance(self.matrix, LinearOperator)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return ``M x``."""
        product: FloatArray = x if self.matrix is None else self.matrix @ x
        return product

    def stored(self) -> Any:
        """Return the matrix as a sparse array, or the operator."""
        if self.is_operator:
            return self.matrix
        if self.matrix is None:
            return sp.eye_array(self.size, format="csr")
        return sp.csr_array(self.matrix)

    def check(self) -> None:
        """Raise a MetricError unless the matrix is positive semi-definite, as far as is known.

        Of an operator only products are known; its negative directions show when they are met.
        """
        if self.is_operator or self.matrix is None:
            return
        if not sp.issparse(self.matrix):
            _check_block(self.matrix, self.name)
            return
        if self.matrix.diagonal().min() < 0:
            raise not_semi_definite(self.name)
        for items in group_by_label(label_components(self.matrix)):
            if len(items) > 1:
                block = self.matrix[items][:, items]
                _check_block(block if len(items) > DENSE_LIMIT else block.toarray(), self.name)

    def root(self) -> Root:
        """Factor the matrix, one connected component at a time.

        Raises
        ------
        MetricError
            If the matrix is not positive semi-definite, or only its products are known.
        """
        if self.is_operator:
            raise MetricError(
                f"{self.name} is a LinearOperator, which has no factor; "
                'use solver="krylov" or "power".'
            )
        if self.matrix is None:
            return Root(np.ones(self.size), [])
        if not sp.issparse(self.matrix):
            block, singular = _square_root(self.matrix, self.name)
            return Root(np.ones(self.size), [(np.arange(self.size), block)], singular)
        diagonal = self.matrix.diagonal()
        if diagonal.min() < 0:
            raise not_semi_definite(self.name)
        alone = np.ones(self.size, dtype=bool)
        roots, singular = [], False
        for items, block in blocks(self.matrix):
            alone[items] = False
            root, lacks_rank = _square_root(block, self.name)
            roots.append((items, root))
            singular |= lacks_rank
        return Root(np.sqrt(diagonal), roots, singular or bool((diagonal[alone] == 0).any()))


def as_metric(matrix: Any, size: int, name: str = "metric") -> Metric:
    """Check a metric and bring it to one of the forms that `Metric` holds.

    None is the identity, a 1-D array a diagonal; messages use the name. Whether a matrix is
    positive semi-definite shows when it is factored or multiplied with.
    """
    if matrix is None:
        return Metric(size, None, name)
    if not isinstance(matrix, LinearOperator) and not sp.issparse(matrix):
        matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.shape not in ((size, size), (size,)):
        raise MetricError(
            f"{name} must have shape ({size}, {size}), or ({size},) for a diagonal; "
            f"got {matrix.shape}."
        )
    if isinstance(matrix, LinearOperator):
        return Metric(size, matrix, name)
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix).astype(np.float64)
    entries = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(entries).all():
        raise MetricError(f"{name} must be finite.")
    if matrix.ndim == 1:
        if matrix.min() < 0:
            raise not_semi_definite(name)
        return Metric(size, sp.csr_array(sp.diags_array(matrix)), name)
    difference = abs(matrix - matrix.T).max()
    if difference > ASYMMETRY * abs(matrix).max():
        raise MetricError(f"{name} must be symmetric; pass (M + M.T) / 2.")
    return Metric(size, matrix, name)


def orthonormalize(x: FloatArray, metric: Metric, against: FloatArray | None = None) -> FloatArray:
    """Return a basis Q of the columns of x with ``Q'MQ = I``, null directions of M dropped.

    With `against`, itself orthonormal in M, its span is taken out of the basis.
    """
    basis, scale = _whiten(_range(x), metric)
    if against is None:
        return basis
    for _ in range(2):  # the second pass removes the rounding errors that the first one blows up
        size = np.linalg.norm(basis, axis=0).max(initial=0.0)
        basis = basis - against @ (against.T @ metric.apply(basis))
        basis, _ = _whiten(_range(basis, floor=1e-13 * size), metric, scale)
    return basis


def _whiten(basis: FloatArray, metric: Metric, scale: float = 0.0) -> tuple[FloatArray, float]:
    """Make an orthonormal basis orthonormal in M, and return the size of M on it.

    Directions in which M is zero, compared with its size on the basis or with `scale`, go.
    """
    if metric.is_identity:
        return basis, 1.0
    for attempt in range(2):  # the second pass removes the rounding errors of the first
        gram = basis.T @ metric.apply(basis)
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        largest = float(np.abs(values).max(initial=np.finfo(float).tiny))
        if attempt == 0:
            scale = max(scale, largest)
            if (values < -NEGATIVE * scale).any():
                raise not_semi_definite(metric.name)
        kept = values > NULL * (scale if attempt == 0 else largest)
        basis = basis @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis, scale


def _range(x: FloatArray, floor: float = 0.0) -> FloatArray:
    """Orthonormal basis of the columns, those below rounding or `floor` dropped."""
    basis, triangle, _ = scipy.linalg.qr(x, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    limit = max(1e-14 * size.max(initial=np.finfo(float).tiny), floor)
    kept: FloatArray = basis[:, size > limit]
    return kept


def _square_root(matrix: FloatArray, name: str) -> tuple[FloatArray, bool]:
    """F with F F' = M, and whether M is singular."""
    scale = np.abs(matrix).max(initial=0.0)
    try:
        factor = scipy.linalg.cholesky(matrix, lower=True)
        # A Cholesky factor of a singular matrix may exist by rounding; its inverse is useless.
        if np.diag(factor).min() ** 2 > NULL * scale:
            return factor, False
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(matrix)
    if values.min() < -NEGATIVE * max(values.max(), 0.0):
        raise not_semi_definite(name)
    kept = values > NULL * values.max()
    root = (vectors[:, kept] * np.sqrt(values[kept])) @ vectors[:, kept].T
    return root, True


def _check_block(matrix: Any, name: str) -> None:
    if sp.issparse(matrix):
        # The ends of the spectrum as largest eigenvalues, of M and of s I - M, which converge fast.
        matrix = matrix / max(abs(matrix).max(), np.finfo(float).tiny)  # ARPACK's zero is absolute
        start = np.random.default_rng(0).standard_normal(matrix.shape[0])
        largest = float(eigsh(matrix, k=1, v0=start, return_eigenvectors=False, tol=1e-6)[0])
        flipped = abs(largest) * sp.eye_array(matrix.shape[0]) - matrix
        top = float(eigsh(flipped, k=1, v0=start, return_eigenvectors=False, tol=1e-6)[0])
        if largest < 0 or top > (1 + 1e-5) * largest:
            raise not_semi_definite(name)
        return
    shift = NEGATIVE * max(float(np.abs(matrix).max(initial=0.0)), np.finfo(float).tiny)
    try:
        scipy.linalg.cholesky(matrix + shift * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        raise not_semi_definite(name) from None


def not_semi_definite(name: str) -> MetricError:
    """Return the error to raise for a metric with a negative direction."""
    return MetricError(
        f"{name} is not positive semi-definite, so it measures no distance. "
        "Add a multiple of the identity, or take another metric."
    )


def smooth_metric(items: FloatArray) -> FloatArray:
    """Return ``exp(-D_ij^2 / 2)``.

    It need not be positive semi-definite; generalized PCA then has no result and says so.
    """
    smooth: FloatArray = np.exp(-(squareform(pdist(items, "chebyshev")) ** 2) / 2)
    return smooth


def laplacian_metric(items: FloatArray, density: float = 0.01) -> sp.csr_array:
    """Return the Laplacian of the graph of near items, divided by its largest eigenvalue.

    Items are joined where their distance is below the `density` quantile of all distances, with
    weight 1/D (items that coincide count as being as close as the closest that do not). The paper
    takes for the density the share of nonzeros of the precision that MN-PCA estimated.
    """
    distances = pdist(items, "chebyshev")
    q = len(items)
    window = np.quantile(distances, max(density, SMALLEST_DENSITY)) if q > 1 else 0.0
    near = np.flatnonzero(distances < window)
    if not len(near):
        raise MetricError(
            f"No two items are closer than the {max(density, SMALLEST_DENSITY):g} quantile of "
            "their distances, so the Laplacian is zero; take a larger density."
        )
    closest = distances[distances > 0].min()
    row, col = np.triu_indices(q, k=1)
    weights = 1.0 / np.maximum(distances[near], closest)
    upper = sp.coo_array((weights, (row[near], col[near])), shape=(q, q))
    adjacency = sp.csr_array(upper + upper.T)
    laplacian = sp.diags_array(adjacency.sum(axis=1)) - adjacency
    if q <= 500:
        top = np.linalg.eigvalsh(laplacian.toarray())[-1]
    else:
        start = np.random.default_rng(0).standard_normal(q)
        top = eigsh(laplacian, k=1, which="LA", v0=start, return_eigenvectors=False)[0]
    return sp.csr_array(laplacian / top)
