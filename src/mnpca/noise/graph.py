"""Choice of a noise graph: score tests add edges, maximum likelihood refits, weak ones go."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.base import Gram, Pairs
from mnpca.noise.support import Support, SupportFit


class Levels(NamedTuple):
    """When an edge enters (its score) and stays (its partial correlation), in units of u."""

    enter: float
    stay: float

    def raised(self, enter: float) -> "Levels":
        """Return levels in the same proportion, of which the first is at least `enter`."""
        factor = max(1.0, enter / self.enter)
        return Levels(self.enter * factor, self.stay * factor)


#: Levels of a matrix. Lower ones find more edges of a dense graph and more false ones of a sparse
#: graph; the evidence of the whole fit has the last word on either.
LEVELS = Levels(1.5, 0.8)
#: The unit is (1 + this / m) times larger: m observations of an estimated noise count for less.
SMALL_SAMPLE = 10.0
#: Pairs above this share of the entry level are remembered for later noise steps.
SLACK = 0.8
#: Where an item correlates with more others than this on average, what correlates is a signal or
#: a mean, and listing the pairs would take memory of the order q^2.
MOST_PARTNERS = 100.0
#: Random pairs from which that average is estimated.
SAMPLED_PAIRS = 10_000
#: Most partners of an item in the first round. Correlations link everything with everything
#: where a network is dense or long, and a refit of so many edges is slow; hardly any would stay.
FIRST_PARTNERS = 50
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
    correlation: Gram,
    n_observations: int,
    candidates: Candidates,
    levels: Levels = LEVELS,
    floor: float = 0.0,
) -> SupportFit | None:
    """Choose and fit the graph of one side.

    Parameters
    ----------
    correlation : Gram
        Off-diagonal part of the noise correlation C (its diagonal counts as one).
    n_observations : int
        m, the number of items on the other side.
    candidates : Candidates
        Remembered pairs; filled on the first call.
    levels : Levels
        When edges enter and stay.
    floor : float
        Edges with a lower score do not enter, whatever the levels say.

    Returns
    -------
    SupportFit or None
        The fitted graph; None where no pair passes, or where so many do that they cannot be a
        sparse graph.

    Notes
    -----
    With u = (1 + 10/m) sqrt(log q / m) and P = I at first: add the pairs with
    ``|P C P - P|_ij / sqrt(P_ii P_jj) > enter u`` (at most m/4 per item, 50 in round one), the
    score test of a missing edge; refit P on the support by maximum likelihood; drop edges with
    partial correlation below stay u; refit. Round one is plain thresholding of correlations; the
    later rounds see innovations, in which a chain no longer looks like a clique.
    """
    size = correlation.size
    unit = _unit(size, n_observations)
    levels = levels.raised(floor / unit)
    if levels.enter * unit >= 1.0 or _is_crowded(correlation, levels.enter * unit):
        return None
    most = max(2, n_observations // 4)
    fit: SupportFit | None = None
    lack: FloatArray | None = None
    for _ in range(ROUNDS):
        if fit is None:
            found = _correlated_pairs(correlation, unit, candidates, levels.enter)
        else:
            if lack is None:
                lack = 1.0 - correlation.diagonal()
            found = _scored_pairs(correlation, fit, lack, unit, candidates, levels.enter)
        if len(found.i) == 0:
            break
        partners = min(most, FIRST_PARTNERS) if fit is None else most
        pairs = _in_order(_with_edges(found, fit), size)
        pairs = limit_degree(pairs, size, partners)
        refitted = _refit_and_prune(correlation, pairs, fit, levels.stay * unit)
        settled = fit is not None and np.array_equal(
            np.sort(refitted.support.keys), np.sort(fit.support.keys)
        )
        fit = refitted
        if settled or fit.support.n_edges == 0:
            break
    candidates.complete = True
    return fit if fit is not None and fit.support.n_edges > 0 else None


def graph_can_show(size: int, n_observations: int) -> bool:
    """Tell whether a correlation can pass the entry level at all: it is never above one."""
    return LEVELS.enter * _unit(size, n_observations) < 1.0


def _unit(size: int, n_observations: int) -> float:
    """Return u, in units of which edges enter and stay."""
    unit = float(np.sqrt(np.log(size) / n_observations)) if size > 1 else np.inf
    return unit * (1.0 + SMALL_SAMPLE / n_observations)


def _is_crowded(correlation: Gram, level: float) -> bool:
    """Tell whether an item correlates with too many others, from a sample of the pairs."""
    size = correlation.size
    if size <= MOST_PARTNERS:
        return False
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, size, (2, SAMPLED_PAIRS))
    i, j = np.minimum(i, j)[i != j], np.maximum(i, j)[i != j]
    share = float(np.mean(np.abs(correlation.entries(i, j)) > level))
    return share * (size - 1) > MOST_PARTNERS


def _correlated_pairs(
    correlation: Gram, unit: float, candidates: Candidates, enter: float
) -> Pairs:
    """Pairs whose correlation passes; the value is the size of the correlation."""
    size = correlation.size
    if not candidates.complete:
        found = correlation.large_entries(SLACK * LEVELS.enter * unit)
        keys = found.i * size + found.j
        candidates.correlated = np.union1d(candidates.correlated, keys)
        candidates.scored = np.union1d(candidates.scored, keys)
    else:
        i, j = np.divmod(candidates.correlated, size)
        found = Pairs(i, j, correlation.entries(i, j))
    passed = np.abs(found.value) > enter * unit
    return Pairs(found.i[passed], found.j[passed], np.abs(found.value[passed]))


def _scored_pairs(
    correlation: Gram,
    fit: SupportFit,
    lack: FloatArray,
    unit: float,
    candidates: Candidates,
    enter: float,
) -> Pairs:
    """Pairs outside the graph whose score passes; the value is the size of the score.

    With N = diag(P)^-1/2 P the normalized scores are the off-diagonal entries of
    ``N C N' - N diag(P)^-1/2``: again a Gram matrix, of filtered residuals. Two items without
    an edge keep their correlation as score, so only pairs with a linked item are computed.
    """
    support = fit.support
    size = support.size
    degree = np.diff(support.indptr)
    linked, lonely = np.flatnonzero(degree > 0), np.flatnonzero(degree == 0)
    order = np.concatenate([linked, lonely])
    scores = _score_gram(correlation, fit, lack, linked, lonely)
    if candidates.complete:
        place = np.argsort(order)
        a, b = (place[items] for items in np.divmod(candidates.scored, size))
        a, b = np.minimum(a, b), np.maximum(a, b)
        near = a < len(linked)
        found = Pairs(a[near], b[near], scores.entries(a[near], b[near]))
    else:
        found = scores.large_entries(SLACK * LEVELS.enter * unit, n_rows=len(linked))
    first, second = order[found.i], order[found.j]
    i, j = np.minimum(first, second), np.maximum(first, second)
    keys = i * size + j
    if not candidates.complete:
        candidates.scored = np.union1d(candidates.scored, keys)
    new = (np.abs(found.value) > enter * unit) & ~np.isin(keys, support.keys)
    return Pairs(i[new], j[new], np.abs(found.value[new]))


def _score_gram(
    correlation: Gram, fit: SupportFit, lack: FloatArray, linked: IntArray, lonely: IntArray
) -> Gram:
    """Return the matrix of scores with the linked items first (rows for these only)."""
    order = np.concatenate([linked, lonely])
    scale = sp.diags_array(1.0 / np.sqrt(fit.diagonal))
    filter_ = sp.csr_array(scale @ fit.precision())
    inner = sp.csr_array(sp.diags_array(lack))
    if correlation.extra is not None:
        inner = inner + correlation.extra
    extra = sp.csr_array(filter_ @ inner @ filter_.T - filter_ @ scale)[order][:, order]
    return correlation.filtered(filter_[linked], lonely, sp.csr_array(extra))


def _with_edges(found: Pairs, fit: SupportFit | None) -> Pairs:
    """Add the current edges, with infinite value: they are not to be crowded out."""
    if fit is None:
        return found
    support = fit.support
    return Pairs(
        np.concatenate([support.i, found.i]),
        np.concatenate([support.j, found.j]),
        np.concatenate([np.full(support.n_edges, np.inf), found.value]),
    )


def _in_order(pairs: Pairs, size: int) -> Pairs:
    """Sort the pairs: an engine may find them in any order, and the refit depends on it."""
    order = np.argsort(pairs.i * size + pairs.j)
    return Pairs(pairs.i[order], pairs.j[order], pairs.value[order])


def limit_degree(pairs: Pairs, size: int, most: int) -> Pairs:
    """Keep a pair if it is among the `most` strongest of both its items."""
    ends = np.concatenate([pairs.i, pairs.j])
    degree = np.bincount(ends, minlength=size)
    if degree.max() <= most:
        return pairs
    strength = np.concatenate([pairs.value, pairs.value])
    order = np.lexsort((-strength, ends))
    first = np.concatenate([[0], np.cumsum(degree)[:-1]])
    rank = np.empty(len(ends), np.int64)
    rank[order] = np.arange(len(ends)) - first[ends[order]]
    count = len(pairs.i)
    kept = (rank[:count] < most) & (rank[count:] < most)
    return Pairs(pairs.i[kept], pairs.j[kept], pairs.value[kept])


def _refit_and_prune(
    correlation: Gram, pairs: Pairs, start: SupportFit | None, level: float
) -> SupportFit:
    """Fit on the pairs, drop edges whose partial correlation is below the level, fit again."""
    size = correlation.size
    values = correlation.entries(pairs.i, pairs.j)
    support = Support(size, pairs.i, pairs.j)
    rough = SupportFit(support, values, correlation, start, tol=ROUGH, definite=False)
    kept = rough.partial_correlations > level
    return SupportFit(Support(size, pairs.i[kept], pairs.j[kept]), values[kept], correlation, rough)
