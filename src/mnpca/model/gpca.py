"""Generalized PCA: the best low-rank approximation in the metrics of rows and of columns."""

import math
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.engines.arrays import (
    Array,
    astype,
    cholesky,
    is_foreign_array,
    like,
    logdet,
    namespace,
    to_numpy,
)
from mnpca.model.low_rank import LowRank, components_for_share, fix_signs
from mnpca.model.metric import Metric, Root, not_semi_definite, orthonormalize

GpcaSolver: TypeAlias = Literal["factor", "krylov", "power"]

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


class CenteredMatrix:
    """``Y = (S - 1 mean') / unit`` by its products; a sparse S stays sparse."""

    def __init__(self, matrix: Any, mean: FloatArray | None = None, unit: float = 1.0) -> None:
        self.shape: tuple[int, int] = matrix.shape
        if mean is not None and not sp.issparse(matrix):
            matrix, mean = matrix - mean, None
        self.matrix, self.mean, self.unit = matrix, mean, unit

    def times(self, x: FloatArray) -> FloatArray:
        """Return ``Y x``."""
        product: FloatArray = self.matrix @ x
        product = product if self.mean is None else product - self.mean @ x
        return product if self.unit == 1.0 else product / self.unit

    def adjoint(self, x: FloatArray) -> FloatArray:
        """Return ``Y' x``."""
        product: FloatArray = self.matrix.T @ x
        product = product if self.mean is None else product - np.outer(self.mean, x.sum(axis=0))
        return product if self.unit == 1.0 else product / self.unit

    def dense(self) -> FloatArray:
        """Return the matrix itself."""
        entries: FloatArray = self.matrix.toarray() if sp.issparse(self.matrix) else self.matrix
        entries = entries if self.mean is None else entries - self.mean
        return entries if self.unit == 1.0 else entries / self.unit


def gpca(
    data: CenteredMatrix,
    n_components: int,
    row_metric: Metric,
    col_metric: Metric,
    *,
    solver: GpcaSolver = "factor",
    tol: float = 1e-10,
    max_iter: int = 1000,
    seed: int = 0,
) -> Gpca:
    """Minimize ``tr((Y - U D V') B (Y - U D V')' A)`` with ``U'AU = I``, ``V'BV = I``, ``D >= 0``.

    Where a metric is only semi-definite, the part of U (V) that it does not see follows from the
    other factor, ``U = Y B V / d`` and ``V = Y' A U / d``. The solver "factor" takes the SVD of Fa'
    Y Fb with A = Fa Fa', B = Fb Fb'; "krylov" makes block Krylov iterations in the two metrics;
    "power" is the generalized power method, one component after the other (Allen, Grosenick and
    Taylor 2014).
    """
    if solver == "factor":
        return _by_factors(data, n_components, row_metric.root(), col_metric.root())
    if solver == "krylov":
        return _by_krylov(data, n_components, row_metric, col_metric, tol, max_iter, seed)
    return _by_power(data, n_components, row_metric, col_metric, tol, max_iter, seed)


def truncated_svd(matrix: Any, n_components: int, *, mean: FloatArray | None = None) -> Gpca:
    """Singular value decomposition to rank k: dense for small matrices, else by Krylov.

    The outcome is thin and lives in the host's memory, wherever the matrix does.
    """
    if is_foreign_array(matrix):
        return _foreign_svd(matrix, n_components, mean)
    small = min(matrix.shape) <= 500 and not sp.issparse(matrix)
    identity = (Metric(matrix.shape[0]), Metric(matrix.shape[1]))
    data = CenteredMatrix(matrix, mean)
    return gpca(data, n_components, *identity, solver="factor" if small else "krylov")


def _foreign_svd(matrix: Array, k: int, mean: FloatArray | None) -> Gpca:
    xp = namespace(matrix)
    centered = astype(matrix, "float64")
    if mean is not None:
        centered = centered - like(mean, centered)[None, :]
    u, values, vt = xp.linalg.svd(centered, full_matrices=False)
    return _signed(to_numpy(u[:, :k]), to_numpy(values[:k]), to_numpy(vt[:k, :].T))


