"""Generalized PCA: the best low-rank approximation in the metrics of rows and of columns."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg

from mnpca._typing import FloatArray
from mnpca.engines.arrays import Array, astype, cholesky, is_foreign_array, namespace, to_numpy
from mnpca.model.low_rank import LowRank, components_for_share, fix_signs
from mnpca.model.metric import Metric, not_semi_definite, orthonormalize

GpcaSolver: TypeAlias = Literal["auto", "factor", "krylov", "power"]
Data: TypeAlias = Any
"""A dense or sparse array, or a `mnpca.model.sparse_data.SparseMinusLowRank`."""

# Above this many rows and columns, few components are found faster by products.
DENSE_LIMIT = 500

# Columns beyond the wanted ones, and products with Y'AYB, in one round of the Krylov solver.
OVERSAMPLING = 5
DEPTH = 10
# Singular values below this share of the largest are rounding errors.
SMALLEST = 1e-10


class Gpca(NamedTuple):
    """``U diag(d) V'`` with ``U'AU = I``, ``V'BV = I`` and d falling; signs by the common rule."""

    left: FloatArray
    singular_values: FloatArray
    right: FloatArray
    n_iter: int = 1
    converged: bool = True

    def low_rank(self) -> LowRank:
        """Return the scores U diag(d) and the loadings V."""
        return LowRank(self.left * self.singular_values, self.right)

    def leading(self, share: float) -> "Gpca":
        """Return the fewest leading components with this share of the squared singular values."""
        k = components_for_share(self.singular_values, share)
        return self._replace(
            left=self.left[:, :k],
            singular_values=self.singular_values[:k],
            right=self.right[:, :k],
        )


def gpca(
    data: Data,
    n_components: int,
    row_metric: Metric,
    col_metric: Metric,
    *,
    solver: GpcaSolver = "auto",
    tol: float = 1e-10,
    max_iter: int = 1000,
    seed: int = 0,
) -> Gpca:
    """Minimize ``tr((Y - U D V') B (Y - U D V')' A)`` with ``U'AU = I``, ``V'BV = I``, ``D >= 0``.

    Where a metric is only semi-definite, the part of U (V) in its null space follows from the
    other factor, ``U = Y B V / d`` and ``V = Y' A U / d``. The solver "factor" takes the SVD of Fa'
    Y Fb with A = Fa Fa', B = Fb Fb'; "krylov" makes block Krylov iterations in the two metrics;
    "power" makes them as shallow as can be, which is the generalized power method (Allen,
    Grosenick and Taylor 2014) for all components at once; "auto" takes the first for dense arrays
    of moderate size, else the second.

    Arrays of another library, with dense positive definite metrics, are factored where they live;
    the outcome is thin and in the host's memory.
    """
    if is_foreign_array(data):
        return _foreign_gpca(data, n_components, row_metric, col_metric)
    if solver == "auto":
        small = isinstance(data, np.ndarray) and min(data.shape) <= DENSE_LIMIT
        solver = "factor" if small else "krylov"
    if solver == "factor":
        return _by_factors(data, n_components, row_metric, col_metric)
    depth = 1 if solver == "power" else DEPTH
    return _by_krylov(data, n_components, row_metric, col_metric, depth, tol, max_iter, seed)


def truncated_svd(data: Data, n_components: int) -> Gpca:
    """Singular value decomposition to rank k."""
    return gpca(data, n_components, *(Metric(size) for size in data.shape))


def identify(
    scores: FloatArray, loadings: FloatArray, row_metric: Metric, col_metric: Metric
) -> Gpca:
    """Bring ``X W'`` to the form ``U diag(d) V'`` of generalized PCA; the product stays.

    With Qx, Qw bases of X and W, orthonormal in A and B, this is the SVD of the k x k matrix
    ``(Qx' A X) (Qw' B W)'``.
    """
    left = orthonormalize(scores, row_metric)
    right = orthonormalize(loadings, col_metric)
    core = (left.T @ row_metric.apply(scores)) @ (right.T @ col_metric.apply(loadings)).T
    u, values, vt = np.linalg.svd(core, full_matrices=False)
    k = scores.shape[1]
    return _signed(_pad(left @ u, k), np.pad(values, (0, k - len(values))), _pad(right @ vt.T, k))


