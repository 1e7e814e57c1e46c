"""Small compiled pieces that several kernels use."""

import numpy as np
from numba import njit, uint64

# Reassociation lets sums vectorize; the flags that would assume away NaN and infinity stay off.
FAST = {"reassoc", "contract", "nsz", "arcp"}
# Buffers are padded to whole vectors, which spares the compiled loops their scalar remainders.
LANES = 8


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
