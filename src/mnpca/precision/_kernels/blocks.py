"""Compiled copies between a matrix and the blocks of its components."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def group(labels):
    """Group variables by label, without the groups of one: see ``Groups`` for what is returned."""
    p = len(labels)
    n_labels = labels.max() + 1
    sizes = np.zeros(n_labels, np.int64)
    for label in labels:
        sizes[label] += 1
    count, total = 0, 0
    numbers = np.full(n_labels, -1)
    bounds = np.zeros(n_labels + 1, np.int64)
    for label in range(n_labels):
        if sizes[label] > 1:
            numbers[label] = count
            count += 1
            total += sizes[label]
            bounds[count] = total
    order = np.empty(total, np.int64)
    number, place = np.empty(p, np.int64), np.zeros(p, np.int64)
    filled = np.zeros(count, np.int64)
    for i in range(p):
        c = numbers[labels[i]]
        number[i] = c
        if c >= 0:
            place[i] = filled[c]
            order[bounds[c] + filled[c]] = i
            filled[c] += 1
    return order, bounds[: count + 1], number, place


@njit(cache=True, nogil=True)
def take_block(matrix, rows, columns, out):
    """Fill out with matrix[rows][:, columns] for index arrays."""
    for r in range(len(rows)):
        source, row = matrix[rows[r]], out[r]
        for c in range(len(columns)):
            row[c] = source[columns[c]]


@njit(cache=True, nogil=True)
def join_rows(diagonal, order, bounds, number, starts, ends, columns, values):
    """Sorted compressed rows of a matrix from those of its components.

    Entries ``starts[k] : ends[k]`` of columns and values belong to variable ``order[k]``; columns
    are places in its component. A variable in none of them has diagonal 1 / diagonal_i. Returns
    values, columns, row pointers, and the sum of log(diagonal_i) over these.
    """
    p = len(diagonal)
    indptr = np.zeros(p + 1, np.int64)
    for k in range(len(order)):
        indptr[order[k] + 1] = ends[k] - starts[k]
    for i in range(p):
        indptr[i + 1] = indptr[i] + (indptr[i + 1] if number[i] >= 0 else 1)
    out_columns, out_values = np.empty(indptr[p], np.int64), np.empty(indptr[p])
    logs = 0.0
    for i in range(p):
        if number[i] < 0:
            out_columns[indptr[i]], out_values[indptr[i]] = i, 1.0 / diagonal[i]
            logs += np.log(diagonal[i])
    for k in range(len(order)):
        first = bounds[number[order[k]]]
        at = indptr[order[k]]
        # Variables of a component come in rising order, so the columns of each row stay sorted.
        for m in range(starts[k], ends[k]):
            out_columns[at] = order[first + columns[m]]
            out_values[at] = values[m]
            at += 1
    return out_values, out_columns, indptr, logs