def dense_gpca(
    data: Array, rank: int, row_precision: Array, col_precision: Array
) -> tuple[Gpca, float, float]:
    """Return generalized PCA with dense metrics, wherever the arrays live.

    With A = La La' and B = Lb Lb' it is the SVD of ``La' Y Lb``. The outcome is in the host's
    memory and in the gauge logdet A = 0, for ``A / t`` and ``t B``. Returned beside it are the sum
    of squares that the signal leaves (np where it is zero but for rounding) and t.
    """
    xp = namespace(data)
    row, col = cholesky(row_precision), cholesky(col_precision)
    if row is None or col is None:
        raise np.linalg.LinAlgError("a noise precision is not positive definite")
    scale = math.exp(logdet(row) / row.shape[0])
    u, values, vt = xp.linalg.svd(row.T @ data @ col, full_matrices=False)
    left = to_numpy(xp.linalg.solve(row.T, u[:, :rank])) * math.sqrt(scale)
    right = to_numpy(xp.linalg.solve(col.T, vt[:rank, :].T)) / math.sqrt(scale)
    squares = to_numpy(values).astype(np.float64) ** 2
    left_over = float(squares[rank:].sum())
    if left_over <= 1e-12 * squares.sum():
        left_over = float(data.shape[0] * data.shape[1])
    return _signed(left, np.sqrt(squares[:rank]), right), left_over, scale


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


def _by_factors(data: CenteredMatrix, k: int, row_root: Root, col_root: Root) -> Gpca:
    whitened = row_root.adjoint(col_root.adjoint(data.dense().T).T)
    u, values, vt = scipy.linalg.svd(whitened, full_matrices=False, check_finite=False)
    u, values, v = u[:, :k], values[:k], vt[:k].T
    left, right = row_root.solve_adjoint(u), col_root.solve_adjoint(v)
    seen = values > SMALLEST * values.max(initial=0.0)
    if row_root.singular:
        left[:, seen] = data.times(col_root.times(v[:, seen])) / values[seen]
    if col_root.singular:
        right[:, seen] = data.adjoint(row_root.times(u[:, seen])) / values[seen]
    return _signed(left, values, right)


def _by_krylov(
    data: CenteredMatrix, k: int, row: Metric, col: Metric, tol: float, max_iter: int, seed: int
) -> Gpca:
    """Rayleigh-Ritz on the spaces V, Y'AYB V, ..., restarted from the best vectors so far."""
    width = min(k + OVERSAMPLING, min(data.shape))
    right = orthonormalize(_random((data.shape[1], width), seed), col)
    n_iter, converged, values, error = 0, False, np.zeros(k), np.inf
    while not converged and n_iter < max_iter:
        n_iter += 1
        basis = _krylov_basis(data, right, row, col)
        images = data.times(col.apply(basis))
        left = orthonormalize(images, row)
        u, ritz, vt = np.linalg.svd(left.T @ row.apply(images), full_matrices=False)
        left, right = left @ u[:, :k], basis @ vt.T[:, :width]
        previous, values = values, np.pad(ritz, (0, k))[:k]
        residual = data.adjoint(row.apply(left)) - right[:, :k] * ritz[:k]
        size = np.sqrt(np.abs(np.sum(residual * col.apply(residual), axis=0))).max(initial=0.0)
        previous_error, error = error, size
        moved = np.abs(values - previous).max()
        # Rounding may keep the residual above a very small tol; then neither it nor the values
        # go on falling.
        limit = values.max(initial=0.0)
        settled = moved <= 100 * np.finfo(float).eps * limit and error > previous_error / 2
        converged = bool(error <= tol * limit or settled)
    return _finish(data, left, values, right[:, :k], row, col, n_iter, converged)


