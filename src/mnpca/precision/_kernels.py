"""Compiled loops of the sparse precision solver: numba only, no LAPACK, no validation.

Notation: ``S`` covariance, ``W`` working covariance, ``B[j]`` the regression of variable j on the
others, ``theta[j]`` the conditional precision of variable j. Penalties come as ``alpha`` of shape
(p, p), or of shape (1, p) when one row serves every variable; its diagonal is never read.
A column's work arrays in the descent are rows of one float buffer (``room``) and one integer buffer
(``places``), allocated once per call.
"""

import numpy as np
from numba import njit, uint64

# Reassociation lets sums vectorize; the flags that would assume away NaN and infinity stay off.
FAST = {"reassoc", "contract", "nsz", "arcp"}
# Buffers are padded to whole vectors, which spares the compiled loops their scalar remainders.
LANES = 8
# Rows of room ...
_B, _DONE, _FIT, _WANTED, _PENALTY, _INVERSE, _COEF, _G, _ALLOWED, _SCALE = range(10)
# ... and of places.
_ACTIVE, _FILLED, _ROWS = range(3)
# A coordinate moves if that gains this part of the column's stopping rule, a variable enters if
# it may gain that many times more: either way the sum over the column stays of the rule's order.
_TINY, _ENTER = 1e-2, 10.0
_MAX_PASSES = 300
# A conditional variance is positive if it is this part of the variance.
_POSITIVE = 1e-14
# Columns are easy while lassos take fewer passes than this, on average over the last ten or so.
_EASY = 8.0


@njit(cache=True, nogil=True, fastmath=FAST)
def add_rows(W, rows, coef, m, n, out):
    """out[:n] += sum_k coef[k] W[rows[k], :n], four rows at a time to spare traffic on out."""
    k = 0
    while k + 3 < m:
        c0, c1, c2, c3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
        # Unsigned, so that compiled indexing does not look for negative indices.
        r0, r1 = W[uint64(rows[k])], W[uint64(rows[k + 1])]
        r2, r3 = W[uint64(rows[k + 2])], W[uint64(rows[k + 3])]
        for i in range(n):
            out[i] += c0 * r0[i] + c1 * r1[i] + c2 * r2[i] + c3 * r3[i]
        k += 4
    while k < m:
        c0, r0 = coef[k], W[uint64(rows[k])]
        for i in range(n):
            out[i] += c0 * r0[i]
        k += 1


@njit(cache=True, nogil=True)
def padded(m):
    """Round m up to whole vectors."""
    return (m + LANES - 1) // LANES * LANES


