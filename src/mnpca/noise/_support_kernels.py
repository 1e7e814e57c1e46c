"""Compiled loops over a graph and its components (numba only).

`support` is a `mnpca.noise.support.Support`; `covariance` has the blocks of its components, one
after the other in a flat array. Regressions of every item on its neighbors are `coefficients`, in
the order of `support.neighbors`, with the variance `unexplained`.
"""

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
#: Smallest conditional variance (of a unit variance) that a regression may leave.
_LEAST = 1e-3
#: Most common neighbors that the ends of an edge are conditioned on.
_MOST_COMMON = 16


@njit(cache=True, nogil=True)
def components(size, indptr, neighbors):
    """Components with at least two items, by breadth-first search.

    Returns the items component by component, the bounds of each, every item's component (-1
    for a isolated one) and its place inside.
    """
    component = np.full(size, -1, np.int64)
    place = np.zeros(size, np.int64)
    order = np.empty(size, np.int64)
    bounds = np.zeros(size + 1, np.int64)
    count = 0
    end = 0
    for root in range(size):
        if component[root] >= 0 or indptr[root + 1] == indptr[root]:
            continue
        component[root] = count
        order[end] = root
        next_item = end
        end += 1
        while next_item < end:
            item = order[next_item]
            place[item] = next_item - bounds[count]
            next_item += 1
            for other in neighbors[indptr[item] : indptr[item + 1]]:
                if component[other] < 0:
                    component[other] = count
                    order[end] = other
                    end += 1
        count += 1
        bounds[count] = end
    return order[:end].copy(), bounds[: count + 1].copy(), component, place


@njit(cache=True, nogil=True)
def _block(support, covariance, c):
    q = support.bounds[c + 1] - support.bounds[c]
    return covariance[support.offsets[c] : support.offsets[c + 1]].reshape(q, q)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _solve_in_place(matrix, rhs, size):
    """Solve by Cholesky (lower triangle given); return False where it is not definite."""
    definite = True
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= matrix[a, c] * matrix[b, c]
            if a == b:
                if total <= 1e-10:
                    total = 1e-10
                    definite = False
                matrix[a, a] = np.sqrt(total)
            else:
                matrix[a, b] = total / matrix[b, b]
    for a in range(size):
        total = rhs[a]
        for c in range(a):
            total -= matrix[a, c] * rhs[c]
        rhs[a] = total / matrix[a, a]
    for a in range(size - 1, -1, -1):
        total = rhs[a]
        for c in range(a + 1, size):
            total -= matrix[c, a] * rhs[c]
        rhs[a] = total / matrix[a, a]
    return definite


@njit(cache=True, nogil=True, fastmath=_FAST)
def _regress(places, correlations, W, matrix, beta):
    """Regress an item on its neighbors, which lie at these places of the working covariance W.

    Fills `beta`. Returns the variance that is left over, and whether the regression is neither
    indefinite nor almost singular.
    """
    degree = len(places)
    for u in range(degree):
        beta[u] = correlations[u]
        for v in range(u + 1):
            matrix[u, v] = W[places[u], places[v]]
    sound = _solve_in_place(matrix, beta, degree)
    rest = 1.0
    for u in range(degree):
        rest -= beta[u] * correlations[u]
    if not rest <= 1.0 + 1e-9:
        # The working covariance is not definite any more; without this item's row it may be.
        for u in range(degree):
            beta[u] = 0.0
        return 1.0, False
    if rest < _LEAST:
        shrink = np.sqrt(max(0.0, (1.0 - _LEAST) / (1.0 - rest)))
        for u in range(degree):
            beta[u] *= shrink
        return _LEAST, False
    return rest, sound


@njit(cache=True, nogil=True, fastmath=_FAST)
def _replace_row(a, places, beta, W, row):
    """Row and column a of W become the regression's fit; return the largest change."""
    for x in range(len(row)):
        row[x] = 0.0
    for u in range(len(places)):
        source, b = W[places[u]], beta[u]
        for x in range(len(row)):
            row[x] += b * source[x]
    row[a] = 1.0
    target = W[a]
    change = 0.0
    for x in range(len(row)):
        # Far from a definite matrix regressions can be anything.
        row[x] = min(1.0, max(-1.0, row[x]))
        change = max(change, abs(row[x] - target[x]))
        target[x] = row[x]
    for x in range(len(row)):
        W[x, a] = row[x]
    return change


