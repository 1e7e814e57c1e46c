"""Where an edge is decided: score tests add edges, maximum likelihood refits, weak ones go."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from mnpca._components import label_components
from mnpca._typing import FloatArray, IntArray
from mnpca.engines.gram import Gram, as_array
from mnpca.engines.rows import Pairs
from mnpca.noise.significance import (
    correlation_at,
    deviate,
    discovery_limit,
    null_spread,
    spread_of,
    statistic,
)
from mnpca.noise.support import Support, SupportFit

#: False discovery rate at which edges enter and stay.
RATE = 0.05
#: Pairs per item that would pass for candidates by chance. Candidates are remembered, and one that
#: falls just short may pass in a later noise step.
CHANCE_CANDIDATES = 10
#: Where even the first edge would need a correlation above this, none is looked for.
TOO_ALIKE = 0.85
#: Most partners of an item in the first round. Correlations link everything with everything
#: where a network is dense or long, and a refit of so many edges is slow; hardly any would stay.
FIRST_PARTNERS = 50
#: Most items of a connected component. The refit holds dense arrays of this size.
LARGEST_COMPONENT = 4000
#: Of fewer items than this most pairs correlate by way of others, even in a chain.
FEW_ITEMS = 25
#: Share of the weak edges that is dropped at once: a half loses .3 dB on grids and blocks against
#: one at a time, a fifth loses nothing. The last ones go together, as soon as they are fewer than
#: this share of all edges: where hundreds of items all correlate, every loss makes others weak.
WEAKEST, LAST = 0.2, 0.01
#: Accuracy of the refit that shows which edges are weak.
ROUGH = 1e-2
#: At most this many rounds of add, refit, prune, refit.
ROUNDS = 3


def _no_pairs() -> IntArray:
    return np.zeros(0, np.int64)


@dataclass
class Candidates:
    """Pairs that came near the entry level once; later steps look at these only.

    The screening pass over all pairs costs q^2 m operations; residuals change little from step
    to step, so one pass for the correlations and one for the scores serve many of them. Before
    `complete` is set, or after it was taken back, a step looks at all pairs and adds to these.
    """

    correlated: IntArray = field(default_factory=_no_pairs)
    """Pairs (as i * q + j) with a large correlation."""
    scored: IntArray = field(default_factory=_no_pairs)
    """Pairs with a large score, the correlated ones included."""
    complete: bool = False


def select_graph(
    correlation: Gram, n_observations: int, candidates: Candidates
) -> SupportFit | None:
    """Choose and fit the graph of one side; None where no pair passes.

    Off the diagonal, `correlation` is the noise correlation C of m = `n_observations` items on the
    other side; its diagonal counts as one. The candidates are filled on the first call.

    An edge is in the graph if it passes a test at a false discovery rate of 5%. With P = I at
    first: add the pairs whose score ``(P C P - P)_ij / sqrt(P_ii P_jj)``, a correlation, is
    significant; refit P on the support by maximum likelihood; drop the edges whose removal
    would lose too little likelihood (`SupportFit.edge_gains`); refit. Round one tests plain
    correlations; the later rounds see innovations, in which a chain no longer looks like a clique.

    Deviates are measured in units of their own spread over all pairs (`null_spread`). As long as
    the other side's network or a part of the signal is still in the residual, everything
    correlates with everything, and only what stands out of that can be an edge.
    """
    size = correlation.size
    if not graph_can_show(size, n_observations):
        return None
    n_pairs = size * (size - 1) // 2
    diagonal = np.maximum(correlation.diagonal(), 1e-6)
    screen = _Screen(correlation, diagonal, n_observations, candidates)
    most = max(2, n_observations // 4)
    fit: SupportFit | None = None
    for _ in range(ROUNDS):
        keys, z = screen.first() if fit is None else screen.scored(fit)
        known = _no_pairs() if fit is None else fit.support.keys
        passed = z > discovery_limit(z, len(known), n_pairs, RATE)
        if not passed.any():
            break
        # Known edges are not to be crowded out. An engine finds pairs in any order, and the refit
        # depends on it.
        keys = np.concatenate([known, keys[passed]])
        strength = np.concatenate([np.full(len(known), np.inf), z[passed]])
        order = np.argsort(keys)
        pairs = Pairs(*np.divmod(keys[order], size), strength[order])
        pairs = _limited(pairs, size, min(most, FIRST_PARTNERS) if fit is None else most)
        fit = _refit_and_prune(correlation, pairs, fit, n_observations / screen.spread**2)
        if fit.support.n_edges == 0 or np.array_equal(fit.support.keys, known):
            break
    candidates.complete = True
    return fit if fit is not None and fit.support.n_edges > 0 else None


def graph_can_show(size: int, n_observations: float) -> bool:
    """Tell whether a single edge could pass without nearly equal items."""
    if size < 2 or n_observations < 3:
        return False
    first = deviate(RATE / (size * (size - 1) / 2))
    return correlation_at(first, n_observations) < TOO_ALIKE


@dataclass
class _Screen:
    """Finds the pairs that may have an edge (as i * q + j), with their test statistics.

    `diagonal` is that of C: the ridge on C has shrunk correlations by it, and the tests are
    about what was observed.
    """

    correlation: Gram
    diagonal: FloatArray
    n_observations: int
    candidates: Candidates
    spread: float = 1.0
    """Of the statistics that were returned last, before they were divided by it."""

    def first(self) -> tuple[IntArray, FloatArray]:
        """Pairs with a large correlation, or those that had one once."""
        correlation, candidates = self.correlation, self.candidates
        size = correlation.size
        if size <= min(FEW_ITEMS, self.n_observations // 4):
            return self._every()
        self.spread = null_spread(correlation, self.n_observations, _no_pairs())
        if candidates.complete:
            i, j = np.divmod(candidates.correlated, size)
            return self._tested(i, j, correlation.entries(i, j))
        found = correlation.large_entries(self._level())
        keys = found.i * size + found.j
        candidates.correlated = np.union1d(candidates.correlated, keys)
        candidates.scored = np.union1d(candidates.scored, keys)
        return self._tested(*found)

    def _every(self) -> tuple[IntArray, FloatArray]:
        """All pairs of a few items, which pass as they are.

        Nearly every one of these correlates by way of others, and nothing tells which, but to fit
        them all and drop what is not needed. Their partial correlations have the spread that plain
        correlations have elsewhere.
        """
        size = self.correlation.size
        precision = np.linalg.inv(as_array(self.correlation) + np.diag(1.0 - self.diagonal))
        scale = 1.0 / np.sqrt(np.diag(precision))
        i, j = np.triu_indices(size, 1)
        z = statistic(precision[i, j] * scale[i] * scale[j], self.n_observations - size + 2)
        self.spread = spread_of(z)
        keys = i * size + j
        self.candidates.correlated = self.candidates.scored = keys
        return keys, np.full(len(keys), np.inf)

    def scored(self, fit: SupportFit) -> tuple[IntArray, FloatArray]:
        """Pairs outside the graph with a large score, or those that had one once.

        With N = diag(P)^-1/2 P the normalized scores are the off-diagonal entries of
        ``N C N' - N diag(P)^-1/2``: again a Gram matrix, of filtered residuals. Two items without
        an edge keep their correlation as score, so only pairs with a linked item are computed.
        """
        support, candidates = fit.support, self.candidates
        size = support.size
        degree = np.diff(support.indptr)
        linked, isolated = np.flatnonzero(degree > 0), np.flatnonzero(degree == 0)
        order = np.concatenate([linked, isolated])
        place = np.argsort(order)
        scores = _score_gram(self.correlation, fit, 1.0 - self.diagonal, linked, isolated)
        edges = _keys(place[support.i], place[support.j], size)
        self.spread = null_spread(scores, self.n_observations, edges, len(linked))
        if candidates.complete:
            first, second = np.divmod(candidates.scored, size)
            keys = _keys(place[first], place[second], size)
            i, j = np.divmod(keys[keys < len(linked) * size], size)
            values = scores.entries(i, j)
        else:
            i, j, values = scores.large_entries(self._level())
        keys = _keys(order[i], order[j], size)
        if not candidates.complete:
            candidates.scored = np.union1d(candidates.scored, keys)
        new = ~np.isin(keys, support.keys)
        return self._tested(*np.divmod(keys[new], size), values[new])

    def _level(self) -> float:
        """Return the correlation that makes a pair a candidate."""
        size = self.correlation.size
        chance = min(2 * CHANCE_CANDIDATES / (size - 1), 1.0)
        level = correlation_at(self.spread * deviate(chance), self.n_observations)
        return level * float(self.diagonal.mean())

    def _tested(
        self, i: IntArray, j: IntArray, correlation: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return absolute deviates of correlations, in units of their spread."""
        observed = np.abs(correlation) / np.sqrt(self.diagonal[i] * self.diagonal[j])
        z = statistic(observed, self.n_observations) / self.spread
        return i * self.correlation.size + j, z


