"""The first completion and the first fit: a low-rank signal under row and column variances."""

import numpy as np
import scipy.sparse as sp

from mnpca._typing import BoolArray, FloatArray
from mnpca.noise.estimate import geometric_mean
from mnpca.solvers.missing.incomplete import Incomplete
from mnpca.solvers.mnpca.fit import MNPCAFit, fit_mnpca
from mnpca.solvers.mnpca.low_rank_step import Center, signal_under_variances

#: Completions and low-rank steps in turn.
ROUNDS = 5
#: Smallest variance of a row or column, as a share of the mean square.
SMALLEST_VARIANCE = 1e-8


def column_fill(problem: Incomplete) -> FloatArray:
    """Return the matrix less covariate effects by least squares, column means for missing cells."""
    observed = ~problem.missing
    mean = problem.matrix.sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    signal = np.broadcast_to(mean, problem.matrix.shape)
    n, p = problem.matrix.shape
    expectation = problem.under(_diagonal(np.ones(n)), _diagonal(np.ones(p)))
    return expectation.for_signal(expectation.complete(signal))


def first_guess(problem: Incomplete, rank: int, center: Center, seed: int) -> FloatArray:
    """Return a complete matrix without covariate effects to begin with.

    Row and column variances of the observed residual, the expected matrix under them, and its
    variational low-rank step alternate from the column means.
    """
    data = column_fill(problem)
    if not problem.missing.any():
        return data
    signal, loadings = np.broadcast_to(data.mean(axis=0), data.shape), None
    for _ in range(ROUNDS):
        row, col = observed_scales(data - signal, problem.missing)
        expectation = problem.under(*(_diagonal(1.0 / each) for each in (row, col)))
        data = expectation.for_signal(expectation.complete(signal))
        # Whether a mean pays is decided later, under better noise; it does no harm here.
        signal, loadings = signal_under_variances(
            data, row, col, rank, center=center is not False, start=loadings, seed=seed
        )
    return expectation.for_signal(expectation.complete(signal))


def first_fit(
    problem: Incomplete, rank: int, center: Center, seed: int
) -> tuple[FloatArray, MNPCAFit]:
    """Return the first completion, and its fit under variances that have hardly begun to settle.

    Where the residual is not noise with few links, as in most real data, expectation and
    maximization from here predict better than from the end of a search.
    Parameters are those of `first_guess`.
    """
    guess = first_guess(problem, rank, center, seed)
    fit = fit_mnpca(guess, rank, noise="diagonal", center=center, max_iter=1, random_state=seed)
    return guess, fit


def observed_scales(
    residual: FloatArray, missing: BoolArray, sweeps: int = 20
) -> tuple[FloatArray, FloatArray]:
    """Return variances r_i c_j from the observed cells, r with geometric mean one.

    ``r_i`` is the mean of ``e_ij^2 / c_j`` over the observed cells of row i, and the same along
    columns, in turn.
    """
    squares = np.where(missing, 0.0, residual**2)
    unit = max(float(squares.mean()), np.finfo(float).tiny)
    squares /= unit  # so that the floor is a share of the mean, whatever the units
    in_row, in_col = (~missing).sum(axis=1), (~missing).sum(axis=0)
    row, col = np.ones(len(residual)), np.ones(residual.shape[1])
    for _ in range(sweeps):
        row = np.maximum(squares @ (1.0 / col) / in_row, SMALLEST_VARIANCE)
        row = row / geometric_mean(row)
        col = np.maximum((1.0 / row) @ squares / in_col, SMALLEST_VARIANCE)
    return row, unit * col


def _diagonal(weights: FloatArray) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(weights))
