"""What missing cells cost anybody: the information bound on the signal.

Rank-k matrices near M are ``M + J t`` with J the derivative of ``X W'`` by X and W. If A and B are
known, what the observed cells o tell about t has the Fisher information

    F = J_o' (P_oo - P_om P_mm^-1 P_mo) J_o,   P = A kron B,

and no unbiased estimate of the signal has a smaller sum of squared errors over all cells than
``tr(J F^+ J')``; over a neighborhood of M the largest risk of a biased one is no smaller either
(the local minimax theorem), asymptotically. Shrinkage towards zero can gain at M itself, as the
variational posterior does: with normal priors of X and W the error is ``tr(J (F + Q)^-1 J')``, Q
the precision of the priors. How much larger these are with holes than without, in dB, is printed.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu


def tangent(signal, rank):
    """Return J (cells row by row) for balanced factors, and the precisions of their entries."""
    n, p = signal.shape
    left, values, right = np.linalg.svd(signal, full_matrices=False)
    values = values[:rank]
    scores, loadings = left[:, :rank] * np.sqrt(values), right[:rank].T * np.sqrt(values)
    by_scores = [sp.kron(sp.eye_array(n), loading[:, None]) for loading in loadings.T]
    by_loadings = [sp.kron(score[:, None], sp.eye_array(p)) for score in scores.T]
    prior = np.concatenate([np.repeat(n / values, n), np.repeat(p / values, p)])
    return sp.csr_array(sp.hstack([*by_scores, *by_loadings])), prior


def information(derivative, precision, missing):
    """Return F, dense."""
    observed, holes = np.flatnonzero(~missing.ravel()), np.flatnonzero(missing.ravel())
    seen, rows = derivative[observed], precision[observed]
    fisher = (seen.T @ (rows[:, observed] @ seen)).toarray()
    if len(holes):
        across = (rows[:, holes].T @ seen).toarray()
        among = splu(sp.csc_array(precision[holes][:, holes]), permc_spec="MMD_AT_PLUS_A")
        fisher -= across.T @ among.solve(across)
    return fisher


def losses(data, missing, rank=2):
    """Return the loss in dB of the best unbiased estimate, and of one that shrinks."""
    derivative, prior = tangent(data.signal, rank)
    precision = sp.csr_array(sp.kron(data.row_precision, data.col_precision))
    metric = (derivative.T @ derivative).toarray()
    unbiased, shrunken = [], []
    for holes in (np.zeros_like(missing), missing):
        fisher = information(derivative, precision, holes)
        unbiased.append(np.trace(np.linalg.pinv(fisher, hermitian=True) @ metric))
        shrunken.append(np.trace(np.linalg.solve(fisher + np.diag(prior), metric)))
    return [10 * np.log10(pair[1] / pair[0]) for pair in (unbiased, shrunken)]
