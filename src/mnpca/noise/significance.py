"""From correlations to test statistics, p-values and false discovery rates."""

import numpy as np
from scipy.special import erfc, ndtri

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.gram import Gram

#: Correlations are kept below this: beyond 1 they mean nothing.
LARGEST = 0.9999
#: Pairs that the spread of a statistic is measured on, at most.
SPREAD_PAIRS = 50_000
#: Median of the square of a standard normal variable.
MEDIAN_SQUARE = 0.454936


def statistic(correlation: FloatArray, n_observations: float | FloatArray) -> FloatArray:
    """Return standard normal deviates of correlations under the hypothesis of none.

    The signed root of the likelihood ratio ``-nu log(1 - r^2)``, nu = m - 1, with Wallace's factor
    (8 nu + 1) / (8 nu + 3), agrees with the exact distribution (Student's t) far into the tails,
    where ``sqrt(m) r`` does not.
    """
    freedom = n_observations - 1.0
    squared = np.minimum(np.abs(correlation), LARGEST) ** 2
    root = np.sqrt(-freedom * np.log1p(-squared))
    return np.asarray(np.sign(correlation) * root * (8 * freedom + 1) / (8 * freedom + 3))


def correlation_at(z: float, n_observations: float) -> float:
    """Return the correlation whose `statistic` is z."""
    freedom = n_observations - 1.0
    root = z * (8 * freedom + 3) / (8 * freedom + 1)
    return float(np.sqrt(-np.expm1(-(root**2) / freedom)))


def p_values(z: FloatArray) -> FloatArray:
    """Return two-sided p-values of standard normal deviates."""
    return np.asarray(erfc(np.abs(z) / np.sqrt(2.0)))


def deviate(p: float) -> float:
    """Return the positive standard normal deviate whose two-sided p-value is p."""
    return -float(ndtri(p / 2.0))


def q_values(p: FloatArray, n_tests: int) -> FloatArray:
    """Return Benjamini and Hochberg's q-values.

    `p` has the smallest of `n_tests` p-values; those left out are not below any of them. The
    pairs with q <= a are those of the threshold of Xia and Li (2017) at the level a.
    """
    order = np.argsort(p)
    rates = p[order] * n_tests / np.arange(1, len(p) + 1)
    q = np.empty(len(p))
    q[order] = np.minimum(np.minimum.accumulate(rates[::-1])[::-1], 1.0)
    return q


def discovery_limit(z: FloatArray, n_known: int, n_tests: int, rate: float) -> float:
    """Return the deviate beyond which discoveries have the given false discovery rate.

    With t the limit and N(t) the number of deviates beyond it, `n_known` earlier discoveries
    included, t is the smallest with ``n_tests P(|Z| > t) <= rate N(t)``.
    """
    counts = n_known + np.arange(1, len(z) + 1)
    kept = np.flatnonzero(n_tests * p_values(-np.sort(-z)) <= rate * counts)
    count = max(counts[kept[-1]] if len(kept) else n_known, 1)
    return deviate(min(rate * count / n_tests, 1.0))


def spread_of(z: FloatArray) -> float:
    """Return the standard deviation of statistics most of which are null, at least 1.

    The median of the squares tells: it does not depend on the few that are not.
    """
    return max(1.0, float(np.sqrt(np.median(z**2) / MEDIAN_SQUARE)))


def null_spread(
    correlations: Gram, n_observations: float, known: IntArray, n_rows: int | None = None
) -> float:
    """Return the spread of the statistic of pairs without an edge; most pairs have none.

    It is larger than 1 where the observations are not independent, or where something else than
    edges correlates everything. Pairs of `correlations` (with a diagonal of ones) that are in
    `known`, as ``i * q + j``, have an edge; the first item of the others is among `n_rows`.
    """
    size = correlations.size
    n_rows = size if n_rows is None else n_rows
    if n_rows * size <= SPREAD_PAIRS:
        i, j = np.triu_indices(n_rows, 1, size)
    else:
        rng = np.random.default_rng(0)
        i, j = rng.integers(0, n_rows, SPREAD_PAIRS), rng.integers(0, size, SPREAD_PAIRS)
        i, j = np.minimum(i, j)[i != j], np.maximum(i, j)[i != j]
    empty = ~np.isin(i * size + j, known)
    if not empty.any():
        return 1.0
    return spread_of(statistic(correlations.entries(i[empty], j[empty]), n_observations))
