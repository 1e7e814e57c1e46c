"""Is what the model leaves over white? The check of a fit that needs no truth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mnpca._components import label_components, root
from mnpca._typing import BoolArray, FloatArray, IntArray
from mnpca.engines import engine_for
from mnpca.model.low_rank import LowRank

#: Rows and columns of the whitened residual that are looked at, at most.
LARGEST_SAMPLE = 1000
#: With fewer rows or columns nothing can be said.
SMALLEST_SIDE = 20
#: Root mean square correlation, beyond chance, that a good fit may leave.
CORRELATION_LEFT = 0.045
#: Distance to the Marchenko-Pastur law that a good fit may leave in a large matrix.
DISTANCE_LEFT = 0.08
#: Largest singular value, in units of the edge, that a good fit may leave in a large matrix.
EDGE_LEFT = 1.15


class ModelCheckWarning(UserWarning):
    """The residual of a fit is not the noise that the fitted model describes.

    Examples
    --------
    >>> import warnings
    >>> from mnpca import ModelCheckWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ModelCheckWarning)  # and fit here
    """


@dataclass(frozen=True)
class Whiteness:
    """How far whitened residuals ``Z = A^(1/2) R B^(1/2)`` are from independent entries.

    Attributes
    ----------
    row_correlation, col_correlation : float
        Root mean square correlation between rows (columns) of Z beyond what chance gives. Zero
        for white noise.
    spectrum_distance : float
        Largest difference between the distribution of the squared singular values of Z and the
        Marchenko-Pastur law (Kolmogorov's distance). Zero for white noise.
    largest_singular_value : float
        In units of ``sqrt n + sqrt p``, where that of white noise lies.
    n_rows, n_cols : int
        Rows and columns that were looked at.
    """

    row_correlation: float
    col_correlation: float
    spectrum_distance: float
    largest_singular_value: float
    n_rows: int
    n_cols: int

    @property
    def uncorrelated(self) -> bool:
        """Whether rows and columns are no more correlated than a good fit leaves them.

        The mean of ``r^2`` over the pairs of q items with m observations has standard deviation
        ``2 / (m q)`` by chance; two of these are allowed for.
        """
        limit = CORRELATION_LEFT**2 + 4.0 / (self.n_rows * self.n_cols)
        return max(self.row_correlation, self.col_correlation) ** 2 <= limit

    @property
    def white(self) -> bool | None:
        """Return the verdict; None where the matrix is too small for one."""
        if min(self.n_rows, self.n_cols) < SMALLEST_SIDE:
            return None
        distance_limit = DISTANCE_LEFT + 2.0 / min(self.n_rows, self.n_cols)
        return (
            self.uncorrelated
            and self.spectrum_distance <= distance_limit
            and not self.has_component
        )

    @property
    def has_component(self) -> bool:
        """Whether a component is left that stands above what a good fit leaves.

        The largest singular value of white noise varies by about ``min(n, p)^(-2/3)`` of the edge.
        """
        limit = EDGE_LEFT + 1.5 * min(self.n_rows, self.n_cols) ** (-2.0 / 3.0)
        return bool(self.largest_singular_value > limit)


def whiteness(
    observed: Any,
    mean: FloatArray,
    low_rank: LowRank,
    row_precision: sp.csr_array,
    col_precision: sp.csr_array,
    *,
    n_repeats: int = 1,
) -> Whiteness:
    """Measure the whiteness of ``Z = A^(1/2) (Y - 1 mean' - signal) B^(1/2)``.

    What the fit has taken out is left out on both sides: with U and V orthonormal bases of the
    whitened factors, ``(I - U U') Z (I - V V')`` is looked at, which is white on the complement of
    these spans if Z holds nothing but noise. There the rows have the covariance I - U U' and
    the columns I - V V', with as many observations as there are free dimensions.

    Rows and columns beyond `LARGEST_SAMPLE` are sampled: a part of a white matrix is white. Of
    several matrices, `n_repeats` of them one under the other, whole ones are sampled, and two rows
    are compared over all of these. A covers all their rows.
    """
    engine = engine_for(observed)
    n, p = engine.shape
    rng = np.random.default_rng(0)
    rows, cols = _sample(n, rng, n_repeats), _sample(p, rng)
    # Only the part of the residual that is linked to the sample is formed.
    linked_rows, whiten_rows = _whitener(row_precision, rows)
    linked_cols, whiten_cols = _whitener(col_precision, cols)
    left, right = low_rank.left[linked_rows], low_rank.right[linked_cols]
    residual = engine.block(linked_rows, linked_cols) - mean[linked_cols] - left @ right.T
    whitened = whiten_cols(whiten_rows(residual).T).T
    if np.any(mean):
        left = np.column_stack([left, np.ones(len(left))])
    left, right = whiten_rows(left), whiten_cols(right)
    if n_repeats == 1:
        varying = _varying(whitened)
        whitened, left = whitened[varying], left[varying]
        varying = _varying(whitened.T)
        whitened, right = whitened[:, varying], right[varying]
    row_basis, col_basis = _basis(left), _basis(right)
    whitened -= row_basis @ (row_basis.T @ whitened)
    whitened -= (whitened @ col_basis) @ col_basis.T
    n_free = max(len(whitened) - row_basis.shape[1], 1)
    p_free = max(whitened.shape[1] - col_basis.shape[1], 1)
    singular_values = scipy.linalg.svdvals(whitened)[: min(n_free, p_free)]
    size = float(np.sqrt(np.sum(whitened**2) / (n_free * p_free)))
    singular_values /= max(size, np.finfo(float).tiny)
    n_taken = max(len(rows) * n_repeats // n, 1)
    alike, taken = (np.hstack(np.split(each, n_taken)) for each in (whitened, row_basis))
    return Whiteness(
        row_correlation=_excess_correlation(alike, p_free * n_taken, taken / np.sqrt(n_taken)),
        col_correlation=_excess_correlation(whitened.T, n_free, col_basis),
        spectrum_distance=marchenko_pastur_distance(singular_values, n_free, p_free),
        largest_singular_value=float(singular_values[0] / (np.sqrt(n_free) + np.sqrt(p_free))),
        n_rows=len(whitened),
        n_cols=whitened.shape[1],
    )


def whiten(
    matrix: FloatArray, row_precision: sp.csr_array, col_precision: sp.csr_array
) -> FloatArray:
    """Return ``Fa' M Fb`` with A = Fa Fa' and B = Fb Fb', white if M is MN(0, inv A, inv B).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from mnpca.diagnostics import whiten
    >>> whiten(np.ones((2, 2)), sp.diags_array([1.0, 4.0]), sp.eye_array(2)).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    rows, cols = (root(sp.csr_array(precision)) for precision in (row_precision, col_precision))
    return cols.adjoint(rows.adjoint(matrix).T).T


def marchenko_pastur(singular_values: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Density of the singular values of a white n x p matrix with unit variance.

    With m <= M the two dimensions and t = s^2 / M, the density of t is
    ``sqrt((t+ - t)(t - t-)) / (2 pi (m/M) t)`` between ``t± = (1 ± sqrt(m/M))^2``.

    Examples
    --------
    >>> from mnpca.diagnostics import marchenko_pastur
    >>> marchenko_pastur([9, 20, 31], (400, 100)).round(2).tolist()  # they lie between 10 and 30
    [0.0, 0.06, 0.0]
    """
    small, large = sorted(shape)
    ratio = small / large
    values = np.asarray(singular_values, dtype=float)
    t = values**2 / large
    lower, upper = (1 - np.sqrt(ratio)) ** 2, (1 + np.sqrt(ratio)) ** 2
    inside = np.maximum((upper - t) * (t - lower), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.sqrt(inside) / (2 * np.pi * ratio * t)
    return np.asarray(np.where(t > 0, density, 0.0) * 2 * values / large)


def marchenko_pastur_distance(singular_values: FloatArray, n: int, p: int) -> float:
    """Kolmogorov distance of squared singular values of an n x p matrix to the law of white noise.

    The eigenvalues of ``Z'Z / max(n, p)`` follow, for many rows and columns with ratio
    ``g = min/max``, the density ``sqrt((b - x)(x - a)) / (2 pi g x)`` between
    ``a = (1 - sqrt g)^2`` and ``b = (1 + sqrt g)^2``.
    """
    eigenvalues = np.sort(singular_values**2) / max(n, p)
    law = _marchenko_pastur_cdf(eigenvalues, min(n, p) / max(n, p))
    steps = np.arange(len(eigenvalues) + 1) / len(eigenvalues)
    return float(np.max(np.maximum(np.abs(law - steps[:-1]), np.abs(law - steps[1:]))))


def _marchenko_pastur_cdf(x: FloatArray, ratio: float) -> FloatArray:
    """Integrate the density in the angle t of ``x = 1 + g - 2 sqrt(g) cos t``: it is smooth."""
    angle = np.linspace(0.0, np.pi, 2001)
    half = 2.0 * np.sqrt(ratio)
    support = 1.0 + ratio - half * np.cos(angle)
    density = half**2 * np.sin(angle) ** 2 / np.maximum(support, 1e-12)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    law: FloatArray = np.interp(x, support, cumulative / cumulative[-1])
    return law


def correlation_matrix(items: FloatArray) -> FloatArray:
    """Return the correlations between the rows of a matrix, without centering."""
    length = np.linalg.norm(items, axis=1, keepdims=True)
    unit = items / np.maximum(length, np.finfo(float).tiny)
    return np.asarray(unit @ unit.T)


def _excess_correlation(items: FloatArray, n_observations: int, taken: FloatArray) -> float:
    """Return the root of the mean of ``r^2`` beyond chance, r the correlations of rows of a matrix.

    Rows of the covariance ``C = I - F F'``, F what was taken out, have correlations c, and of these
    ``r^2`` is ``c^2 + (1 - c^2)^2 / m`` in the mean of m observations. These are brought to one
    size first: errors of the other side's variances are no correlation.
    """
    q = len(items)
    if q < 2:
        return 0.0
    sizes = np.sqrt(np.mean(items**2, axis=0))
    items = items / np.where(sizes > 0.0, sizes, 1.0)
    variances = np.maximum(1.0 - np.sum(taken**2, axis=1), 1.0 / q)
    expected = (taken @ taken.T) ** 2 / np.outer(variances, variances)
    expected += (1.0 - np.minimum(expected, 1.0)) ** 2 / n_observations
    excess = correlation_matrix(items) ** 2 - expected
    np.fill_diagonal(excess, 0.0)
    return float(np.sqrt(max(excess.sum() / (q * (q - 1)), 0.0)))


def _basis(factor: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the columns of a thin matrix, the empty ones left out."""
    length = np.linalg.norm(factor, axis=0)
    unit = factor[:, length > 0.0] / length[length > 0.0]
    left, values, _ = np.linalg.svd(unit, full_matrices=False)
    return np.asarray(left[:, values > 1e-8])


def _varying(items: FloatArray) -> BoolArray:
    """Tell which rows have noise; constant rows of the data have none."""
    squares = np.mean(items**2, axis=1)
    return np.asarray(squares > 1e-6 * np.median(squares)) | (not squares.any())


def _sample(size: int, rng: np.random.Generator, n_repeats: int = 1) -> IntArray:
    if size <= LARGEST_SAMPLE:
        return np.arange(size)
    if n_repeats == 1:
        return np.sort(rng.choice(size, LARGEST_SAMPLE, replace=False))
    items = size // n_repeats
    chosen = np.sort(rng.choice(n_repeats, max(LARGEST_SAMPLE // items, 1), replace=False))
    return np.asarray((items * chosen[:, None] + np.arange(items)).ravel())


def _whitener(
    precision: sp.csr_array, items: IntArray
) -> tuple[IntArray, Callable[[FloatArray], FloatArray]]:
    """Return all items that are linked to the given ones, and ``F'`` from them to these.

    ``P = F F'`` is the precision of the linked items, which are whole connected components.
    """
    label = label_components(precision)
    linked = np.flatnonzero(np.isin(label, label[items]))
    factor = root(sp.csr_array(precision[linked][:, linked]))
    here = np.searchsorted(linked, items)
    return linked, lambda matrix: factor.adjoint(matrix)[here]