@njit(cache=True, nogil=True)
def grow(buffer, m):
    """Return a square buffer for m variables that starts with the content of the given one."""
    if buffer.shape[0] >= m:
        return buffer
    n = padded(m + m // 2)
    bigger = np.empty((n, n))
    bigger[: buffer.shape[0], : buffer.shape[1]] = buffer
    return bigger


@njit(cache=True, nogil=True)
def shuffle(order, state):
    """Fisher-Yates with a linear congruential generator."""
    for i in range(order.shape[0] - 1, 0, -1):
        state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        k = np.int64((state[0] >> np.uint64(33)) % np.uint64(i + 1))
        order[i], order[k] = order[k], order[i]


@njit(cache=True, nogil=True)
def fill_soft(S, alpha, diagonal, W):
    """W = S soft-thresholded by alpha, with the given diagonal. It may be indefinite."""
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        for j in range(p):
            x = S[i, j]
            W[i, j] = np.copysign(max(abs(x) - a[j], 0.0), x)
        W[i, i] = diagonal[i]


@njit(cache=True, nogil=True)
def _nonzeros(x, active):
    """List the nonzeros of x in active (no branch to mispredict); return how many."""
    m = 0
    for i in range(x.shape[0]):
        active[m] = i
        m += x[i] != 0.0
    return m


@njit(cache=True, nogil=True)
def _violators(s, g, a, allowed, slack, active, m):
    """Append to active the allowed variables with scaled |s - g| - a above slack.

    There are often none, and counting them first is several times faster than listing.
    """
    count = 0
    for i in range(s.shape[0]):
        count += (abs(s[i] - g[i]) - a[i]) * allowed[i] > slack
    if count == 0:
        return m
    for i in range(s.shape[0]):
        active[m] = i
        m += (abs(s[i] - g[i]) - a[i]) * allowed[i] > slack
    return m


@njit(cache=True, nogil=True)
def _copy_row(W, active, first, m, k, sub):
    """sub[k, first:m] = W[active[k], active[first:m]], padded by zeros to whole vectors."""
    row = W[active[k]]
    for i in range(first, m):
        sub[k, i] = row[active[i]]
    for i in range(m, padded(m)):
        sub[k, i] = 0.0


@njit(cache=True, nogil=True, fastmath=FAST)
def _lasso(W, m, sub, room, places, stop):
    """Coordinate descent on 1/2 b'Hb - wanted'b + penalty'|b|, H = W on the m active variables.

    ``fit`` holds H b on entry and on exit. Row k of H is copied to ``sub`` when b_k first moves:
    variables that stay at zero cost nothing. Stops when a pass lowers the objective by at most
    ``stop``. Returns the total decrease and the number of passes.
    """
    b, fit, wanted, penalty, inverse = (
        room[_B], room[_FIT], room[_WANTED], room[_PENALTY], room[_INVERSE]
    )  # fmt: skip
    active, filled = places[_ACTIVE], places[_FILLED]
    width = padded(m)
    total, n_passes, gained = 0.0, 0, np.inf
    while gained > stop and n_passes < _MAX_PASSES:
        n_passes += 1
        gained = 0.0
        for k in range(m):
            old, q = b[k], inverse[k]
            r = (wanted[k] - fit[k]) * q + old
            a = penalty[k] * q
            new = max(r - a, 0.0) + min(r + a, 0.0)
            step = new - old
            if step * step > _TINY * stop * q:
                # Exact decrease of the objective along this coordinate.
                gained -= (fit[k] - wanted[k]) * step + 0.5 * step * step / q
                gained -= penalty[k] * (abs(new) - abs(old))
                b[k] = new
                if filled[k] != m:
                    _copy_row(W, active, filled[k], m, k, sub)
                    filled[k] = m
                for i in range(width):
                    fit[i] += step * sub[k, i]
        total += gained
    return total, n_passes


@njit(cache=True, nogil=True, fastmath=FAST)
def _fit_active(W, m, sub, room, places):
    """Copy the Gram matrix of the active variables to sub; fit = its product with b."""
    b, fit = room[_B], room[_FIT]
    active, filled = places[_ACTIVE], places[_FILLED]
    width = padded(m)
    for i in range(width):
        fit[i] = 0.0
    for k in range(m):
        _copy_row(W, active, 0, m, k, sub)
        filled[k] = m
    for k in range(m):
        x = b[k]
        for i in range(width):
            fit[i] += x * sub[k, i]


@njit(cache=True, nogil=True, fastmath=FAST)
def _solve_column(j, s, a, W, warm, sub, room, places, stop, easy):
    """Lasso of variable j on the others, started at the first ``warm`` active variables.

    On entry and on return ``places[_ACTIVE]`` are the active variables and ``room[_B]`` their
    coefficients. An ``easy`` column looks for variables to enter after its first lasso, which
    spares it one product with W; one whose lasso takes many passes looks before it. On return
    ``room[_G]`` is the fit W beta. Returns (decrease of the objective, its double at the solution,
    passes, active variables, buffer).
    """
    p = s.shape[0]
    b, done, fit, coef, g = room[_B], room[_DONE], room[_FIT], room[_COEF], room[_G]
    allowed, scale = room[_ALLOWED], room[_SCALE]
    active, filled, rows = places[_ACTIVE], places[_FILLED], places[_ROWS]
    allowed[j] = 0.0
    for k in range(warm):
        allowed[active[k]] = 0.0
        coef[k] = b[k]
    for i in range(p):
        g[i] = 0.0
    slack = np.sqrt(_ENTER * stop)
    easy &= warm > 0
    m = warm
    if not easy:
        add_rows(W, active, coef, warm, p, g)
        m = _violators(s, g, a, allowed, slack if warm > 0 else 0.0, active, warm)
    known, gained, passes = 0, 0.0, 0
    while m > known:
        sub = grow(sub, m)
        for k in range(known, m):
            i = active[k]
            allowed[i] = 0.0
            room[_WANTED, k] = s[i]
            room[_PENALTY, k] = a[i]
            room[_INVERSE, k] = scale[i] * scale[i]
            fit[k] = g[i]
            filled[k] = 0
            if k >= warm:
                b[k] = 0.0
            done[k] = b[k]
        for k in range(m, padded(m)):
            fit[k] = 0.0
        if easy and known == 0:
            _fit_active(W, m, sub, room, places)
            for k in range(m):
                done[k] = 0.0
        gain, count = _lasso(W, m, sub, room, places, stop)
        gained += gain
        passes += count
        known = m
        n_rows = 0
        for k in range(m):
            if b[k] != done[k]:
                rows[n_rows] = active[k]
                coef[n_rows] = b[k] - done[k]
                done[k] = b[k]
                n_rows += 1
        if n_rows == 0:
            break
        add_rows(W, rows, coef, n_rows, p, g)
        m = _violators(s, g, a, allowed, slack, active, m)
    value = 0.0
    for k in range(known):
        i = active[k]
        allowed[i] = scale[i]
        value += b[k] * (g[i] - 2.0 * s[i]) + 2.0 * a[i] * abs(b[k])
    allowed[j] = scale[j]
    return gained, value, passes, known, sub


@njit(cache=True, nogil=True)
def _work_arrays(W):
    """Return room, places and sub for columns of W."""
    p = W.shape[0]
    room = np.zeros((10, p + LANES))
    for i in range(p):
        room[_SCALE, i] = room[_ALLOWED, i] = 1.0 / np.sqrt(W[i, i])
    # Unsigned, so that compiled indexing does not look for negative indices.
    places = np.zeros((3, p + 1), np.uint32)
    return room, places, np.empty((2 * LANES, 2 * LANES))


@njit(cache=True, nogil=True)
def _replace_column(j, value, fit, W, theta):
    """Row and column j of W = fit, theta_j the inverse of the conditional variance.

    ``value`` is the double of the column's objective. Returns whether the variance is positive;
    nothing is replaced if it is not.
    """
    diagonal = W[j, j]
    # At the solution this is diagonal - beta'W beta; before, it errs on the safe side.
    free = diagonal + value
    if not free > _POSITIVE * diagonal:
        return False
    theta[j] = 1.0 / free
    fit[j] = diagonal
    # In two loops: together they are several times slower.
    for i in range(W.shape[0]):
        W[j, i] = fit[i]
    for i in range(W.shape[0]):
        W[i, j] = fit[i]
    return True


@njit(cache=True, nogil=True, fastmath=FAST)
def descend(S, alpha, W, B, theta, target, inner, inner_last, max_sweeps):
    """Block coordinate descent over the columns in random order, in place on W, B and theta.

    In their own order factor-like data would stall. Column j solves a lasso of variable j on the
    others with Gram matrix W, to ``inner`` relative to its conditional variance, and replaces row
    and column j of W by its fit. ``inner`` falls a hundredfold per sweep to ``inner_last``. The
    progress is sum_j 2 theta_j (latest decrease of lasso j), in units of the objective; after the
    first sweep, the descent stops as soon as that is at most ``target``.

    Returns (sweeps, progress, ok); ok is False when a conditional variance turned negative.
    """
    # A seed of its own makes results reproducible.
    order, state = np.arange(S.shape[0]), np.array([np.uint64(88172645463325252)])
    room, places, sub = _work_arrays(W)
    b, g, active = room[_B], room[_G], places[_ACTIVE]
    latest = np.zeros(S.shape[0])
    passes = 0.0
    for sweep in range(max_sweeps):
        shuffle(order, state)
        progress = latest.sum()
        for j in order:
            a = alpha[0] if alpha.shape[0] == 1 else alpha[j]
            beta = B[j]
            warm = _nonzeros(beta, active)
            for k in range(warm):
                b[k] = beta[active[k]]
            gained, value, count, m, sub = _solve_column(
                j, S[j], a, W, warm, sub, room, places, inner / theta[j], passes < _EASY
            )
            for k in range(m):
                beta[active[k]] = b[k]
            passes += 0.1 * (count - passes)
            if not _replace_column(j, value, g, W, theta):
                return sweep + 1, np.inf, False
            gain = 2.0 * gained * theta[j]
            progress += gain - latest[j]
            latest[j] = gain
            if sweep > 0 and progress <= target:
                return sweep + 1, progress, True
        if progress <= target:
            return sweep + 1, progress, True
        inner = max(0.01 * inner, inner_last)
    return max_sweeps, progress, True


@njit(cache=True, nogil=True)
def to_csr(B, theta):
    """Row pointers, columns and values of the symmetric precision of the regressions.

    An entry is kept where both regressions have it.
    """
    p = B.shape[0]
    listed = np.empty(p + 1, np.int64)
    indptr = np.zeros(p + 1, np.int64)
    room = p
    for i in range(p):
        for j in range(p):
            room += B[i, j] != 0.0
    columns, values = np.empty(room, np.int64), np.empty(room)
    at = 0
    for i in range(p):
        n = 0
        for j in range(p):
            listed[n] = j
            n += (B[i, j] != 0.0) | (j == i)
        for k in range(n):
            j = listed[k]
            columns[at] = j
            if j == i:
                values[at] = theta[i]
                at += 1
            elif B[j, i] != 0.0:
                values[at] = -0.5 * (B[i, j] * theta[i] + B[j, i] * theta[j])
                at += 1
        indptr[i + 1] = at
    return indptr, columns[:at], values[:at]


@njit(cache=True, nogil=True)
def fill_dual(S, alpha, diagonal, W, indptr, columns, values, on_support, out):
    """Fill out, which may be W, with a dual feasible point near W.

    W is clipped to [S - alpha, S + alpha]. With ``on_support`` it becomes S + alpha sign(T) on the
    support of the sparse precision T, where the solution's covariance lies.
    """
    p = S.shape[0]
    shared_row = alpha.shape[0] == 1
    for i in range(p):
        a = alpha[0] if shared_row else alpha[i]
        s, w, o = S[i], W[i], out[i]
        for j in range(p):
            o[j] = min(max(w[j], s[j] - a[j]), s[j] + a[j])
        if on_support:
            for k in range(indptr[i], indptr[i + 1]):
                j = columns[k]
                o[j] = s[j] + np.copysign(a[j], values[k])
        o[i] = diagonal[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def distance_from_inverse(indptr, columns, values, theta, W, out):
    """Fill out with T W - I for a sparse T with diagonal theta.

    Returns the sum of squares and the largest row sum of |T W - I|, in units in which T has
    diagonal one: T_ij / sqrt(theta_i theta_j).
    """
    p = W.shape[0]
    weight = np.sqrt(theta)
    square, radius = 0.0, 0.0
    for i in range(p):
        row = out[i]
        first, last = indptr[i], indptr[i + 1]
        for j in range(p):
            row[j] = 0.0
        row[i] = -1.0
        add_rows(W, columns[first:last], values[first:last], last - first, p, row)
        squares, total = 0.0, 0.0
        for j in range(p):
            x = weight[j] * row[j]
            squares += x * x
            total += abs(x)
        square += squares / theta[i]
        radius = max(radius, total / weight[i])
    return square, radius


@njit(cache=True, nogil=True)
def fill_hessian(T, rows, columns, out):
    """Lower triangle of out = 2 (T_ik T_jm + T_im T_jk) for the pairs (i, j) and (k, m)."""
    for a in range(len(rows)):
        left, right, row = T[rows[a]], T[columns[a]], out[a]
        for b in range(a + 1):
            k, m = rows[b], columns[b]
            row[b] = 2.0 * (left[k] * right[m] + left[m] * right[k])
