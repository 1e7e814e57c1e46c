"""Low-rank signals in matrix normal noise."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cholesky, solve_triangular
from sklearn.utils import Bunch, check_random_state

from mnpca._components import group_by_label, label_components
from mnpca._typing import FloatArray, IntArray, RandomState
from mnpca.datasets._precision import random_sparse_precision

#: Unit-variance entries of the white matrix behind the noise, by name.
NOISE_KINDS = ("gaussian", "laplace", "uniform", "mixture-scale", "mixture-heavy", "mixture-shift")


def sample_matrix_normal(
    row_precision: Any,
    col_precision: Any,
    random_state: RandomState = None,
    *,
    noise: str = "gaussian",
) -> FloatArray:
    """Draw E = La Z Lb', La and Lb the lower Cholesky factors of the two covariances.

    With A = U U', U upper triangular, the lower Cholesky factor of inv(A) is inv(U)', so only
    triangular solves are needed, one per connected component of the graph.

    Parameters
    ----------
    row_precision, col_precision : array or sparse matrix, (n, n) and (p, p)
        Inverse covariances among rows and among columns.
    random_state : int, RandomState instance or None, default=None
        Source of the white matrix Z.
    noise : {"gaussian", "laplace", "uniform", "mixture-scale", "mixture-heavy", \
"mixture-shift"}, default="gaussian"
        Distribution of the independent entries of Z; all have mean 0 and variance 1, so the
        covariance of E is the same for all.

    Returns
    -------
    ndarray of shape (n, p)
    """
    rng = check_random_state(random_state)
    white = white_entries((row_precision.shape[0], col_precision.shape[0]), rng, noise)
    return color_rows(col_precision, color_rows(row_precision, white).T).T


def white_entries(
    shape: tuple[int, ...], rng: np.random.RandomState, noise: str = "gaussian"
) -> FloatArray:
    """Independent entries with mean 0 and variance 1 of the named distribution."""
    if noise == "gaussian":
        return rng.standard_normal(shape)
    if noise == "laplace":
        return rng.laplace(scale=np.sqrt(0.5), size=shape)
    if noise == "uniform":
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=shape)
    if noise == "mixture-scale":  # 0.8 N(0, 1/4) + 0.2 N(0, 4)
        scale = np.where(rng.uniform(size=shape) < 0.2, 2.0, 0.5)
        return rng.standard_normal(shape) * scale
    if noise == "mixture-heavy":  # 0.95 N(0, v) + 0.05 N(0, 10 v)
        scale = np.where(rng.uniform(size=shape) < 0.05, np.sqrt(10.0), 1.0)
        return rng.standard_normal(shape) * scale / np.sqrt(0.95 + 0.05 * 10.0)
    if noise == "mixture-shift":  # equal parts N(-0.8, 0.36) and N(0.8, 0.36)
        sign = np.where(rng.uniform(size=shape) < 0.5, -1.0, 1.0)
        return 0.8 * sign + 0.6 * rng.standard_normal(shape)
    raise ValueError(f"noise must be one of {NOISE_KINDS}, got {noise!r}.")


def color_rows(precision: Any, white: FloatArray) -> FloatArray:
    """Return L Z, with L the lower Cholesky factor of inv(precision), by component."""
    colored = white / np.sqrt(precision.diagonal())[:, None]
    for items, upper in upper_factors(precision):
        colored[items] = solve_triangular(upper, white[items], trans="T")
    return colored


def upper_factors(precision: Any) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield (items, U) with U upper triangular and U U' the block, by component of several."""
    precision = sp.csr_array(precision)
    for items in group_by_label(label_components(precision)):
        if len(items) > 1:
            block = precision[items][:, items].toarray()
            yield items, cholesky(block[::-1, ::-1], lower=True)[::-1, ::-1]


def check_sizes(row_precision: Any, col_precision: Any, shape: tuple[int, ...]) -> None:
    """Refuse precisions that do not fit a matrix of this shape."""
    named = (("row_precision", row_precision), ("col_precision", col_precision))
    for (name, precision), size in zip(named, shape, strict=True):
        if precision.shape != (size, size):
            raise ValueError(f"{name} must have shape {(size, size)}, got {precision.shape}.")


def make_low_rank_matrix_normal(
    n_samples: int = 300,
    n_features: int = 200,
    n_components: int = 2,
    *,
    density: float = 0.01,
    condition: float = 32.0,
    row_precision: Any = None,
    col_precision: Any = None,
    signal: FloatArray | None = None,
    signal_scale: float = 1.0,
    noise: str = "gaussian",
    random_state: RandomState = None,
) -> Bunch:
    """Generate Y = X W' + E with sparse noise networks among rows and among columns.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of Y.
    n_components : int, default=2
        Rank of the signal. Scores and loadings are standard normal, scaled so that the signal's
        mean square is 0.2 `n_components` (as strong per component as `make_paper_small`).
    density, condition : float
        Of the random precisions, see `random_sparse_precision`.
    row_precision, col_precision : array or sparse matrix, default=None
        Noise precisions to use instead of random ones.
    signal : ndarray of shape (n_samples, n_features), default=None
        Signal to use instead of the random one.
    signal_scale : float, default=1.0
        Factor on the signal.
    noise : str, default="gaussian"
        See `sample_matrix_normal`.
    random_state : int, RandomState instance or None, default=None
        Source of everything random.

    Returns
    -------
    Bunch
        Y, signal, labels (the sign of the first score; zeros where the signal was given),
        row_precision, col_precision.

    Examples
    --------
    >>> from mnpca.datasets import make_low_rank_matrix_normal
    >>> data = make_low_rank_matrix_normal(40, 30, 2, random_state=0)
    >>> data.Y.shape
    (40, 30)
    """
    rng = check_random_state(random_state)
    if row_precision is None:
        row_precision = random_sparse_precision(n_samples, density, condition, rng)
    if col_precision is None:
        col_precision = random_sparse_precision(n_features, density, condition, rng)
    scores = rng.standard_normal((n_samples, n_components))
    loadings = rng.standard_normal((n_features, n_components))
    labels = np.zeros(n_samples, dtype=int)
    if signal is None:
        signal = np.sqrt(0.2) * scores @ loadings.T
        if n_components:
            labels = (scores[:, 0] > 0).astype(int)
    check_sizes(row_precision, col_precision, (n_samples, n_features))
    if signal.shape != (n_samples, n_features):
        raise ValueError(f"signal must have shape {(n_samples, n_features)}, got {signal.shape}.")
    signal = signal_scale * signal
    observed = signal + sample_matrix_normal(row_precision, col_precision, rng, noise=noise)
    return Bunch(
        Y=observed,
        signal=signal,
        labels=labels,
        row_precision=sp.csr_array(row_precision),
        col_precision=sp.csr_array(col_precision),
    )