def _krylov_basis(data: CenteredMatrix, block: FloatArray, row: Metric, col: Metric) -> FloatArray:
    """Basis, orthonormal in B, of a block and of its images under Y'AYB and its powers."""
    basis = block
    for _ in range(DEPTH):
        block = data.adjoint(row.apply(data.times(col.apply(block))))
        block = orthonormalize(block, col, against=basis)
        basis = np.column_stack([basis, block])
        if block.shape[1] == 0 or basis.shape[1] >= data.shape[1]:
            break
    # In a metric of large condition, rounding leaves the later blocks oblique to the earlier ones.
    return basis if col.is_identity else orthonormalize(basis, col)


def _by_power(
    data: CenteredMatrix, k: int, row: Metric, col: Metric, tol: float, max_iter: int, seed: int
) -> Gpca:
    """One component after the other, each on what the earlier ones leave."""
    n, p = data.shape
    starts = _random((p, k), seed)
    found = Gpca(np.zeros((n, 0)), np.zeros(0), np.zeros((p, 0)))
    for j in range(k):
        u, size, v, n_iter, done = _power(data, found, starts[:, j], row, col, tol, max_iter)
        found = Gpca(
            np.column_stack([found.left, u]),
            np.append(found.singular_values, size),
            np.column_stack([found.right, v]),
            max(found.n_iter, n_iter),
            found.converged and done,
        )
    return _signed(*found)


def _power(
    data: CenteredMatrix,
    found: Gpca,
    v: FloatArray,
    row: Metric,
    col: Metric,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, float, FloatArray, int, bool]:
    """``u = Y B v / |Y B v|_A``, ``v = Y' A u / |Y' A u|_B``, Y less the components found."""
    left, values, right = found[:3]
    v = v[:, None] / max(_norm(v[:, None], col), np.finfo(float).tiny)
    u = np.zeros((data.shape[0], 1))
    for n_iter in range(1, max_iter + 1):
        old_u, old_v = u, v
        weighted = col.apply(v)
        u = data.times(weighted) - left @ (values[:, None] * (right.T @ weighted))
        size = _norm(u, row)
        if size <= 1e-14 * values.max(initial=0.0) or size == 0.0:  # the data hold no more
            return np.zeros_like(u), 0.0, np.zeros_like(v), n_iter, True
        u = u / size
        weighted = row.apply(u)
        v = data.adjoint(weighted) - right @ (values[:, None] * (left.T @ weighted))
        size = _norm(v, col)
        v = v / max(size, np.finfo(float).tiny)
        if _norm(u - old_u, row) <= tol and _norm(v - old_v, col) <= tol:
            return u, size, v, n_iter, True
    return u, size, v, max_iter, False


def _random(shape: tuple[int, int], seed: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(shape)


def _norm(x: FloatArray, metric: Metric) -> float:
    square = float(np.sum(x * metric.apply(x)))
    if square < -1e-8 * float(np.sum(x * x)):
        raise not_semi_definite(metric.name)
    return float(np.sqrt(max(square, 0.0)))


def _finish(
    data: CenteredMatrix,
    left: FloatArray,
    values: FloatArray,
    right: FloatArray,
    row: Metric,
    col: Metric,
    n_iter: int,
    converged: bool,
) -> Gpca:
    """Fill in what semi-definite metrics do not see, and components that the data lack."""
    left, right = _pad(left, len(values)), _pad(right, len(values))
    seen = values > SMALLEST * values.max(initial=0.0)
    left[:, seen] = data.times(col.apply(right[:, seen])) / values[seen]
    if not col.is_identity:
        right[:, seen] = data.adjoint(row.apply(left[:, seen])) / values[seen]
    return _signed(left, values, right, n_iter, converged)


def _pad(x: FloatArray, k: int) -> FloatArray:
    return np.column_stack([x, np.zeros((len(x), k - x.shape[1]))])


def _signed(
    left: FloatArray,
    values: FloatArray,
    right: FloatArray,
    n_iter: int = 1,
    converged: bool = True,
) -> Gpca:
    left, right = fix_signs(left, right)
    return Gpca(left, values, right, n_iter, converged)
