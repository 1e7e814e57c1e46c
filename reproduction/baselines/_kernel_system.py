"""The linear system of the least-squares SVM, solved once per kernel for every regularization."""

import math

import numpy as np
import scipy.linalg

# Directions of the kernel below this share of its trace per row change no decision.
_NEGLIGIBLE = 1e-10


def squared_distances(left, right):
    """Squared Euclidean distances between the rows of two arrays."""
    gram = left @ right.T
    distance = (left**2).sum(1)[:, None] + (right**2).sum(1)[None, :] - 2 * gram
    return np.maximum(distance, 0.0)


def rbf_kernel(squared, width):
    """Return ``exp(-d^2 / (2 width^2))``."""
    return np.exp(squared / (-2.0 * width**2))


class KernelSystem:
    """``[[0, 1'], [1, K + I/g]] [b; a] = [0; y]`` for one kernel K and any g.

    With ``K = U L U'`` the inverse of ``H = K + I/g`` is ``g I - U diag(g - 1/(l + 1/g)) U'``, so
    the eigendecomposition serves every g. The border is eliminated through
    ``C = H^-1 - H^-1 1 1' H^-1 / (1' H^-1 1)``: then ``a = C y``, and the residual of rows F
    when they are left out of the fit is ``C_FF^-1 a_F`` (Cawley and Talbot 2004 for one row).

    Parameters
    ----------
    kernel : array of shape (n, n)
        Positive semi-definite kernel with unit diagonal.
    """

    def __init__(self, kernel):
        self.values, self.vectors = _spectrum(kernel)
        self._sums = self.vectors.sum(axis=0)

    def fit(self, regularization, targets):
        """Return dual coefficients (n x m) and biases (m) for the target columns (n x m)."""
        shrink, ones = self._inverse_parts(regularization)
        inverse_targets = self._apply(regularization, shrink, targets)
        bias = (ones @ targets) / ones.sum()
        return inverse_targets - ones[:, None] * bias, bias

    def leave_one_out(self, regularization, targets):
        """Return the decision values of every row when that row is left out."""
        shrink, ones = self._inverse_parts(regularization)
        diagonal = regularization - (self.vectors**2) @ shrink - ones**2 / ones.sum()
        dual, _ = self.fit(regularization, targets)
        return targets - dual / diagonal[:, None]

    def leave_folds_out(self, regularization, targets, folds):
        """Return the decision values of every row when its fold (an index array) is left out."""
        shrink, ones = self._inverse_parts(regularization)
        dual, _ = self.fit(regularization, targets)
        decisions = np.empty_like(dual)
        for fold in folds:
            vectors = self.vectors[fold]
            block = -(vectors * shrink) @ vectors.T - np.outer(ones[fold], ones[fold]) / ones.sum()
            block[np.diag_indices_from(block)] += regularization
            residual = scipy.linalg.solve(block, dual[fold], assume_a="pos")
            decisions[fold] = targets[fold] - residual
        return decisions

    def _inverse_parts(self, regularization):
        """Return the weights g - 1/(l + 1/g) of the eigenvectors and the vector H^-1 1."""
        shrink = regularization - 1.0 / (self.values + 1.0 / regularization)
        return shrink, regularization - self.vectors @ (shrink * self._sums)

    def _apply(self, regularization, shrink, targets):
        return regularization * targets - self.vectors @ (
            shrink[:, None] * (self.vectors.T @ targets)
        )


def held_out_decisions(kernel, regularization, targets, splits):
    """Decision values of held-out folds for one regularization and many splits.

    As `KernelSystem.leave_folds_out`, from the inverse of ``K + I/g`` itself: for a single g that
    costs a fraction of the eigendecomposition.

    Returns
    -------
    list of arrays of shape (n, m)
        One for each split, a list of index arrays.
    """
    system = kernel.copy()
    system[np.diag_indices_from(system)] += 1.0 / regularization
    factor, _ = scipy.linalg.lapack.dpotrf(system, lower=1, overwrite_a=1)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    ones = inverse.sum(axis=1)
    reduced = inverse - np.outer(ones, ones) / ones.sum()
    dual = reduced @ targets
    decisions = []
    for folds in splits:
        values = np.empty_like(dual)
        for fold in folds:
            block = reduced[np.ix_(fold, fold)]
            values[fold] = targets[fold] - scipy.linalg.solve(block, dual[fold], assume_a="pos")
        decisions.append(values)
    return decisions


def _spectrum(kernel):
    """Eigenvalues and eigenvectors of a kernel without its negligible directions."""
    n = len(kernel)
    factor = _pivoted_cholesky(kernel, max_rank=n // 3) if n > 500 else None
    if factor is None:
        values, vectors = scipy.linalg.eigh(kernel, driver="evd")
    else:
        # The Gram matrix of the thin factor has the kernel's nonzero eigenvalues.
        values, rotation = scipy.linalg.eigh(factor.T @ factor, driver="evd")
        kept = values > _NEGLIGIBLE * n
        values = values[kept]
        return values, factor @ (rotation[:, kept] / np.sqrt(values))
    kept = values > _NEGLIGIBLE
    return values[kept], vectors[:, kept]


def _pivoted_cholesky(kernel, max_rank):
    """Return L with ``L L'`` equal to the kernel up to a negligible trace, or None.

    None says that more than `max_rank` columns are needed: the kernel is not of low rank.
    """
    n = len(kernel)
    left = np.diag(kernel).copy()
    factor = np.empty((max_rank, n))
    for step in range(max_rank):
        pivot = int(np.argmax(left))
        if left[pivot] <= _NEGLIGIBLE:
            return factor[:step].T
        row = kernel[pivot] - factor[:step, pivot] @ factor[:step]
        factor[step] = row / math.sqrt(left[pivot])
        left = np.maximum(left - factor[step] ** 2, 0.0)
        left[pivot] = 0.0
    return None
