"""Compiled loops over a graph and its components (numba only)."""

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}
#: Smallest conditional variance (of a unit variance) that a regression may leave.
_LEAST = 1e-3
#: Most common neighbors that the ends of an edge are conditioned on.
_MOST_COMMON = 16


@njit(cache=True, nogil=True)
def adjacency(size, i, j):
    """Both directions of the edges in CSR form: indptr, neighbors, edge numbers."""
    indptr = np.zeros(size + 1, np.int64)
    for e in range(len(i)):
        indptr[i[e] + 1] += 1
        indptr[j[e] + 1] += 1
    for a in range(size):
        indptr[a + 1] += indptr[a]
    place = indptr[:-1].copy()
    neighbors = np.empty(2 * len(i), np.int64)
    edges = np.empty(2 * len(i), np.int64)
    for e in range(len(i)):
        for a, b in ((i[e], j[e]), (j[e], i[e])):
            neighbors[place[a]] = b
            edges[place[a]] = e
            place[a] += 1
    return indptr, neighbors, edges


@njit(cache=True, nogil=True)
def components(size, indptr, neighbors):
    """Components with at least two items, by breadth-first search.

    Returns the items component by component, the bounds of each, every item's component (-1
    for a lonely one) and its place inside.
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
            for u in range(indptr[item], indptr[item + 1]):
                other = neighbors[u]
                if component[other] < 0:
                    component[other] = count
                    order[end] = other
                    end += 1
        count += 1
        bounds[count] = end
    return order[:end].copy(), bounds[: count + 1].copy(), component, place


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
def fit_components(
    indptr,
    neighbors,
    correlations,
    order,
    bounds,
    place,
    offsets,
    covariance,
    coefficients,
    left_over,
    due,
    max_sweeps,
    tol,
):
    """Gaussian maximum likelihood on a support, by regressions on the working covariance.

    Algorithm 17.1 of The Elements of Statistical Learning, component by component:
    `covariance` (flat blocks, unit diagonals) is the start and becomes the fitted covariance,
    `coefficients` (in CSR order) and `left_over` the regressions of every item on its neighbors.
    Only items that are `due` are regressed: at first those given, then those with a neighbor
    whose covariances have changed by more than `tol`. Returns which components ran into an
    indefinite or almost singular regression.
    """
    failed_items = np.zeros(len(indptr) - 1, np.bool_)
    failed = np.zeros(len(bounds) - 1, np.bool_)
    for c in range(len(bounds) - 1):
        first = bounds[c]
        q = bounds[c + 1] - first
        W = covariance[offsets[c] : offsets[c + 1]].reshape(q, q)
        if q == 2:
            i, j = order[first], order[first + 1]
            limit = 1.0 - _LEAST
            r = min(limit, max(-limit, correlations[indptr[i]]))
            W[0, 0] = W[1, 1] = 1.0
            W[0, 1] = W[1, 0] = r
            coefficients[indptr[i]] = coefficients[indptr[j]] = r
            left_over[i] = left_over[j] = 1.0 - r * r
            continue
        largest = 0
        for a in range(q):
            i = order[first + a]
            W[a, a] = 1.0
            largest = max(largest, indptr[i + 1] - indptr[i])
        matrix = np.empty((largest, largest))
        beta = np.empty(largest)
        row = np.empty(q)
        for _ in range(max_sweeps):
            settled = True
            for a in range(q):
                i = order[first + a]
                if not due[i]:
                    continue
                due[i] = False
                settled = False
                start = indptr[i]
                degree = indptr[i + 1] - start
                for u in range(degree):
                    beta[u] = correlations[start + u]
                    source = W[place[neighbors[start + u]]]
                    for v in range(u + 1):
                        matrix[u, v] = source[place[neighbors[start + v]]]
                failed_items[i] = not _solve_in_place(matrix, beta, degree)
                rest = 1.0
                for u in range(degree):
                    rest -= beta[u] * correlations[start + u]
                if not rest <= 1.0 + 1e-9:
                    # The working covariance is not definite any more; without row a it may be.
                    beta[:degree] = 0.0
                    rest = 1.0
                    failed_items[i] = True
                elif rest < _LEAST:
                    shrink = np.sqrt(max(0.0, (1.0 - _LEAST) / (1.0 - rest)))
                    for u in range(degree):
                        beta[u] *= shrink
                    rest = _LEAST
                    failed_items[i] = True
                left_over[i] = rest
                row[:] = 0.0
                for u in range(degree):
                    coefficients[start + u] = beta[u]
                    source = W[place[neighbors[start + u]]]
                    b = beta[u]
                    for x in range(q):
                        row[x] += b * source[x]
                row[a] = 1.0
                target = W[a]
                change = 0.0
                for x in range(q):
                    # Far from a definite matrix regressions can be anything.
                    row[x] = min(1.0, max(-1.0, row[x]))
                    change = max(change, abs(row[x] - target[x]))
                    target[x] = row[x]
                for x in range(q):
                    W[x, a] = row[x]
                if change > tol:
                    for u in range(degree):
                        due[neighbors[start + u]] = True
            if settled:
                break
        for a in range(q):
            failed[c] |= failed_items[order[first + a]]
    return failed


@njit(cache=True, nogil=True)
def copy_regressions(
    indptr,
    neighbors,
    coefficients,
    left_over,
    due,
    old_indptr,
    old_neighbors,
    old_coefficients,
    old_left_over,
):
    """Start from an earlier fit's regressions; items with other neighbors now are due."""
    for i in range(len(indptr) - 1):
        start, old_start = indptr[i], old_indptr[i]
        degree = indptr[i + 1] - start
        due[i] = degree != old_indptr[i + 1] - old_start
        for u in range(degree):
            if due[i]:
                break
            due[i] = neighbors[start + u] != old_neighbors[old_start + u]
            coefficients[start + u] = old_coefficients[old_start + u]
        left_over[i] = 1.0 if due[i] else old_left_over[i]


