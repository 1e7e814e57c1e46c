"""Log-likelihood of unseen rows."""

import math

import numpy as np
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
    """Log-density of each centered row under ``N(0, W C W' + s2 inv(B))``.

    A row outside the training matrix is independent of the training rows; its scores have the
    covariance C that the training scores showed, its noise the average row variance s2. With
    identity B this is the probabilistic PCA likelihood. By Woodbury, with C = F F' and the
    eigenvalues g and eigenvectors Q of F'W'BWF / s2,

        Sigma^-1 = (B - B W F Q diag(1 / (1 + g)) Q' F' W' B / s2) / s2,
        logdet Sigma = p log s2 - logdet B + sum log(1 + g),

    which stays accurate where components stand far above the noise.
    """
    weighted = col_precision @ loadings
    return row_density(
        np.einsum("ij,ij->i", rows @ col_precision, rows),
        rows @ weighted,
        loadings.T @ weighted,
        logdet(col_precision),
        rows.shape[1],
        score_covariance,
        noise_variance,
    )


def row_density(
    distance: FloatArray,
    projected: FloatArray,
    gram: FloatArray,
    log_determinant: float,
    n_cells: int,
    score_covariance: FloatArray,
    noise_variance: float,
) -> FloatArray:
    """Log-density of `row_log_likelihood` from products with the precision.

    Parameters
    ----------
    distance : array of shape (n,)
        ``y'By`` of each row.
    projected : array of shape (n, k)
        ``y'BW``.
    gram : array of shape (k, k)
        ``W'BW``.
    log_determinant : float
        ``logdet B``.
    n_cells : int
        Length of a row.
    score_covariance, noise_variance
        C and s2.
    """
    values, vectors = np.linalg.eigh(score_covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    gains, rotation = np.linalg.eigh(root.T @ gram @ root / noise_variance)
    gains = np.maximum(gains, 0.0)
    explained = (projected @ (root @ rotation)) ** 2 @ (1.0 / (1.0 + gains)) / noise_variance
    log_volume = (
        n_cells * math.log(2 * math.pi * noise_variance)
        - log_determinant
        + float(np.log1p(gains).sum())
    )
    densities: FloatArray = -0.5 * ((distance - explained) / noise_variance + log_volume)
    return densities
