"""How sure an edge is: de-biased partial correlations, p-values, false discovery rates."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import gammainc, gammaincc

from mnpca._typing import BoolArray, FloatArray, IntArray
from mnpca.engines.gram import FactorGram, sparse_entries
from mnpca.engines.rows import Pairs
from mnpca.engines.threads import slices
from mnpca.noise.favored import SMALLEST_SHARE, Favors
from mnpca.noise.graph import LARGEST_COMPONENT, graph_can_show, largest_component, limit_degree
from mnpca.noise.significance import (
    LARGEST,
    correlation_at,
    deviate,
    p_values,
    q_values,
    statistic,
)
from mnpca.noise.support import Support, SupportFit

#: Pairs that are listed, at least and per item: all pairs of a small network, and of a large one
#: those with the smallest p-values.
LISTED = 20_000
LISTED_PER_ITEM = 10
#: Edges of the first round with a q-value up to this are in the precision of the second. With .1,
#: 600 rows of 100 columns list a hundredth fewer true edges.
REFIT_RATE = 0.2
#: With fewer observations nothing is tested. An edge whose neighbors leave it fewer than the least
#: counts as having these.
FEWEST_OBSERVATIONS = 4.0
LEAST_OBSERVATIONS = 2.0
#: Expected errors among the favored pairs, as a share of all. A half costs 2% of the edges listed
#: where a network has few, and gains nothing.
FAVORED_ERRORS = 1 / 3
#: The spread of the statistics is measured on all pairs of so many items.
SPREAD_ITEMS = 450
#: Squared deviates count up to the square of this: an edge that was not found weighs four at most.
#: The error of the spread is 6% above that of all squares without a limit, that of the median 65%.
FARTHEST = 2.0
#: Entries of the blocks that are inverted at once, and what is added to the diagonals of these,
#: which are 1: items may be copies of each other.
AT_ONCE = 2**20
ALIKE = 1e-6


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
    observations : array
        As `n_observations`, less the other neighbors that a listed edge was fitted beside.
    level : float
        Every pair with a p-value below this is listed.
    favored : boolean array
        Which of the listed pairs are favored by what else the data say of them (`Favors`), and ...
    n_favored : int
        ... how many of all pairs are.
    """

    n_items: int
    n_observations: float
    first: IntArray
    second: IntArray
    partial_correlation: FloatArray
    noise_share: FloatArray
    observations: FloatArray
    level: float
    favored: BoolArray
    n_favored: int

    @classmethod
    def none(cls, n_items: int, n_observations: float = 1.0) -> "EdgeTests":
        """Return no test at all, of any pair."""
        nobody, none = np.zeros(0, np.int64), np.zeros(0)
        shares = np.ones(n_items)
        return cls(n_items, n_observations, nobody, nobody, none, shares, none, 0.0, none > 0, 0)

    @property
    def n_pairs(self) -> int:
        """Return the number of pairs of items, listed or not."""
        return self.n_items * (self.n_items - 1) // 2

    @property
    def keys(self) -> IntArray:
        """Return the listed pairs as single numbers ``i * q + j``, which ascend."""
        return self.first * self.n_items + self.second

    @cached_property
    def pair_share(self) -> FloatArray:
        """Return ``sqrt(h_i h_j)`` of the listed pairs, h the noise share."""
        return np.asarray(np.sqrt(self.noise_share[self.first] * self.noise_share[self.second]))

    @cached_property
    def standard_error(self) -> FloatArray:
        """Return ``(1 - r^2) sqrt(h_i h_j / m)``."""
        error = (1.0 - self.partial_correlation**2) * self.pair_share
        return np.asarray(error / np.sqrt(self.observations))

    @cached_property
    def z(self) -> FloatArray:
        """Return the test statistics, standard normal where there is no edge."""
        return statistic(self.partial_correlation / self.pair_share, self.observations)

    @cached_property
    def p(self) -> FloatArray:
        """Return two-sided p-values."""
        return p_values(self.z)

    @cached_property
    def q(self) -> FloatArray:
        """Return q-values: the false discovery rate of a network that ends with this pair.

        Benjamini and Hochberg's, of weighted p-values (Genovese, Roeder and Wasserman 2006): with
        the weights w of the n pairs, 1 in the mean, ``n p / w`` counts the errors in all lists
        up to p. The expected errors among the favored pairs are a share of `FAVORED_ERRORS`. A q is
        never below p: where few are favored, these would be listed with hardly a test of their own.
        """
        n_others = self.n_pairs - self.n_favored
        if self.n_favored == 0 or n_others == 0:
            return q_values(self.p, self.n_pairs)
        errors = np.where(
            self.favored, self.n_favored / FAVORED_ERRORS, n_others / (1.0 - FAVORED_ERRORS)
        )
        return np.maximum(q_values(self.p * errors / self.n_pairs, self.n_pairs), self.p)