def _by_factors(data: Data, k: int, row: Metric, col: Metric) -> Gpca:
    dense = data if isinstance(data, np.ndarray) else data.toarray()
    row_root, col_root = row.root(), col.root()
    whitened = row_root.adjoint(col_root.adjoint(dense.T).T)
    u, values, vt = scipy.linalg.svd(whitened, full_matrices=False, check_finite=False)
    u, values, v = u[:, :k], values[:k], vt[:k].T
    left, right = row_root.solve_adjoint(u), col_root.solve_adjoint(v)
    seen = values > SMALLEST * values.max(initial=0.0)
    if row_root.singular:
        left[:, seen] = dense @ col_root.times(v[:, seen]) / values[seen]
    if col_root.singular:
        right[:, seen] = dense.T @ row_root.times(u[:, seen]) / values[seen]
    return _signed(left, values, right)


def _foreign_gpca(data: Array, k: int, row: Metric, col: Metric) -> Gpca:
    xp = namespace(data)
    whitened = astype(data, "float64")
    row_root, col_root = _foreign_root(row), _foreign_root(col)
    whitened = whitened if row_root is None else row_root.T @ whitened
    whitened = whitened if col_root is None else whitened @ col_root
    u, values, vt = xp.linalg.svd(whitened, full_matrices=False)
    left, right = u[:, :k], vt[:k, :].T
    left = left if row_root is None else xp.linalg.solve(row_root.T, left)
    right = right if col_root is None else xp.linalg.solve(col_root.T, right)
    return _signed(*map(to_numpy, (left, values[:k], right)))


def _foreign_root(metric: Metric) -> Array | None:
    """Return the Cholesky factor of a dense metric, None for the identity."""
    if metric.is_identity:
        return None
    factor = cholesky(metric.matrix)
    if factor is None:
        raise not_semi_definite(metric.name)
    return factor


def _by_krylov(
    data: Data,
    k: int,
    row: Metric,
    col: Metric,
    depth: int,
    tol: float,
    max_iter: int,
    seed: int,
) -> Gpca:
    """Rayleigh-Ritz on the spaces V, Y'AYB V, ..., restarted from the best vectors so far."""
    width = min(k + OVERSAMPLING, min(data.shape))
    start = np.random.default_rng(seed).standard_normal((data.shape[1], width))
    right = orthonormalize(start, col)
    n_iter, converged, values, error = 0, False, np.zeros(k), np.inf
    while not converged and n_iter < max_iter:
        n_iter += 1
        basis = _krylov_basis(data, right, row, col, depth)
        images = data @ col.apply(basis)
        left = orthonormalize(images, row)
        u, ritz, vt = np.linalg.svd(left.T @ row.apply(images), full_matrices=False)
        left, right = left @ u[:, :k], basis @ vt.T[:, :width]
        previous, values = values, np.pad(ritz, (0, k))[:k]
        residual = data.T @ row.apply(left) - right[:, :k] * ritz[:k]
        size = np.sqrt(np.abs(np.sum(residual * col.apply(residual), axis=0))).max(initial=0.0)
        previous_error, error = error, size
        moved = np.abs(values - previous).max()
        # Rounding may keep the residual above a very small tol; then neither it nor the values
        # keep falling.
        limit = values.max(initial=0.0)
        settled = moved <= 100 * np.finfo(float).eps * limit and error >= previous_error
        converged = bool(error <= tol * limit or settled)
    # Fill in the null directions of semi-definite metrics, and components that the data lack.
    left, right = _pad(left, k), _pad(right[:, :k], k)
    seen = values > SMALLEST * values.max(initial=0.0)
    left[:, seen] = data @ col.apply(right[:, seen]) / values[seen]
    if not col.is_identity:
        right[:, seen] = data.T @ row.apply(left[:, seen]) / values[seen]
    return _signed(left, values, right, n_iter, converged)


def _krylov_basis(
    data: Data, block: FloatArray, row: Metric, col: Metric, depth: int
) -> FloatArray:
    """Basis, orthonormal in B, of a block and of its images under Y'AYB and its powers."""
    basis = block
    for _ in range(depth):
        block = data.T @ row.apply(data @ col.apply(block))
        block = orthonormalize(block, col, against=basis)
        basis = np.column_stack([basis, block])
        if block.shape[1] == 0 or basis.shape[1] >= data.shape[1]:
            break
    # In a metric of large condition, rounding leaves the later blocks oblique to the earlier ones.
    return basis if col.is_identity else orthonormalize(basis, col)


def _pad(x: FloatArray, k: int) -> FloatArray:
    return np.column_stack([x, np.zeros((len(x), k - x.shape[1]))])


def _signed(left: FloatArray, values: FloatArray, right: FloatArray, *end: Any) -> Gpca:
    left, right = fix_signs(left, right)
    return Gpca(left, values, right, *end)
