"""Cell-wise outliers: entries that neither signal nor noise of their row and column explain."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from mnpca._typing import BoolArray, FloatArray
from mnpca.noise.estimate import geometric_mean
from mnpca.solvers.mnpca.low_rank_step import signal_under_variances

#: An entry further from the signal than this many robust standard deviations is an outlier.
CUT = 4.0
#: Detection and signal alternate at most this often.
ROUNDS = 6
#: Detection ends when a smaller share of the entries changes sides.
SETTLED = 1e-4
#: Median absolute deviation of a standard normal variable.
NORMAL_MAD = 0.6745
#: Smallest scale of a row or column, as a share of the mean size.
SMALLEST_SCALE = 1e-6


def robust_scales(residual: FloatArray, sweeps: int = 10) -> tuple[FloatArray, FloatArray]:
    """Return standard deviations r_i c_j from medians, r with geometric mean one.

    ``r_i = median_j |e_ij| / c_j / 0.6745`` and the same along columns, in turn: half of the
    entries of a row or column may be anything. Where more than half of them are zero, as in
    counts, the root mean square takes the median's place.
    """
    size = np.abs(residual)
    unit = max(float(size.mean()), np.finfo(float).tiny)
    size = size / unit  # so that the floor is a share of the mean, whatever the units
    col: FloatArray = np.ones(residual.shape[1])
    row: FloatArray = np.ones(residual.shape[0])
    for _ in range(sweeps):
        row = _typical_size(size / col, axis=1)
        row /= geometric_mean(row)
        col = _typical_size(size / row[:, None], axis=0)
    return row, unit * col


def _typical_size(size: FloatArray, axis: int) -> FloatArray:
    typical = np.median(size, axis=axis) / NORMAL_MAD
    if not np.all(typical > 0.0):
        typical = np.where(typical > 0.0, typical, np.sqrt(np.mean(size**2, axis=axis)))
    return np.asarray(np.maximum(typical, SMALLEST_SCALE))


def find_outliers(Y: FloatArray, signal: FloatArray) -> BoolArray:
    """Mark the entries that lie more than `CUT` robust standard deviations from the signal."""
    residual = Y - signal
    row, col = robust_scales(residual)
    mask: BoolArray = np.abs(residual) > CUT * row[:, None] * col
    return mask


def conditional_outliers(
    residual: FloatArray, row_precision: sp.csr_array, col_precision: sp.csr_array
) -> BoolArray:
    """Mark the entries that lie far from what all others say under the fitted networks.

    Given all other entries of R ~ MN(inv A, inv B), entry ij deviates by
    ``(A R B)_ij / (a_ii b_jj)``, with variance ``1 / (a_ii b_jj)``. An entry within its own noise
    can still be far from what its neighbors say. The deviations are measured by their own robust
    scales, which hold where the networks do not.
    """
    filtered = np.asarray((col_precision @ (row_precision @ residual).T).T)
    scale = np.outer(row_precision.diagonal(), col_precision.diagonal())
    return find_outliers(filtered / np.sqrt(scale), np.zeros_like(residual))


def clean_cells(
    Y: FloatArray, choose_rank: Callable[[FloatArray], int], *, seed: int = 0
) -> tuple[FloatArray, BoolArray]:
    """Return the matrix with the estimated signal in the place of gross outliers, and these.

    Detection and a variational low-rank fit of the cleaned matrix under robust row and column
    scales alternate until the set of outliers settles. `choose_rank` takes the matrix after the
    first cleaning and returns the number of components of the signal that detection uses. Where
    more than half of the entries are equal, as in sparse counts, the others are no gross errors,
    and a ValueError says so.
    """
    middle = np.median(Y, axis=0)
    varying = np.ptp(Y, axis=0) > 0.0
    if varying.any() and np.mean((middle == Y)[:, varying]) > 0.5:
        raise ValueError(
            "robust=True calls an entry an outlier by comparison with the others, and more than "
            "half of the entries of X are the same in their columns. Use robust=False, or leave "
            "out columns that hardly vary."
        )
    signal = np.broadcast_to(middle, Y.shape)
    outliers = find_outliers(Y, signal)
    rank = choose_rank(np.where(outliers, signal, Y))
    for _ in range(ROUNDS):
        cleaned = np.where(outliers, signal, Y)
        row, col = robust_scales(Y - signal)
        signal, _ = signal_under_variances(cleaned, row**2, col**2, rank, seed=seed)
        previous, outliers = outliers, find_outliers(Y, signal)
        if np.mean(outliers != previous) < SETTLED:
            break
    return np.where(outliers, signal, Y), outliers
