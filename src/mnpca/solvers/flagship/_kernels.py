"""Compiled loop of the variational step (numba only)."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def shrink_rows(targets, noise_variances, prior, steps):
    """Ridge regression of every rotated row, with EM for the prior covariance.

    Row i of `targets` is a least squares estimate with covariance a_i I, a_i its noise
    variance; its prior is N(0, prior). In the eigenbasis of the prior (eigenvalues g_j) the
    posterior mean shrinks coordinate j by g_j / (g_j + a_i), with variance
    g_j a_i / (g_j + a_i). `steps` EM steps re-estimate the prior; the last pass reports.

    Returns means (in the eigenbasis), g, eigenvectors, sum_i g_j / (g_j + a_i), twice the
    Kullback-Leibler divergence from the prior, and the summed variance of every row.
    """
    n, k = targets.shape
    means = np.empty((n, k))
    total_variance = np.empty(n)
    shares = np.zeros(k)
    divergence = 0.0
    row = np.empty(k)
    values, vectors = np.linalg.eigh(prior)
    for step in range(steps + 1):
        if step > 0:
            values, vectors = np.linalg.eigh(prior)
        values = np.maximum(values, 1e-9)
        second = np.zeros((k, k))
        for i in range(n):
            a = noise_variances[i]
            odds = 1.0
            variance = 0.0
            for j in range(k):
                dot = 0.0
                for m in range(k):
                    dot += targets[i, m] * vectors[m, j]
                share = values[j] / (values[j] + a)
                row[j] = dot * share
                second[j, j] += share * a
                variance += share * a
                if step == steps:
                    shares[j] += share
                    odds *= (values[j] + a) / a
            if step < steps:
                for j in range(k):
                    for m in range(j + 1):
                        second[j, m] += row[j] * row[m]
            else:
                total_variance[i] = variance
                divergence += np.log(odds)
                for j in range(k):
                    means[i, j] = row[j]
                    divergence += row[j] * row[j] / values[j]
        if step < steps:
            for j in range(k):
                for m in range(j):
                    second[m, j] = second[j, m]
            basis = np.ascontiguousarray(vectors)
            prior = basis @ (second / n) @ np.ascontiguousarray(basis.T)
    return means, values, vectors, shares, divergence - shares.sum(), total_variance
