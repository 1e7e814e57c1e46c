"""Scores of rows, seen or unseen, by generalized least squares."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray


def gls_scores(
    rows: Any,
    col_precision: sp.csr_array | FloatArray,
    loadings: FloatArray,
    mean: FloatArray | None = None,
) -> FloatArray:
    """Return ``X = (Y - 1 mean') B W (W'BW)^-1``.

    It minimizes ``tr((Y - 1 mean' - XW') B (Y - 1 mean' - XW')')``; the row precision does not
    enter, so the same formula serves unseen rows. Components without any loading have scores 0.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, p)
        Rows Y; a sparse matrix stays sparse.
    col_precision : sparse or dense array of shape (p, p)
        Inverse noise covariance B among columns, or anything that multiplies like one.
    loadings : array of shape (p, k)
        Loadings W.
    mean : array of shape (p,), default=None
        Mean row, where the rows are not centered yet.
    """
    weighted = col_precision @ loadings
    if mean is None:
        projected = rows @ weighted
    elif sp.issparse(rows):
        projected = rows @ weighted - mean @ weighted
    else:  # the difference of the products would cancel where the mean is large
        projected = (rows - mean) @ weighted
    scores: FloatArray = projected @ np.linalg.pinv(loadings.T @ weighted, hermitian=True)
    return scores


def gls_transform(col_precision: sp.csr_array | FloatArray, loadings: FloatArray) -> FloatArray:
    """Return ``T = B W (W'BW)^-1``, so that the scores of centered rows are ``Y T``."""
    weighted = col_precision @ loadings
    transform: FloatArray = weighted @ np.linalg.pinv(loadings.T @ weighted, hermitian=True)
    return transform
