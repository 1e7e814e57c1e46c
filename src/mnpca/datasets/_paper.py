"""The synthetic data sets of the MN-PCA paper."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from mnpca._typing import FloatArray, IntArray, RandomState
from mnpca.datasets._precision import random_sparse_precision
from mnpca.datasets._synthetic import check_sizes, color_rows, sample_matrix_normal, white_entries


def make_paper_small(
    c: float = 32.0,
    seed: RandomState = 0,
    legacy: bool = False,
    *,
    n_samples: int = 300,
    n_features: int = 200,
    density: float = 0.01,
    signal_scale: float = 1.0,
    row_precision: Any = None,
    col_precision: Any = None,
    noise: str = "gaussian",
) -> Bunch:
    """Three groups of rows in matrix normal noise: the paper's small data.

    Centroids over the features, `w` = a tenth of them at each end: (1 ... 1), (-1 ... -1) and
    (1 ... -1), zero in between; rows are shuffled.

    Parameters
    ----------
    c : float, default=32.0
        Condition number of both noise precisions; 1 gives white noise.
    seed : int, RandomState instance or None, default=0
        Source of everything random.
    legacy : bool, default=False
        Draw E = La Z Lb as the paper's program did, instead of La Z Lb'. The column precision
        of that noise is not the sparse one it was drawn from; `col_precision` then holds the
        sparse one, which the paper scored against.
    n_samples, n_features, density, signal_scale
        The paper's 300 x 200 at 0.01; other sizes make related data.
    row_precision, col_precision : array or sparse matrix, default=None
        Noise precisions to use instead of random ones.
    noise : str, default="gaussian"
        See `sample_matrix_normal`.

    Returns
    -------
    Bunch
        Y, signal, labels, row_precision, col_precision.

    Examples
    --------
    >>> from mnpca.datasets import make_paper_small
    >>> data = make_paper_small(c=224, seed=1)
    >>> data.Y.shape, len(set(data.labels))
    ((300, 200), 3)
    """
    rng = check_random_state(seed)
    width = _width(n_features)
    centroids = np.zeros((3, n_features))
    centroids[0, :width], centroids[0, -width:] = 1, 1
    centroids[1, :width], centroids[1, -width:] = -1, -1
    centroids[2, :width], centroids[2, -width:] = 1, -1
    labels = rng.permutation(np.arange(n_samples) * 3 // n_samples)
    if row_precision is None:
        row_precision = random_sparse_precision(n_samples, density, c, rng)
    if col_precision is None:
        col_precision = random_sparse_precision(n_features, density, c, rng)
    check_sizes(row_precision, col_precision, (n_samples, n_features))
    signal = signal_scale * centroids[labels]
    if legacy:
        error = _legacy_noise(row_precision, col_precision, rng, noise)
    else:
        error = sample_matrix_normal(row_precision, col_precision, rng, noise=noise)
    return _bunch(signal, error, labels, row_precision, col_precision)


def make_paper_large(p: int = 2000, seed: RandomState = 0) -> Bunch:
    """Three groups of 300, 300 and 400 rows in matrix normal noise: the paper's large data.

    n = 1000, condition number 196, density 0.01 among rows and 0.001 among columns; centroids:
    ones on the first tenth of the features; ones on the last tenth; ones on the first and minus
    ones on the last tenth.

    Parameters
    ----------
    p : int, default=2000
        Number of features; the paper has 2000 to 6000.
    seed : int, RandomState instance or None, default=0
        Source of everything random.

    Returns
    -------
    Bunch
        Y, signal, labels, row_precision, col_precision.
    """
    rng = check_random_state(seed)
    width = _width(p)
    centroids = np.zeros((3, p))
    centroids[0, :width] = 1
    centroids[1, -width:] = 1
    centroids[2, :width], centroids[2, -width:] = 1, -1
    labels = rng.permutation(np.repeat([0, 1, 2], [300, 300, 400]))
    row_precision = random_sparse_precision(1000, 1e-2, 196.0, rng)
    col_precision = random_sparse_precision(p, 1e-3, 196.0, rng)
    error = sample_matrix_normal(row_precision, col_precision, rng)
    return _bunch(centroids[labels], error, labels, row_precision, col_precision)


def _legacy_noise(
    row_precision: Any, col_precision: Any, rng: np.random.RandomState, noise: str
) -> FloatArray:
    """E = La Z Lb: the missing transpose of the paper's program."""
    white = white_entries((row_precision.shape[0], col_precision.shape[0]), rng, noise)
    lower = color_rows(col_precision, np.eye(col_precision.shape[0]))
    return color_rows(row_precision, white) @ lower


def _width(n_features: int) -> int:
    """Features at each end that a centroid raises or lowers: a tenth of all."""
    if n_features < 10:
        raise ValueError(f"n_features must be at least 10, got {n_features}.")
    return n_features // 10


def _bunch(
    signal: FloatArray, error: FloatArray, labels: IntArray, row_precision: Any, col_precision: Any
) -> Bunch:
    return Bunch(
        Y=signal + error,
        signal=signal,
        labels=labels,
        row_precision=sp.csr_array(row_precision),
        col_precision=sp.csr_array(col_precision),
    )