@njit(cache=True, nogil=True)
def indefinite_components(
    wanted, indptr, neighbors, edge_number, order, bounds, place, diagonal, edge_values
):
    """Tell which of the wanted components' precisions fail a Cholesky factorization."""
    failed = np.zeros(len(wanted), np.bool_)
    for w in range(len(wanted)):
        first = bounds[wanted[w]]
        q = bounds[wanted[w] + 1] - first
        block = np.zeros((q, q))
        for a in range(q):
            i = order[first + a]
            block[a, a] = diagonal[i]
            for u in range(indptr[i], indptr[i + 1]):
                block[a, place[neighbors[u]]] = edge_values[edge_number[u]]
        for a in range(q):
            for b in range(a + 1):
                total = block[a, b]
                for c in range(b):
                    total -= block[a, c] * block[b, c]
                if a > b:
                    block[a, b] = total / block[b, b]
                elif total > 0.0:
                    block[a, a] = np.sqrt(total)
                else:
                    failed[w] = True
            if failed[w]:
                break
    return failed


@njit(cache=True, nogil=True)
def copy_covariance(
    order, bounds, offsets, covariance, old_component, old_place, old_bounds, old_offsets, old
):
    """Start from an earlier fit's covariance; pairs it had in different components get 0."""
    for c in range(len(bounds) - 1):
        first = bounds[c]
        q = bounds[c + 1] - first
        block = covariance[offsets[c] : offsets[c + 1]].reshape(q, q)
        for a in range(q):
            i = order[first + a]
            source = old_component[i]
            if source < 0:
                continue
            width = old_bounds[source + 1] - old_bounds[source]
            base = old_offsets[source] + old_place[i] * width
            for b in range(q):
                j = order[first + b]
                if old_component[j] == source:
                    block[a, b] = old[base + old_place[j]]


@njit(cache=True, nogil=True)
def given_common_neighbors(i, j, indptr, neighbors, component, place, bounds, offsets, covariance):
    """Correlation of every edge's ends given their common neighbors, and sqrt(S_ii S_jj).

    S is the covariance of the two ends given the common neighbors of both.
    """
    correlation = np.empty(len(i))
    scale = np.empty(len(i))
    seen_by = np.full(len(indptr) - 1, -1, np.int64)
    items = np.empty(_MOST_COMMON + 2, np.int64)
    root = np.empty((_MOST_COMMON + 2, _MOST_COMMON + 2))
    for e in range(len(i)):
        for u in range(indptr[i[e]], indptr[i[e] + 1]):
            seen_by[neighbors[u]] = e
        count = 0
        for u in range(indptr[j[e]], indptr[j[e] + 1]):
            if seen_by[neighbors[u]] == e and count < _MOST_COMMON:
                items[count] = place[neighbors[u]]
                count += 1
        items[count], items[count + 1] = place[i[e]], place[j[e]]
        c = component[i[e]]
        q = bounds[c + 1] - bounds[c]
        W = covariance[offsets[c] : offsets[c + 1]].reshape(q, q)
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
        other = np.sqrt(shared * shared + own * own)
        correlation[e] = shared / other
        scale[e] = root[count, count] * other
    return correlation, scale