def _keys(first: IntArray, second: IntArray, size: int) -> IntArray:
    """Return pairs as single numbers ``i * size + j``, i < j."""
    return np.minimum(first, second) * size + np.maximum(first, second)


def _score_gram(
    correlation: Gram, fit: SupportFit, lack: FloatArray, linked: IntArray, isolated: IntArray
) -> Gram:
    """Return the matrix of scores with the linked items first (rows for these only)."""
    order = np.concatenate([linked, isolated])
    scale = sp.diags_array(1.0 / np.sqrt(fit.diagonal))
    filter_ = sp.csr_array(scale @ fit.precision())
    inner = sp.csr_array(sp.diags_array(lack))
    if correlation.extra is not None:
        inner = inner + correlation.extra
    extra = sp.csr_array(filter_ @ inner @ filter_.T - filter_ @ scale)[order][:, order]
    return correlation.filtered(filter_[linked], isolated, sp.csr_array(extra))


def _limited(pairs: Pairs, size: int, partners: int) -> Pairs:
    """Keep the strongest partners of every item: so many, or half, until components are small."""
    pairs = limit_degree(pairs, size, partners)
    while partners > 1 and largest_component(pairs, size) > LARGEST_COMPONENT:
        partners //= 2
        pairs = limit_degree(pairs, size, partners)
    return pairs


