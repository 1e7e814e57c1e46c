"""Compiled loops over the rows of tall thin arrays (numba only).

Each works on the rows from `start` to `stop`, so that threads can share them out.
"""

from numba import njit

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def csr_times(indptr, indices, data, thin, start, stop, out):
    """Rows `start` to `stop` of a CSR matrix times a thin array."""
    for i in range(start, stop):
        target = out[i]
        target[:] = 0.0
        for u in range(indptr[i], indptr[i + 1]):
            source = thin[indices[u]]
            weight = data[u]
            for c in range(len(target)):
                target[c] += weight * source[c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def csr_transposed_times(indptr, indices, data, thin, start, stop, out):
    """Add the transpose of rows `start` to `stop` of a CSR matrix times a thin array to `out`."""
    for i in range(start, stop):
        source = thin[i]
        for u in range(indptr[i], indptr[i + 1]):
            target = out[indices[u]]
            weight = data[u]
            for c in range(len(source)):
                target[c] += weight * source[c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def rotate_small(items, blocks, thin, start, stop, out):
    """Rotate the components from `start` to `stop`: block' Z[items]. Blocks repeat in turn."""
    size = items.shape[1]
    for c in range(start, stop):
        block = blocks[c % len(blocks)]
        for a in range(size):
            target = out[items[c, a]]
            target[:] = 0.0
            for b in range(size):
                source = thin[items[c, b]]
                weight = block[b, a]
                for m in range(len(target)):
                    target[m] += weight * source[m]
