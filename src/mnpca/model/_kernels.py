"""Compiled loops over the missing cells of a matrix."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def links_of_cells(rows, cols, place, a_ptr, a_index, b_ptr, b_index):
    """Count, for every missing cell, the missing cells that ``B kron A`` links it with."""
    counts = np.zeros(len(rows) + 1, np.int64)
    for cell in range(len(rows)):
        found = 0
        for a in range(a_ptr[rows[cell]], a_ptr[rows[cell] + 1]):
            for b in range(b_ptr[cols[cell]], b_ptr[cols[cell] + 1]):
                if place[a_index[a], b_index[b]] >= 0:
                    found += 1
        counts[cell + 1] = counts[cell] + found
    return counts


@njit(cache=True, nogil=True)
def precision_of_cells(rows, cols, place, a_ptr, a_index, a_value, b_ptr, b_index, b_value, bounds):
    """Fill the compressed rows of ``B kron A`` restricted to the missing cells."""
    index = np.empty(bounds[-1], np.int32)
    value = np.empty(bounds[-1], np.float64)
    at = 0
    for cell in range(len(rows)):
        for a in range(a_ptr[rows[cell]], a_ptr[rows[cell] + 1]):
            for b in range(b_ptr[cols[cell]], b_ptr[cols[cell] + 1]):
                other = place[a_index[a], b_index[b]]
                if other >= 0:
                    index[at] = other
                    value[at] = a_value[a] * b_value[b]
                    at += 1
    return index, value
