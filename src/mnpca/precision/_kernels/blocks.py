"""Compiled copies between a matrix and the blocks of its components."""

from numba import njit


@njit(cache=True, nogil=True)
def take_block(matrix, rows, columns, out):
    """Fill out with matrix[rows][:, columns] for index arrays."""
    for r in range(len(rows)):
        source, row = matrix[rows[r]], out[r]
        for c in range(len(columns)):
            row[c] = source[columns[c]]


@njit(cache=True, nogil=True)
def put_rows(indptr, columns, values, index, out_indptr, out_columns, out_values):
    """Write the compressed rows of a component, with its variables' numbers, to those of all."""
    for r in range(len(index)):
        at = out_indptr[index[r]]
        for k in range(indptr[r], indptr[r + 1]):
            out_columns[at] = index[columns[k]]
            out_values[at] = values[k]
            at += 1
