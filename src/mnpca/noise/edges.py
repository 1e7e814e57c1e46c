"""How sure an edge is: de-biased partial correlations, p-values, false discovery rates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.gram import FactorGram
from mnpca.engines.rows import Pairs
from mnpca.noise.graph import graph_can_show, limit_degree
from mnpca.noise.significance import (
    LARGEST,
    correlation_at,
    deviate,
    null_spread,
    p_values,
    q_values,
    statistic,
)
from mnpca.noise.support import Support, SupportFit

#: Pairs that are listed, at least and per item: all pairs of a small network, and of a large one
#: those with the smallest p-values.
LISTED = 20_000
LISTED_PER_ITEM = 10
#: Edges of the first round with a q-value up to this are in the precision of the second.
REFIT_RATE = 0.2
#: With fewer observations nothing is tested.
FEWEST_OBSERVATIONS = 4.0
#: Least share of an item's variance that counts as noise, see `EdgeTests.noise_share`.
SMALLEST_SHARE = 1e-3


@dataclass(frozen=True)
class EdgeTests:
    """Tests of the pairs of one axis for an edge.

    Attributes
    ----------
    n_items : int
        q, the number of items.
    n_observations : float
        m, how many independent observations of the items the noise is worth.
    first, second : integer arrays
        Positions of the listed pairs, first < second.
    partial_correlation : array
        De-biased estimates of the listed pairs.
    noise_share : array of shape (q,)
        Share of the variance of each item, given the others, that was observed. The rest lies in
        the directions of the signal, where the noise cannot be seen; only its size is known.
    level : float
        Every pair with a p-value below this is listed.
    """

    n_items: int
    n_observations: float
    first: IntArray
    second: IntArray
    partial_correlation: FloatArray
    noise_share: FloatArray
    level: float

    @classmethod
    def none(cls, n_items: int, n_observations: float = 1.0) -> "EdgeTests":
        """Return no test at all, of any pair."""
        nobody = np.zeros(0, np.int64)
        return cls(n_items, n_observations, nobody, nobody, np.zeros(0), np.ones(n_items), 0.0)

    @property
    def n_pairs(self) -> int:
        """Return the number of pairs of items, listed or not."""
        return self.n_items * (self.n_items - 1) // 2

    @cached_property
    def pair_share(self) -> FloatArray:
        """Return ``sqrt(h_i h_j)`` of the listed pairs, h the noise share."""
        return np.asarray(np.sqrt(self.noise_share[self.first] * self.noise_share[self.second]))

    @cached_property
    def standard_error(self) -> FloatArray:
        """Return ``(1 - r^2) sqrt(h_i h_j / m)``."""
        error = (1.0 - self.partial_correlation**2) * self.pair_share
        return np.asarray(error / np.sqrt(self.n_observations))

    @cached_property
    def z(self) -> FloatArray:
        """Return the test statistics, standard normal where there is no edge."""
        return statistic(self.partial_correlation / self.pair_share, self.n_observations)

    @cached_property
    def p(self) -> FloatArray:
        """Return two-sided p-values."""
        return p_values(self.z)

    @cached_property
    def q(self) -> FloatArray:
        """Return q-values: the false discovery rate of a network that ends with this pair."""
        return q_values(self.p, self.n_pairs)


@dataclass(frozen=True)
class EdgeDifferences:
    """Tests of the pairs of two networks of the same items for different partial correlations.

    Attributes
    ----------
    n_items : int
        q, the number of items.
    first, second : integer arrays
        Positions of the listed pairs, first < second.
    partial_correlations : pair of arrays
        De-biased estimates in the two networks.
    difference, standard_error : arrays
        Of the second less the first.
    z : array
        Standard normal where the partial correlations are the same.
    """

    n_items: int
    first: IntArray
    second: IntArray
    partial_correlations: tuple[FloatArray, FloatArray]
    difference: FloatArray
    standard_error: FloatArray
    z: FloatArray

    @cached_property
    def p(self) -> FloatArray:
        """Return two-sided p-values."""
        return p_values(self.z)

    @cached_property
    def q(self) -> FloatArray:
        """Return q-values among all pairs of items."""
        return q_values(self.p, self.n_items * (self.n_items - 1) // 2)


def can_test(size: int, n_observations: float) -> bool:
    """Tell whether tests of all pairs can say anything, before looking at the pairs.

    A table with very many rows and few columns cannot show an edge among its rows. All pairs of
    some items are listed with their p-values even so; those of many are not searched in vain.
    """
    if n_observations < FEWEST_OBSERVATIONS or size < 2:
        return False
    return size * (size - 1) // 2 <= LISTED or graph_can_show(size, n_observations)


def score_edges(
    residual: FloatArray, hidden: FloatArray, precision: sp.csr_array, n_observations: float
) -> EdgeTests:
    """Test all pairs of items for an edge.

    Parameters
    ----------
    residual : array of shape (q, l)
        Noise of the items: columns are independent and have the covariance ``inv P``, but for
        the directions that the signal has taken.
    hidden : array of shape (q, k)
        These directions: ``residual residual' / m + hidden hidden'`` estimates ``inv P``.
    precision : sparse array of shape (q, q)
        An estimate of P, of which only the edges are used.
    n_observations : float
        m, the number of independent columns: l less the directions taken on the other side.

    Notes
    -----
    With the correlation matrix S of the items and a precision P refitted on the known edges, the
    one-step estimate ``2 P - P S P`` errs by the square of P's error. In the innovations
    ``e = diag(P)^-1 P x`` with T = N S N', N = diag(P)^-1 P and v = diag(T), its partial
    correlations are ``(T_ij - N_ij v_j - N_ji v_i) / sqrt(v_i v_j)``; where P has no edge, the
    correlation of two innovations. Their variance is h_i h_j / m without an edge, h the share of
    v that the residual has (`EdgeTests.noise_share`).

    m is an upper bound: the network of the other side was estimated, so the columns are not quite
    independent, and weak edges are missing in P. Both widen the statistic of all pairs alike.
    Most pairs have no edge, so the median of z^2 tells by how much, and m is divided by that.

    Two rounds: the edges found in the first with a false discovery rate of a fifth are in P in the
    second.
    """
    size = len(residual)
    if not can_test(size, n_observations):
        return EdgeTests.none(size)
    factors = np.column_stack([residual / np.sqrt(n_observations), hidden])
    norms = np.linalg.norm(factors, axis=1)
    factors /= np.where(norms > 0.0, norms, 1.0)[:, None].astype(factors.dtype)
    correlation = FactorGram(factors, factors)
    upper = sp.coo_array(sp.triu(precision, k=1))
    i, j = upper.coords
    known = Pairs(i, j, np.full(upper.nnz, np.inf))
    tests = _test(correlation, known, hidden.shape[1], n_observations)
    found = tests.q <= REFIT_RATE
    keys = tests.first[found] * size + tests.second[found]
    new = ~np.isin(keys, known.i.astype(np.int64) * size + known.j)
    if not new.any():
        return tests
    i, j = np.divmod(keys[new], size)
    known = Pairs(
        np.concatenate([known.i, i]),
        np.concatenate([known.j, j]),
        np.concatenate([known.value, np.abs(tests.z[found][new])]),
    )
    return _test(correlation, known, hidden.shape[1], n_observations)


def compare_tests(one: EdgeTests, other: EdgeTests) -> EdgeDifferences:
    """Compare the partial correlations of two networks of the same items.

    Fisher's transform ``atanh r`` has the variance ``h_i h_j / m`` whatever r is. A pair that only
    one network lists takes in the other the value, among those that would not be listed, that is
    nearest to it: its p-value is too large rather than too small.
    """
    size = one.n_items
    keys = [tests.first * size + tests.second for tests in (one, other)]
    pairs = np.union1d(*keys)
    first, second = np.divmod(pairs, size)
    values, shares = [], []
    for tests, own in zip((one, other), keys, strict=True):
        share = np.sqrt(tests.noise_share[first] * tests.noise_share[second])
        value = np.full(len(pairs), np.nan)
        value[np.searchsorted(pairs, own)] = tests.partial_correlation
        values.append(value)
        shares.append(share / np.sqrt(tests.n_observations))
    for at, tests in enumerate((one, other)):
        unknown = np.isnan(values[at])
        limit = _largest_unlisted(tests.level, tests.n_observations)
        limit = limit * shares[at][unknown] * np.sqrt(tests.n_observations)
        values[at][unknown] = np.clip(values[1 - at][unknown], -limit, limit)
    transformed = [np.arctanh(np.clip(value, -LARGEST, LARGEST)) for value in values]
    spread = np.sqrt(shares[0] ** 2 + shares[1] ** 2)
    errors = [(1.0 - v**2) * share for v, share in zip(values, shares, strict=True)]
    return EdgeDifferences(
        n_items=size,
        first=first,
        second=second,
        partial_correlations=(values[0], values[1]),
        difference=values[1] - values[0],
        standard_error=np.sqrt(errors[0] ** 2 + errors[1] ** 2),
        z=(transformed[1] - transformed[0]) / np.maximum(spread, np.finfo(float).tiny),
    )


def _test(correlation: FactorGram, known: Pairs, n_hidden: int, n_observations: float) -> EdgeTests:
    """Refit on the known edges, then test."""
    size = correlation.size
    known = limit_degree(known, size, max(2, int(n_observations) // 4))
    precision = sp.csr_array(sp.eye_array(size))
    if len(known.i):
        i, j = known.i.astype(np.int64), known.j.astype(np.int64)
        values = correlation.entries(i, j)
        fit = SupportFit(Support(size, i, j), values, correlation, max_sweeps=100, tol=1e-4)
        precision = fit.precision()
    scores, share = _score_gram(correlation.right, precision, n_hidden)
    n_observations /= null_spread(scores, n_observations, known.i * size + known.j) ** 2
    if n_observations < FEWEST_OBSERVATIONS:
        return EdgeTests.none(size)
    n_pairs = size * (size - 1) // 2
    level = min(1.0, max(LISTED, LISTED_PER_ITEM * size) / n_pairs)
    found = scores.large_entries(_largest_unlisted(level, n_observations))
    keys = np.union1d(found.i * size + found.j, known.i * size + known.j)
    first, second = np.divmod(keys.astype(np.int64), size)
    value = scores.entries(first, second) * np.sqrt(share[first] * share[second])
    return EdgeTests(
        n_items=size,
        n_observations=n_observations,
        first=first,
        second=second,
        partial_correlation=np.clip(value, -LARGEST, LARGEST),
        noise_share=share,
        level=level,
    )


def _score_gram(
    factors: FloatArray, precision: sp.csr_array, n_hidden: int
) -> tuple[FactorGram, FloatArray]:
    """Return de-biased partial correlations over ``sqrt(h_i h_j)``, and h."""
    filter_ = sp.csr_array(sp.diags_array(1.0 / precision.diagonal()) @ precision)
    innovations = filter_.astype(factors.dtype) @ factors
    squared = innovations**2
    variances = np.maximum(squared.sum(axis=1, dtype=np.float64), np.finfo(np.float32).tiny)
    taken = squared[:, squared.shape[1] - n_hidden :].sum(axis=1, dtype=np.float64)
    share = np.maximum(1.0 - taken / variances, SMALLEST_SHARE)
    scale = 1.0 / np.sqrt(variances * share)
    innovations *= scale[:, None].astype(factors.dtype)
    weighted = sp.csr_array(filter_ @ sp.diags_array(variances))
    weighted = weighted - sp.diags_array(weighted.diagonal())
    outer = sp.diags_array(scale)
    extra = sp.csr_array(-(outer @ (weighted + weighted.T) @ outer))
    return FactorGram(innovations, innovations, extra), share


def _largest_unlisted(level: float, n_observations: float) -> float:
    """Return the correlation whose p-value is `level`; below 0 where all pairs are listed."""
    return -1.0 if level >= 1.0 else correlation_at(deviate(level), n_observations)