@njit(cache=True, nogil=True, fastmath=_FAST)
def fit_components(
    support, correlations, covariance, coefficients, unexplained, due, max_sweeps, tol
):
    """Gaussian maximum likelihood on a support, by regressions on the working covariance.

    Algorithm 17.1 of The Elements of Statistical Learning, component by component:
    `covariance` (with unit diagonals) is the start and becomes the fitted covariance;
    `correlations` are in the order of the neighbors. Only items that are `due` are regressed: at
    first those given, then those with a neighbor whose covariances have changed by more than `tol`.
    Returns which components ran into an indefinite or almost singular regression.
    """
    indptr, neighbors = support.indptr, support.neighbors
    unsound = np.zeros(support.size, np.bool_)
    failed = np.zeros(len(support.bounds) - 1, np.bool_)
    for c in range(len(failed)):
        items = support.order[support.bounds[c] : support.bounds[c + 1]]
        W = _block(support, covariance, c)
        for a in range(len(items)):
            W[a, a] = 1.0
        if len(items) == 2:
            i, j = items[0], items[1]
            limit = 1.0 - _LEAST
            r = min(limit, max(-limit, correlations[indptr[i]]))
            W[0, 1] = W[1, 0] = r
            coefficients[indptr[i]] = coefficients[indptr[j]] = r
            unexplained[i] = unexplained[j] = 1.0 - r * r
            continue
        # Loops compile in about half the time of expressions of arrays.
        largest = 0
        for i in items:
            largest = max(largest, indptr[i + 1] - indptr[i])
        matrix = np.empty((largest, largest))
        beta = np.empty(largest)
        row = np.empty(len(items))
        places = np.empty(largest, np.int64)
        for _ in range(max_sweeps):
            settled = True
            for a in range(len(items)):
                i = items[a]
                if not due[i]:
                    continue
                due[i] = settled = False
                first, last = indptr[i], indptr[i + 1]
                degree = last - first
                for u in range(degree):
                    places[u] = support.place[neighbors[first + u]]
                rest, sound = _regress(places[:degree], correlations[first:last], W, matrix, beta)
                unexplained[i] = rest
                unsound[i] = not sound
                for u in range(degree):
                    coefficients[first + u] = beta[u]
                if _replace_row(a, places[:degree], beta, W, row) > tol:
                    for u in range(first, last):
                        due[neighbors[u]] = True
            if settled:
                break
        for i in items:
            failed[c] |= unsound[i]
    return failed


@njit(cache=True, nogil=True)
def copy_regressions(
    support, coefficients, unexplained, due, old, old_coefficients, old_unexplained
):
    """Start from an earlier fit's regressions; items with other neighbors now are due."""
    for i in range(support.size):
        start, old_start = support.indptr[i], old.indptr[i]
        degree = support.indptr[i + 1] - start
        due[i] = degree != old.indptr[i + 1] - old_start
        for u in range(degree):
            if due[i]:
                break
            due[i] = support.neighbors[start + u] != old.neighbors[old_start + u]
            coefficients[start + u] = old_coefficients[old_start + u]
        unexplained[i] = 1.0 if due[i] else old_unexplained[i]


@njit(cache=True, nogil=True)
def copy_covariance(support, covariance, old, old_covariance):
    """Start from an earlier fit's covariance; pairs it had in different components get 0."""
    for c in range(len(support.bounds) - 1):
        items = support.order[support.bounds[c] : support.bounds[c + 1]]
        block = _block(support, covariance, c)
        for a, i in enumerate(items):
            source = old.component[i]
            if source < 0:
                continue
            row = _block(old, old_covariance, source)[old.place[i]]
            for b, j in enumerate(items):
                if old.component[j] == source:
                    block[a, b] = row[old.place[j]]


@njit(cache=True, nogil=True)
def indefinite_components(wanted, support, diagonal, edge_values):
    """Tell which of the wanted components' precisions fail a Cholesky factorization."""
    failed = np.zeros(len(wanted), np.bool_)
    for w in range(len(wanted)):
        items = support.order[support.bounds[wanted[w]] : support.bounds[wanted[w] + 1]]
        q = len(items)
        block = np.zeros((q, q))
        for a, i in enumerate(items):
            block[a, a] = diagonal[i]
            for u in range(support.indptr[i], support.indptr[i + 1]):
                block[a, support.place[support.neighbors[u]]] = edge_values[support.edge_number[u]]
        failed[w] = not _solve_in_place(block, np.zeros(q), q)
    return failed


@njit(cache=True, nogil=True)
def given_common_neighbors(support, covariance):
    """Correlation of every edge's ends given their common neighbors, and sqrt(S_ii S_jj).

    S is the covariance of the two ends given the common neighbors of both.
    """
    indptr, neighbors, place = support.indptr, support.neighbors, support.place
    correlation, scale = np.empty(len(support.i)), np.empty(len(support.i))
    seen_by = np.full(support.size, -1, np.int64)
    items = np.empty(_MOST_COMMON + 2, np.int64)
    root = np.empty((_MOST_COMMON + 2, _MOST_COMMON + 2))
    for e in range(len(support.i)):
        i, j = support.i[e], support.j[e]
        for other in neighbors[indptr[i] : indptr[i + 1]]:
            seen_by[other] = e
        count = 0
        for other in neighbors[indptr[j] : indptr[j + 1]]:
            if seen_by[other] == e and count < _MOST_COMMON:
                items[count] = place[other]
                count += 1
        items[count], items[count + 1] = place[i], place[j]
        W = _block(support, covariance, support.component[i])
        for a in range(count + 2):
            for b in range(a + 1):
                total = W[items[a], items[b]]
                for d in range(b):
                    total -= root[a, d] * root[b, d]
                if a == b:
                    root[a, a] = np.sqrt(max(total, _LEAST))
                else:
                    root[a, b] = total / root[b, b]
        shared, own = root[count + 1, count], root[count + 1, count + 1]
        spread = np.sqrt(shared * shared + own * own)
        correlation[e] = shared / spread
        scale[e] = root[count, count] * spread
    return correlation, scale
