"""Compiled loops of the sparse precision solver (numba only; no LAPACK, no validation).

Notation: ``S`` covariance, ``W`` working covariance, ``B[j]`` the regression of variable j on
the others, ``theta[j]`` the conditional precision of variable j. Penalties come as ``alpha`` of
shape (p, p), or of shape (1, p) when one row serves every variable; its diagonal is never read.
"""

import numpy as np
from numba import njit

# Reassociation lets sums vectorise; the flags that would assume away NaN and infinity stay off.
_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_rows(W, rows, coef, m, out):
    """Out += sum_k coef[k] W[rows[k]], four rows at a time to spare traffic on out."""
    n = out.shape[0]
    k = 0
    while k + 3 < m:
        c0, c1, c2, c3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
        w0, w1, w2, w3 = W[rows[k]], W[rows[k + 1]], W[rows[k + 2]], W[rows[k + 3]]
        for i in range(n):
            out[i] += c0 * w0[i] + c1 * w1[i] + c2 * w2[i] + c3 * w3[i]
        k += 4
    while k < m:
        c0 = coef[k]
        w0 = W[rows[k]]
        for i in range(n):
            out[i] += c0 * w0[i]
        k += 1


@njit(cache=True, nogil=True, fastmath=_FAST)
def _lasso_on_active(sub, m, target, penalty, b, fit, stop, max_pass):
    """Coordinate descent on 1/2 b'Hb - target'b + penalty'|b|, H the leading m x m of sub.

    ``fit`` holds H b on entry and on exit. Stops when a pass lowers the objective by less than
    ``stop``. Returns the total decrease.
    """
    total = 0.0
    for _ in range(max_pass):
        gained = 0.0
        for k in range(m):
            h = sub[k, k]
            old = b[k]
            r = target[k] - fit[k] + h * old
            a = penalty[k]
            if r > a:
                new = (r - a) / h
            elif r < -a:
                new = (r + a) / h
            else:
                new = 0.0
            step = new - old
            if step != 0.0:
                # Exact decrease of the objective along this coordinate.
                gained -= (
                    (fit[k] - target[k]) * step + 0.5 * h * step * step + a * (abs(new) - abs(old))
                )
                b[k] = new
                row = sub[k]
                for i in range(m):
                    fit[i] += step * row[i]
        total += gained
        if gained <= stop:
            break
    return total


