"""Scores of rows, seen or unseen, by generalised least squares."""

import scipy.linalg
import scipy.sparse as sp

from mnpca._typing import FloatArray


def gls_scores(
    rows: FloatArray, col_precision: sp.csr_array | FloatArray, loadings: FloatArray
) -> FloatArray:
    """Return ``X = Y B W (W'BW)^-1``, the minimiser of ``tr((Y - XW') B (Y - XW')')``.

    The row precision does not enter, so the same formula serves unseen rows.

    Parameters
    ----------
    rows : array of shape (n, p)
        Centred rows Y.
    col_precision : sparse or dense array of shape (p, p)
        Inverse noise covariance B among columns.
    loadings : array of shape (p, k)
        Loadings W.
    """
    weighted = col_precision @ loadings
    scores: FloatArray = scipy.linalg.solve(
        loadings.T @ weighted, (rows @ weighted).T, assume_a="sym"
    ).T
    return scores