@dataclass(frozen=True)
class EdgeDifferences:
    """Tests of pairs of items for different partial correlations in two networks.

    Attributes
    ----------
    first, second : integer arrays
        Positions of the pairs that one of the networks lists, first < second.
    partial_correlations : pair of arrays
        De-biased estimates in the two networks.
    standard_error : array
        Of the second less the first.
    z, p, q : arrays
        Standard normal where the partial correlations are the same; two-sided p-values, and
        q-values among all pairs of items.
    """

    first: IntArray
    second: IntArray
    partial_correlations: tuple[FloatArray, FloatArray]
    standard_error: FloatArray
    z: FloatArray
    p: FloatArray
    q: FloatArray


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
    With P refitted on the known edges, the one-step estimate ``2 P - P S P`` from the correlation
    matrix S errs by the square of P's error. For a pair without an edge in P, its partial
    correlation is that of the innovations ``e = diag(P)^-1 P x``. The variance is h_i h_j / m where
    there is no edge in truth, h the share of an innovation's variance that the residual has
    (`EdgeTests.noise_share`).

    A false edge in P is an error of P, chosen for its size, and the one-step estimate makes it
    larger. So an edge of P has the sample's partial correlation given all other neighbors of its
    items. Each of these takes one of the m observations, as in a regression. A pair outside P
    loses none: its innovations are free of different neighbors.

    m is an upper bound: the network of the other side was estimated, so the columns are not quite
    independent, and weak edges are missing in P. Both widen the statistic of all pairs alike, and
    m is divided by the square of that (`score_spread`).

    Two rounds: the edges found in the first with a false discovery rate of a fifth are in P in the
    second, the surest half of them as often as they would link too many items.
    """
    size = len(residual)
    if not can_test(size, n_observations):
        return EdgeTests.none(size)
    factors = np.column_stack([residual / np.sqrt(n_observations), hidden])
    norms = np.linalg.norm(factors, axis=1)
    factors /= np.where(norms > 0.0, norms, 1.0)[:, None].astype(factors.dtype)
    correlation = FactorGram(factors, factors)
    i, j = (index.astype(np.int64) for index in sp.triu(precision, k=1).nonzero())
    known = Pairs(i, j, np.full(len(i), np.inf))
    tests = _test(correlation, known, hidden.shape[1], n_observations)
    found = np.flatnonzero((tests.q <= REFIT_RATE) & ~np.isin(tests.keys, i * size + j))
    found = found[np.argsort(-np.abs(tests.z[found]))]
    while len(found):
        values = (tests.first[found], tests.second[found], np.abs(tests.z[found]))
        more = Pairs(*(np.concatenate(each) for each in zip(known, values, strict=True)))
        if largest_component(more, size) <= LARGEST_COMPONENT:
            return _test(correlation, more, hidden.shape[1], n_observations)
        found = found[: len(found) // 2]
    return tests


def compare_tests(one: EdgeTests, other: EdgeTests) -> EdgeDifferences:
    """Compare the partial correlations of two networks of the same items.

    Fisher's transform ``atanh r`` has the variance ``h_i h_j / m`` whatever r is. A pair that only
    one network lists takes in the other the value, among those that would not be listed, that is
    nearest to it: its p-value is too large rather than too small.
    """
    pairs = np.union1d(one.keys, other.keys)
    first, second = np.divmod(pairs, one.n_items)
    values, errors, limits = [], [], []
    for tests in (one, other):
        listed = np.isin(pairs, tests.keys)
        value, observations = np.full((2, len(pairs)), [[np.nan], [tests.n_observations]])
        value[listed], observations[listed] = tests.partial_correlation, tests.observations
        share = np.sqrt(tests.noise_share[first] * tests.noise_share[second])
        values.append(value)
        errors.append(share / np.sqrt(observations))
        limits.append(share * _largest_unlisted(tests.level, tests.n_observations))
    a, b = (
        np.where(np.isnan(value), np.clip(nearest, -limit, limit), value)
        for value, nearest, limit in zip(values, values[::-1], limits, strict=True)
    )
    transformed = [np.arctanh(np.clip(value, -LARGEST, LARGEST)) for value in (a, b)]
    spread = np.maximum(np.hypot(*errors), np.finfo(float).tiny)
    z = (transformed[1] - transformed[0]) / spread
    p = p_values(z)
    error = np.hypot((1.0 - a**2) * errors[0], (1.0 - b**2) * errors[1])
    return EdgeDifferences(first, second, (a, b), error, z, p, q_values(p, one.n_pairs))


def _test(correlation: FactorGram, known: Pairs, n_hidden: int, n_observations: float) -> EdgeTests:
    """Refit on the known edges, then test."""
    size = correlation.size
    known = limit_degree(known, size, max(2, int(n_observations) // 4))
    i, j = known.i, known.j
    values = correlation.entries(i, j)
    fit = SupportFit(Support.of(size, i, j), values, correlation, max_sweeps=100, tol=1e-4)
    partial, n_beside = _partial_correlations(fit.support, correlation)
    scores, share = _score_gram(correlation.right, fit, n_hidden, partial)
    n_observations /= score_spread(scores, n_observations, i * size + j) ** 2
    if n_observations < FEWEST_OBSERVATIONS:
        return EdgeTests.none(size)
    level = min(1.0, max(LISTED, LISTED_PER_ITEM * size) / (size * (size - 1) // 2))
    found = scores.large_entries(_largest_unlisted(level, n_observations))
    favors = Favors(correlation, scores, fit, n_hidden, n_observations)
    favored, n_favored = favors.count()
    keys = np.unique(np.concatenate([found.i * size + found.j, i * size + j, favored]))
    first, second = np.divmod(keys, size)
    value = scores.entries(first, second) * np.sqrt(share[first] * share[second])
    beside = sparse_entries(_symmetric(fit.support, n_beside), first, second)
    return EdgeTests(
        n_items=size,
        n_observations=n_observations,
        first=first,
        second=second,
        partial_correlation=np.clip(value, -LARGEST, LARGEST),
        noise_share=share,
        observations=np.maximum(n_observations - beside, LEAST_OBSERVATIONS),
        level=level,
        favored=favors.of(first, second),
        n_favored=n_favored,
    )


def score_spread(scores: FactorGram, n_observations: float, known: IntArray) -> float:
    """Return the standard deviation s of the statistics of pairs without an edge, at least 1.

    Most pairs have none. Those that have one without being `known` are far out, if anything tells
    them: the mean of ``min(z^2 / s^2, c^2)`` is what it is for standard normal z (Huber's second
    proposal). The median of `significance.null_spread` stands more edges among the pairs, but it
    varies by more than the p-values of a network without an edge can bear.
    """
    size = scores.size
    items = np.arange(size)
    if size > SPREAD_ITEMS:
        items = np.sort(np.random.default_rng(0).choice(size, SPREAD_ITEMS, replace=False))
    bounds = np.array([0, len(items)])
    correlations = scores.component_blocks(items, bounds, bounds**2)
    first, second = np.repeat(items, len(items)), np.tile(items, len(items))
    empty = (first < second) & ~np.isin(first * size + second, known)
    squares = statistic(correlations[empty], n_observations) ** 2
    if not len(squares):
        return 1.0
    most = FARTHEST**2
    expected = gammainc(1.5, most / 2) + most * gammaincc(0.5, most / 2)
    spread = 1.0
    for _ in range(100):
        before = spread
        spread *= np.sqrt(np.mean(np.minimum(squares / spread**2, most)) / expected)
        if abs(spread - before) <= 1e-6:
            break
    return max(1.0, float(spread))


def _partial_correlations(support: Support, correlation: FactorGram) -> tuple[FloatArray, IntArray]:
    """Return the partial correlations of edges given their other neighbors, and how many these are.

    ``-(S_UU)^-1_ij`` over the root of the diagonal entries, with U the items and their neighbors.
    """
    s, size = support, support.size
    adjacency = (np.ones(len(s.neighbors)), s.neighbors, s.indptr)
    linked = sp.csr_array(adjacency, shape=(size, size))
    around = sp.csr_array(linked[s.i] + linked[s.j])
    count = np.diff(around.indptr)
    blocks = correlation.component_blocks(s.order, s.bounds, s.offsets)
    partial = np.zeros(s.n_edges)
    for n_around in np.unique(count):
        alike = np.flatnonzero(count == n_around)
        for part in slices(len(alike), max(1, AT_ONCE // n_around**2)):
            edges = alike[part]
            items = around.indices[around.indptr[edges, None] + np.arange(n_around)]
            c, place = s.component[s.i[edges]], s.place[items]
            row = s.offsets[c, None] + np.diff(s.bounds)[c, None] * place
            inverse = np.linalg.inv(
                blocks[row[:, :, None] + place[:, None, :]] + ALIKE * np.eye(n_around)
            )
            at = np.arange(len(edges))
            i, j = (np.argmax(items == end[edges, None], axis=1) for end in (s.i, s.j))
            partial[edges] = -inverse[at, i, j] / np.sqrt(inverse[at, i, i] * inverse[at, j, j])
    return partial, count - 2


def _symmetric(support: Support, values: FloatArray | IntArray) -> sp.csr_array:
    """Return a sparse matrix with a value for every edge."""
    size = support.size
    upper = sp.csr_array((values, (support.i, support.j)), shape=(size, size))
    return sp.csr_array(upper + upper.T)


def _score_gram(
    factors: FloatArray, fit: SupportFit, n_hidden: int, partial: FloatArray
) -> tuple[FactorGram, FloatArray]:
    """Return de-biased partial correlations over ``sqrt(h_i h_j)``, and h."""
    filter_ = sp.csr_array(sp.diags_array(1.0 / fit.diagonal) @ fit.precision())
    innovations = filter_.astype(factors.dtype) @ factors
    squared = innovations**2
    variances = np.maximum(squared.sum(axis=1, dtype=np.float64), np.finfo(np.float32).tiny)
    taken = squared[:, squared.shape[1] - n_hidden :].sum(axis=1, dtype=np.float64)
    share = np.maximum(1.0 - taken / variances, SMALLEST_SHARE)
    innovations *= (1.0 / np.sqrt(variances * share))[:, None].astype(factors.dtype)
    scores = FactorGram(innovations, innovations)
    i, j = fit.support.i, fit.support.j
    value = partial / np.sqrt(share[i] * share[j]) - scores.entries(i, j)
    scores.extra = _symmetric(fit.support, value)
    return scores, share


def _largest_unlisted(level: float, n_observations: float) -> float:
    """Return the correlation whose p-value is `level`; below 0 where all pairs are listed."""
    return -1.0 if level >= 1.0 else correlation_at(deviate(level), n_observations)
