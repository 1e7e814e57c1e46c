"""Matrices with a low-rank signal and matrix normal noise; the paper's; Swiss rolls."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from mnpca._typing import FloatArray, RandomState
from mnpca.datasets._noise import (
    color_rows,
    random_sparse_precision,
    row_and_column_precisions,
    sample_matrix_normal,
    white_entries,
)

#: Length of a Swiss roll. Of two that share it, each takes 10 and leaves 1 between them.
LENGTH, HALF, SHIFT = 21.0, 10.0, 11.0


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
    A, B = row_and_column_precisions(
        (row_precision, col_precision),
        (n_samples, n_features),
        lambda size: random_sparse_precision(size, density, condition, rng),
    )
    scores = rng.standard_normal((n_samples, n_components))
    loadings = rng.standard_normal((n_features, n_components))
    labels = np.zeros(n_samples, dtype=int)
    if signal is None:
        signal = np.sqrt(0.2) * scores @ loadings.T
        if n_components:
            labels = (scores[:, 0] > 0).astype(int)
    if signal.shape != (n_samples, n_features):
        raise ValueError(f"signal must have shape {(n_samples, n_features)}, got {signal.shape}.")
    signal = signal_scale * signal
    Y = signal + sample_matrix_normal(A, B, rng, noise=noise)
    return Bunch(Y=Y, signal=signal, labels=labels, row_precision=A, col_precision=B)


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
    n_samples, n_features, density, signal_scale, row_precision, col_precision, noise
        As in `make_low_rank_matrix_normal`: the paper's 300 x 200 at 0.01, or related data.

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
    centroids = _centroids(n_features, ((1, 1), (-1, -1), (1, -1)))
    labels = rng.permutation(np.arange(n_samples) * 3 // n_samples)
    A, B = row_and_column_precisions(
        (row_precision, col_precision),
        (n_samples, n_features),
        lambda size: random_sparse_precision(size, density, c, rng),
    )
    signal = signal_scale * centroids[labels]
    if legacy:  # the paper's program lacks a transpose
        white = white_entries((n_samples, n_features), rng, noise)
        Y = signal + color_rows(A, white) @ color_rows(B, np.eye(n_features))
    else:
        Y = signal + sample_matrix_normal(A, B, rng, noise=noise)
    return Bunch(Y=Y, signal=signal, labels=labels, row_precision=A, col_precision=B)


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

    Examples
    --------
    >>> from mnpca.datasets import make_paper_large
    >>> make_paper_large(p=50).Y.shape
    (1000, 50)
    """
    rng = check_random_state(seed)
    centroids = _centroids(p, ((1, 0), (0, 1), (1, -1)))
    labels = rng.permutation(np.repeat([0, 1, 2], [300, 300, 400]))
    A = random_sparse_precision(1000, 1e-2, 196.0, rng)
    B = random_sparse_precision(p, 1e-3, 196.0, rng)
    signal = centroids[labels]
    Y = signal + sample_matrix_normal(A, B, rng)
    return Bunch(Y=Y, signal=signal, labels=labels, row_precision=A, col_precision=B)


def _centroids(n_features: int, ends: tuple[tuple[int, int], ...]) -> FloatArray:
    """Return rows with the given values on the first and on the last tenth of the features."""
    if n_features < 10:
        raise ValueError(f"n_features must be at least 10, got {n_features}.")
    width = n_features // 10
    centroids = np.zeros((len(ends), n_features))
    for row, (first, last) in zip(centroids, ends, strict=True):
        row[:width], row[-width:] = first, last
    return centroids


def make_two_swiss_rolls(
    n_samples: int = 400,
    *,
    arrangement: str = "wound",
    noise: float = 0.05,
    random_state: RandomState = None,
) -> Bunch:
    """Two Swiss rolls in three dimensions.

    A point of the first with roll angle t sits at (t cos t, h, t sin t).

    Parameters
    ----------
    n_samples : int, default=400
        Points in both rolls together.
    arrangement : {"wound", "side"}, default="wound"
        The second roll is the first one turned by pi around its axis, so that the two are wound
        into each other; or it stands beside the first on the same axis, each half as long.
    noise : float, default=0.05
        Standard deviation of the Gaussian noise.
    random_state : int, RandomState instance or None, default=None
        Source of everything random.

    Returns
    -------
    Bunch
        Y (n_samples x 3), signal (without noise), labels, row_precision and col_precision (of
        the white noise; the identity where there is none).

    Examples
    --------
    >>> from mnpca.datasets import make_two_swiss_rolls
    >>> make_two_swiss_rolls(100, random_state=0).Y.shape
    (100, 3)
    """
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, got {n_samples}.")
    if arrangement not in ("wound", "side"):
        raise ValueError(f'arrangement must be "wound" or "side", got {arrangement!r}.')
    if noise < 0:
        raise ValueError(f"noise must not be negative, got {noise}.")
    rng = check_random_state(random_state)
    labels = np.arange(n_samples) % 2
    angle = 1.5 * np.pi * (1 + 2 * rng.uniform(size=n_samples))
    height = rng.uniform(size=n_samples)
    if arrangement == "wound":
        turned, height = angle + np.pi * labels, LENGTH * height
    else:
        turned, height = angle, HALF * height + SHIFT * labels
    signal = np.column_stack([angle * np.cos(turned), height, angle * np.sin(turned)])
    white = noise * rng.standard_normal(signal.shape)
    return Bunch(
        Y=signal + white,
        signal=signal,
        labels=labels,
        row_precision=sp.eye_array(n_samples, format="csr"),
        col_precision=sp.eye_array(3, format="csr") / (noise**2 if noise else 1.0),
    )