def largest_component(pairs: Pairs, size: int) -> int:
    """Return the number of items of the largest connected component."""
    links = sp.csr_array((np.ones(len(pairs.i)), (pairs.i, pairs.j)), shape=(size, size))
    return int(np.bincount(label_components(links)).max())


def limit_degree(pairs: Pairs, size: int, most: int) -> Pairs:
    """Keep a pair if it is among the `most` strongest of both its items."""
    degree = np.bincount(np.concatenate([pairs.i, pairs.j]), minlength=size)
    if degree.max() <= most:
        return pairs
    place = _rank_at_items(pairs.i, pairs.j, -pairs.value, size)
    kept = (place * np.stack([degree[pairs.i], degree[pairs.j]]) < most - 0.5).all(axis=0)
    return Pairs(pairs.i[kept], pairs.j[kept], pairs.value[kept])


def _refit_and_prune(
    correlation: Gram, pairs: Pairs, start: SupportFit | None, n_observations: float
) -> SupportFit:
    """Fit on the pairs; drop the edges that gain too little, some at a time; fit again.

    Where many items correlate with each other, every edge is weak given the others, and dropping
    all of them would lose what they explain together. So a fifth of them goes at once, those that
    are among the weakest of both their items, and the others take over what they explained. The
    fewer edges are left, the more each of them has to gain for the same false discovery rate.
    """
    size = correlation.size
    i, j = pairs.i, pairs.j
    values = correlation.entries(i, j)

    def rough_fit(start: SupportFit | None) -> SupportFit:
        return SupportFit(
            Support.of(size, i, j), values, correlation, start, tol=ROUGH, definite=False
        )

    fit = rough_fit(start)
    if start is not None and fit.failed.any():
        # So many new edges can lead from there into a singular corner that C itself avoids.
        fit = rough_fit(None)
    while True:
        values = fit.correlations
        gain = fit.edge_gains
        limit = deviate(RATE * max(len(i), 1) / (size * (size - 1) / 2))
        weak = np.flatnonzero(n_observations * gain <= limit**2)
        if len(weak) == 0:
            return SupportFit(fit.support, values, correlation, fit)
        order = _rank_at_items(i[weak], j[weak], gain[weak], size).max(axis=0)
        last = len(weak) < LAST * len(i)
        kept = np.ones(len(i), bool)
        kept[weak if last else weak[order <= np.quantile(order, WEAKEST)]] = False
        i, j, values = i[kept], j[kept], values[kept]
        if last:
            return SupportFit(Support.of(size, i, j), values, correlation, fit)
        fit = rough_fit(fit)


def _rank_at_items(i: IntArray, j: IntArray, strength: FloatArray, size: int) -> FloatArray:
    """Return the place of every edge among those of each of its items, from 0 to nearly 1."""
    ends = np.concatenate([i, j])
    degree = np.bincount(ends, minlength=size)
    order = np.lexsort((np.concatenate([strength, strength]), ends))
    first = np.concatenate([[0], np.cumsum(degree)[:-1]])
    place = np.empty(len(ends))
    place[order] = (np.arange(len(ends)) - first[ends[order]]) / degree[ends[order]]
    return place.reshape(2, -1)
