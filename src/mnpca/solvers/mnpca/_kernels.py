"""Compiled loops over the rows of tall thin arrays (numba only).

Each works on the rows from `start` to `stop`, so that threads can share them out.
"""

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
NO_SHARE = 1e-12


@njit(cache=True, nogil=True, fastmath=_FAST)
def second_moment(targets, noise_variances, values, vectors, start, stop):
    """Sum over rows of E[x x'], x a row's posterior in the eigenbasis of the prior."""
    k = targets.shape[1]
    second = np.zeros((k, k))
    row = np.empty(k)
    for i in range(start, stop):
        a = noise_variances[i]
        for j in range(k):
            dot = 0.0
            for m in range(k):
                dot += targets[i, m] * vectors[m, j]
            share = values[j] / (values[j] + a)
            row[j] = dot * share
            second[j, j] += share * a
        for j in range(k):
            for m in range(j + 1):
                second[j, m] += row[j] * row[m]
    for j in range(k):
        for m in range(j):
            second[m, j] = second[j, m]
    return second


@njit(cache=True, nogil=True, fastmath=_FAST)
def posterior_rows(
    targets, noise_variances, values, vectors, start, stop, means, total_variance, shares
):
    """Fill in posterior means and summed variances; add up the shares.

    Returns twice the Kullback-Leibler divergence from the prior, plus the sum of the shares.
    """
    k = targets.shape[1]
    divergence = 0.0
    for i in range(start, stop):
        a = noise_variances[i]
        odds = 1.0
        variance = 0.0
        for j in range(k):
            dot = 0.0
            for m in range(k):
                dot += targets[i, m] * vectors[m, j]
            share = values[j] / (values[j] + a)
            mean = dot * share
            means[i, j] = mean
            variance += share * a
            shares[j] += share
            odds *= (values[j] + a) / a
            divergence += mean * mean / values[j]
        total_variance[i] = variance
        divergence += np.log(odds)
    return divergence


@njit(cache=True, nogil=True, fastmath=_FAST)
def part_densities(z, d, log_weights, centers, values, vectors, logs):
    """Fill in the log density of every row under every part of a mixture."""
    n, k = z.shape
    for g in range(len(log_weights)):
        for i in range(n):
            total = 0.0
            for j in range(k):
                offset = 0.0
                for m in range(k):
                    offset += (z[i, m] - centers[g, m]) * vectors[g, m, j]
                variance = values[g, j] + 1.0 / d[i]
                total += np.log(variance) + offset * offset / variance
            logs[i, g] = log_weights[g] - 0.5 * total


@njit(cache=True, nogil=True, fastmath=_FAST)
def part_moments(z, d, shares, centers, values, vectors, counts, shifts, second):
    """Fill in counts, new centers and second moments, part by part of a mixture.

    The new center is the mean of the rows, weighted with their precisions. It is relative to the
    old one; second moments of the rows' posterior are about the new one, all in the part's
    eigenbasis. Rows with next to no share are passed over.
    """
    n, k = z.shape
    offsets = np.empty((n, k))
    weights = np.empty(k)
    row = np.empty(k)
    for g in range(len(counts)):
        weights[:] = 0.0
        for i in range(n):
            share = shares[i, g]
            counts[g] += share
            if share < NO_SHARE:
                continue
            for j in range(k):
                offset = 0.0
                for m in range(k):
                    offset += (z[i, m] - centers[g, m]) * vectors[g, m, j]
                offsets[i, j] = offset
                weight = share / (values[g, j] + 1.0 / d[i])
                weights[j] += weight
                shifts[g, j] += weight * offset
        for j in range(k):
            shifts[g, j] /= max(weights[j], 1e-300)
        for i in range(n):
            share = shares[i, g]
            if share < NO_SHARE:
                continue
            for j in range(k):
                gain = values[g, j] / (values[g, j] + 1.0 / d[i])
                row[j] = gain * (offsets[i, j] - shifts[g, j])
                second[g, j, j] += share * gain / d[i]
            for j in range(k):
                for m in range(k):
                    second[g, j, m] += share * row[j] * row[m]
