"""Several matrices, and arrays with more axes: low-rank signals in Kronecker noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch, check_random_state

from mnpca._typing import RandomState
from mnpca.datasets._noise import (
    color_rows,
    planted_precision,
    row_and_column_precisions,
    sample_matrix_normal,
)


def make_several_matrices(
    n_matrices: int = 30,
    n_samples: int = 20,
    n_features: int = 15,
    n_components: int = 2,
    *,
    row_precision: Any = None,
    col_precision: Any = None,
    signal_scale: float = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    """Generate ``Y_i = X_i W' + E_i``: own scores, common loadings and noise networks.

    Parameters
    ----------
    n_matrices, n_samples, n_features : int
        Shape of the array.
    n_components : int, default=2
        Columns of W. Scores and loadings are standard normal, scaled so that the signal's mean
        square is 0.2 `n_components`.
    row_precision, col_precision : array or sparse matrix, default=None
        Noise precisions; by default `planted_precision`.
    signal_scale, random_state
        As in `make_low_rank_matrix_normal`.

    Returns
    -------
    Bunch
        Y and signal (n_matrices x n_samples x n_features), row_precision, col_precision.

    Examples
    --------
    >>> from mnpca.datasets import make_several_matrices
    >>> make_several_matrices(random_state=0).Y.shape
    (30, 20, 15)
    """
    rng = check_random_state(random_state)
    A, B = row_and_column_precisions(
        (row_precision, col_precision),
        (n_samples, n_features),
        lambda size: planted_precision(size, random_state=rng),
    )
    loadings = rng.standard_normal((n_features, n_components))
    scores = rng.standard_normal((n_matrices, n_samples, n_components))
    signal = signal_scale * np.sqrt(0.2) * scores @ loadings.T
    noise = np.stack([sample_matrix_normal(A, B, rng) for _ in range(n_matrices)])
    return Bunch(Y=signal + noise, signal=signal, row_precision=A, col_precision=B)


def make_tensor_normal(
    shape: Sequence[int] = (40, 30, 20),
    n_components: int | Sequence[int] = 2,
    *,
    precisions: Sequence[Any] | None = None,
    signal_scale: float = 1.0,
    random_state: RandomState = None,
) -> Bunch:
    """Generate an array with a Tucker signal and a noise network on every axis.

    Parameters
    ----------
    shape : sequence of int, default=(40, 30, 20)
        Shape of the array.
    n_components : int or sequence of int, default=2
        Components of every axis, or of each; with 0 there is no signal. Loadings are random and
        orthonormal and the core is standard normal; all is scaled so that the signal's mean square
        is 0.2.
    precisions : list of arrays or sparse matrices, default=None
        Noise precisions of the axes; by default `planted_precision`.
    signal_scale, random_state
        As in `make_low_rank_matrix_normal`.

    Returns
    -------
    Bunch
        Y, signal and precisions (one for every axis).

    Examples
    --------
    >>> from mnpca.datasets import make_tensor_normal
    >>> make_tensor_normal((6, 5, 4), random_state=0).Y.shape
    (6, 5, 4)
    """
    rng = check_random_state(random_state)
    asked: Any = n_components
    ranks = [asked] * len(shape) if np.ndim(asked) == 0 else list(asked)
    if len(ranks) != len(shape) or any(r > size for r, size in zip(ranks, shape, strict=True)):
        raise ValueError(
            f"n_components={n_components!r} must be a number for each axis of {shape}, at most its "
            "size."
        )
    if precisions is None:
        precisions = [planted_precision(size, random_state=rng) for size in shape]
    sizes = [precision.shape for precision in precisions]
    if sizes != [(size, size) for size in shape]:
        raise ValueError(
            f"precisions must be a square matrix for each axis of {shape}, got {sizes}."
        )
    noise, signal = rng.standard_normal(shape), rng.standard_normal(ranks)
    for axis, size in enumerate(shape):
        loadings = np.linalg.qr(rng.standard_normal((size, ranks[axis])))[0]
        signal = np.moveaxis(np.tensordot(loadings, signal, axes=(1, axis)), 0, axis)
        noise = np.moveaxis(noise, axis, 0)
        colored = color_rows(precisions[axis], noise.reshape(size, -1))
        noise = np.moveaxis(colored.reshape(noise.shape), 0, axis)
    if signal.any():
        signal *= signal_scale * np.sqrt(0.2 / np.mean(signal**2))
    precisions = [sp.csr_array(precision) for precision in precisions]
    return Bunch(Y=signal + noise, signal=signal, precisions=precisions)
