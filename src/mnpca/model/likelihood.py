"""Log-likelihood of unseen rows."""

import math

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.model.sparse import logdet


def row_log_likelihood(
    rows: FloatArray,
    col_precision: sp.csr_array,
    loadings: FloatArray,
    score_covariance: FloatArray,
    noise_variance: float,
) -> FloatArray:
    """Log-density of each centred row under ``N(0, W C W' + s2 inv(B))``.

    A row outside the training matrix is independent of the training rows; its scores have the
    covariance C that the training scores showed, its noise the average row variance s2. With
    identity B this is the probabilistic PCA likelihood. By Woodbury, with H = W'BW and
    K = (I + C H / s2)^-1 C,

        Sigma^-1 = (B - B W K W' B / s2) / s2,
        logdet Sigma = p log s2 - logdet B + logdet(I + C H / s2).
    """
    p = rows.shape[1]
    weighted = col_precision @ loadings
    inflation = np.eye(loadings.shape[1]) + score_covariance @ (loadings.T @ weighted) / (
        noise_variance
    )
    shrunk = scipy.linalg.solve(inflation, score_covariance)
    projected = rows @ weighted
    distance = np.einsum("ij,ij->i", rows @ col_precision, rows)
    distance = distance - np.einsum("ij,ij->i", projected @ shrunk, projected) / noise_variance
    log_volume = (
        p * math.log(2 * math.pi * noise_variance)
        - logdet(col_precision)
        + float(np.linalg.slogdet(inflation)[1])
    )
    densities: FloatArray = -0.5 * (distance / noise_variance + log_volume)
    return densities