@njit(cache=True, nogil=True)
def _grow(buffer, m):
    """A square buffer for at least m variables, keeping nothing."""
    if buffer.shape[0] >= m:
        return buffer
    return np.empty((m + m // 2 + 8, m + m // 2 + 8))


@njit(cache=True, nogil=True)
def _gather(W, active, m, sub):
    for k in range(m):
        row = W[active[k]]
        out = sub[k]
        for i in range(m):
            out[i] = row[active[i]]


@njit(cache=True, nogil=True)
def _shuffle(order, state):
    """Fisher-Yates with a generator of its own, so that results are reproducible."""
    for i in range(order.shape[0] - 1, 0, -1):
        state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        k = np.int64((state[0] >> np.uint64(33)) % np.uint64(i + 1))
        order[i], order[k] = order[k], order[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def descend(S, alpha, W, B, theta, target, inner, max_sweeps):
    """Block coordinate descent over columns, in random order, in place on W, B and theta.

    Column j solves a lasso of variable j on the others with Gram matrix W and replaces row and
    column j of W by its fit. A sweep's progress is sum_j 2 theta_j (decrease of lasso j), which
    is of the order of the duality gap. Stops when that is at most ``target`` (an absolute gap).

    Returns (sweeps, progress, ok); ok is False when a conditional variance turned negative.
    """
    p = S.shape[0]
    order = np.arange(p)
    state = np.array([np.uint64(88172645463325252)])
    active = np.empty(p, np.int64)
    is_active = np.zeros(p, np.bool_)
    b = np.empty(p)
    b_done = np.empty(p)
    fit = np.empty(p)
    wanted = np.empty(p)
    penalty = np.empty(p)
    rows = np.empty(p, np.int64)
    coef = np.empty(p)
    g = np.empty(p)
    sub = np.empty((16, 16))
    shared_row = alpha.shape[0] == 1
    progress = np.inf
    for sweep in range(max_sweeps):
        _shuffle(order, state)
        progress = 0.0
        for j in order:
            s = S[j]
            a = alpha[0] if shared_row else alpha[j]
            beta = B[j]
            stop = inner / theta[j]
            m = 0
            for i in range(p):
                if beta[i] != 0.0:
                    active[m] = i
                    b[m] = beta[i]
                    is_active[i] = True
                    m += 1
                g[i] = 0.0
            gained = 0.0
            fresh = 0
            if m == 0:
                for i in range(p):
                    if abs(s[i]) > a[i] and i != j:
                        active[m] = i
                        b[m] = 0.0
                        is_active[i] = True
                        m += 1
            for k in range(m):
                b_done[k] = 0.0
            for _ in range(20):
                if m > fresh:
                    sub = _grow(sub, m)
                    _gather(W, active, m, sub)
                    for k in range(m):
                        i = active[k]
                        wanted[k] = s[i]
                        penalty[k] = a[i]
                        fit[k] = 0.0
                    n_rows = 0
                    for k in range(m):
                        if b[k] != 0.0:
                            rows[n_rows] = k
                            coef[n_rows] = b[k]
                            n_rows += 1
                    _add_rows(sub[:, :m], rows, coef, n_rows, fit[:m])
                    fresh = m
                    gained += _lasso_on_active(sub, m, wanted, penalty, b, fit, stop, 100)
                n_rows = 0
                for k in range(m):
                    if b[k] != b_done[k]:
                        rows[n_rows] = active[k]
                        coef[n_rows] = b[k] - b_done[k]
                        b_done[k] = b[k]
                        n_rows += 1
                _add_rows(W, rows, coef, n_rows, g)
                for i in range(p):
                    excess = abs(s[i] - g[i]) - a[i]
                    if excess > 0.0 and i != j and not is_active[i]:
                        if excess * excess > 0.1 * stop * W[i, i]:
                            active[m] = i
                            b[m] = 0.0
                            b_done[m] = 0.0
                            is_active[i] = True
                            m += 1
                if m == fresh:
                    break
            explained = 0.0
            for k in range(m):
                i = active[k]
                beta[i] = b[k]
                is_active[i] = False
                explained += b[k] * g[i]
            diagonal = W[j, j]
            free = diagonal - explained
            if not free > 1e-14 * diagonal:
                return sweep + 1, np.inf, False
            theta[j] = 1.0 / free
            progress += 2.0 * gained / free
            w = W[j]
            for i in range(p):
                if i != j:
                    w[i] = g[i]
                    W[i, j] = g[i]
        if progress <= target:
            return sweep + 1, progress, True
    return max_sweeps, progress, True


@njit(cache=True, nogil=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True)
def screen(S, alpha, slack):
    """One pass over S in tiles: check it and join variables with |S_ij| > alpha_ij.

    Returns (problem, i, j, labels); problem is 0, or 1 for a non-finite entry and 2 for an
    asymmetric pair at (i, j). Labels number the connected components in order of appearance.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    parent = np.arange(p)
    scale = np.empty(p)
    labels = np.full(p, -1)
    for i in range(p):
        if not np.isfinite(S[i, i]):
            return 1, i, i, labels
        scale[i] = np.sqrt(abs(S[i, i]))
    tile = 64
    for i0 in range(0, p, tile):
        for j0 in range(i0, p, tile):
            for i in range(i0, min(i0 + tile, p)):
                a = alpha[0] if shared_row else alpha[i]
                for j in range(max(j0, i + 1), min(j0 + tile, p)):
                    x = S[i, j]
                    if not np.isfinite(x) or not np.isfinite(S[j, i]):
                        return 1, i, j, labels
                    if abs(x - S[j, i]) > slack * (scale[i] * scale[j] + abs(x)):
                        return 2, i, j, labels
                    if abs(x) > a[j]:
                        u, v = _root(parent, i), _root(parent, j)
                        if u < v:
                            parent[v] = u
                        elif v < u:
                            parent[u] = v
    count = 0
    for i in range(p):
        r = _root(parent, i)
        if labels[r] < 0:
            labels[r] = count
            count += 1
        labels[i] = labels[r]
    return 0, 0, 0, labels


@njit(cache=True, nogil=True)
def fill_start(S, alpha, diagonal, mix, W):
    """W = S with off-diagonal entries shrunk by (1 - mix) and the given diagonal."""
    p = S.shape[0]
    for i in range(p):
        for j in range(p):
            W[i, j] = (1.0 - mix) * S[i, j]
        W[i, i] = diagonal[i]


@njit(cache=True, nogil=True)
def largest_mix(S, alpha):
    """The largest t <= 1 with t |S_ij| <= alpha_ij off the diagonal: S shrunk by 1 - t is feasible."""
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    t = 1.0
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s = S[i]
        for j in range(p):
            if j != i and t * abs(s[j]) > a[j]:
                t = a[j] / abs(s[j])
    return t


@njit(cache=True, nogil=True)
def fill_dual(S, alpha, diagonal, W, out):
    """Lower triangle of out = W clipped to [S - alpha, S + alpha], with the given diagonal."""
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, o = S[i], W[i], out[i]
        for j in range(i):
            o[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        o[i] = diagonal[i]


@njit(cache=True, nogil=True)
def fill_primal(S, alpha, diagonal, B, theta, out):
    """Lower triangle of out = the symmetric precision of the regressions; returns its linear cost.

    An entry is kept where both regressions have it. The cost is tr(S T) + |alpha o T|_1, the
    diagonal's penalty being part of ``diagonal``.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    cost = 0.0
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, b, o = S[i], B[i], out[i]
        for j in range(i):
            value = 0.0
            if b[j] != 0.0 and B[j, i] != 0.0:
                value = -0.5 * (b[j] * theta[i] + B[j, i] * theta[j])
                cost += 2.0 * (s[j] * value + a[j] * abs(value))
            o[j] = value
        o[i] = theta[i]
        cost += diagonal[i] * theta[i]
    return cost


@njit(cache=True, nogil=True)
def to_csr(B, theta):
    """Row pointers, columns and values of the symmetric precision of the regressions."""
    p = B.shape[0]
    indptr = np.zeros(p + 1, np.int64)
    for i in range(p):
        n = 1
        for j in range(p):
            if B[i, j] != 0.0 and B[j, i] != 0.0:
                n += 1
        indptr[i + 1] = indptr[i] + n
    columns = np.empty(indptr[p], np.int64)
    values = np.empty(indptr[p])
    at = 0
    for i in range(p):
        for j in range(p):
            if i == j:
                columns[at] = j
                values[at] = theta[i]
                at += 1
            elif B[i, j] != 0.0 and B[j, i] != 0.0:
                columns[at] = j
                values[at] = -0.5 * (B[i, j] * theta[i] + B[j, i] * theta[j])
                at += 1
    return indptr, columns, values


@njit(cache=True, nogil=True, fastmath=_FAST)
def newton_direction(S, alpha, diagonal, T, W, D, V, n_pass, stop):
    """Coordinate descent on the second-order model at T, over its free set; W = inv T.

    The model (Hsieh et al. 2014): tr((S - W) D) + 1/2 tr(W D W D) + |alpha o (T + D)|_1. V
    holds (D W)' by rows. Diagonal penalties are part of ``diagonal``, the linear term of the
    diagonal. Returns the linear part of the predicted change (negative).
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    first = np.empty(p * (p + 1) // 2, np.int32)
    second = np.empty(p * (p + 1) // 2, np.int32)
    n = 0
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        for j in range(i):
            if T[i, j] != 0.0 or abs(S[i, j] - W[i, j]) > a[j]:
                first[n] = i
                second[n] = j
                n += 1
        first[n] = i
        second[n] = i
        n += 1
    state = np.array([np.uint64(2463534242)])
    order = np.arange(n)
    for _ in range(n_pass):
        _shuffle(order, state)
        gained = 0.0
        for e in order:
            i, j = first[e], second[e]
            model = 0.0
            w, v = W[i], V[j]
            for k in range(p):
                model += w[k] * v[k]
            now = T[i, j] + D[i, j]
            if i == j:
                curve = W[i, i] * W[i, i]
                slope = diagonal[i] - W[i, i] + model
                step = -slope / curve
                gained += 0.5 * curve * step * step
                D[i, i] += step
                for k in range(p):
                    V[k, i] += step * w[k]
                continue
            a = alpha[0, j] if shared_row else alpha[i, j]
            curve = W[i, j] * W[i, j] + W[i, i] * W[j, j]
            slope = S[i, j] - W[i, j] + model
            r = now - slope / curve
            t = a / curve
            new = r - t if r > t else (r + t if r < -t else 0.0)
            step = new - now
            if step != 0.0:
                gained += curve * step * step
                D[i, j] += step
                D[j, i] += step
                u = W[j]
                for k in range(p):
                    V[k, i] += step * u[k]
                    V[k, j] += step * w[k]
        if gained <= stop:
            break
    change = 0.0
    for e in range(n):
        i, j = first[e], second[e]
        if i == j:
            change += (diagonal[i] - W[i, i]) * D[i, i]
        else:
            a = alpha[0, j] if shared_row else alpha[i, j]
            change += 2.0 * (
                (S[i, j] - W[i, j]) * D[i, j] + a * (abs(T[i, j] + D[i, j]) - abs(T[i, j]))
            )
    return change


@njit(cache=True, nogil=True, fastmath=_FAST)
def _solve_definite(H, m, x):
    """X <- inv(H) x in place by Cholesky on the lower triangle of H's leading m x m block."""
    for i in range(m):
        for j in range(i + 1):
            left, right = H[i], H[j]
            total = left[j]
            for k in range(j):
                total -= left[k] * right[k]
            if i > j:
                left[j] = total / right[j]
            elif total > 0.0:
                left[i] = np.sqrt(total)
            else:
                return False
    for i in range(m):
        row = H[i]
        total = x[i]
        for k in range(i):
            total -= row[k] * x[k]
        x[i] = total / row[i]
    for i in range(m - 1, -1, -1):
        x[i] /= H[i, i]
        row = H[i]
        for k in range(i):
            x[k] -= row[k] * x[i]
    return True


@njit(cache=True, nogil=True, fastmath=_FAST)
def refit_sweeps(S, indptr, neighbours, W, B, theta, target, max_sweeps):
    """Modified regressions (Hastie et al. 2009, algorithm 17.1) on a given graph, in place.

    Column j regresses variable j on its neighbours with Gram matrix W, exactly. Progress and
    return values are those of ``descend``.
    """
    p = S.shape[0]
    order = np.arange(p)
    state = np.array([np.uint64(88172645463325252)])
    sub = np.empty((16, 16))
    b = np.empty(p)
    g = np.empty(p)
    progress = np.inf
    for sweep in range(max_sweeps):
        _shuffle(order, state)
        progress = 0.0
        for j in order:
            near = neighbours[indptr[j] : indptr[j + 1]]
            m = len(near)
            sub = _grow(sub, m)
            _gather(W, near, m, sub)
            beta = B[j]
            gained = 0.0
            for k in range(m):
                b[k] = S[j, near[k]]
                fitted = 0.0
                for i in range(m):
                    fitted += sub[k, i] * beta[near[i]]
                g[k] = b[k] - fitted
            if not _solve_definite(sub, m, b):
                return sweep + 1, np.inf, False
            for k in range(m):
                gained += 0.5 * g[k] * (b[k] - beta[near[k]])
                beta[near[k]] = b[k]
            for i in range(p):
                g[i] = 0.0
            _add_rows(W, near, b, m, g)
            free = W[j, j]
            for k in range(m):
                free -= b[k] * S[j, near[k]]
            if not free > 1e-14 * W[j, j]:
                return sweep + 1, np.inf, False
            theta[j] = 1.0 / free
            progress += 2.0 * abs(gained) / free
            for i in range(p):
                if i != j:
                    W[j, i] = g[i]
                    W[i, j] = g[i]
        if progress <= target:
            return sweep + 1, progress, True
    return max_sweeps, progress, True
