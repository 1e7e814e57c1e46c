"""Gram matrices, and their inverse square roots by matrix products alone.

An accelerator multiplies matrices a hundred times faster than it finds their eigenvectors. The
coupled Newton-Schulz iteration (Higham 2008, Functions of Matrices, section 6.7)

    H = (3 I - Z Y) / 2,   Y <- Y H,   Z <- H Z,   from Y = G / c, Z = I,

brings Y to (G/c)^(1/2) and Z to (G/c)^(-1/2). An eigenvalue x^2 of Z Y goes to f(x)^2 with
f(x) = x (3 - x^2) / 2: small ones grow by 1.5 at most in x. Where the eigenvalues of G/c are known
to lie in [l^2, 1], stretching by the factor that makes f equal at both ends of the interval
nearly doubles that.
"""

import math
from itertools import pairwise

import numpy as np

from mnpca.engines.arrays import Array, diagonal_matrix, namespace

#: Below this share of the largest eigenvalue the iteration loses itself in rounding (float32).
SMALLEST_SHARE = 1e-7
#: The iteration ends when the smallest eigenvalue has come this near to one.
ACCURACY = 1e-6
#: Gram matrices from this size on are computed by pieces, so many along each side.
LARGE_GRAM, GRAM_PIECES = 2000, 4


def gram(factor: Array) -> Array:
    """Return F'F; where the library does not see that it is symmetric, half of it is mirrored."""
    size = factor.shape[1]
    if isinstance(factor, np.ndarray) or size < LARGE_GRAM:
        return factor.T @ factor
    xp = namespace(factor)
    cuts = [size * piece // GRAM_PIECES for piece in range(GRAM_PIECES + 1)]
    parts = [factor[:, first:last] for first, last in pairwise(cuts)]
    upper = {
        (i, j): parts[i].T @ parts[j] for i in range(GRAM_PIECES) for j in range(i, GRAM_PIECES)
    }
    rows = [
        xp.concat([upper[i, j] if i <= j else upper[j, i].T for j in range(GRAM_PIECES)], axis=1)
        for i in range(GRAM_PIECES)
    ]
    return xp.concat(rows, axis=0)


def stretches(share: float) -> list[float]:
    """Return the factor for x of each step, for eigenvalues between `share` and one.

    With l the smallest x, f(t l) = f(t) at ``t^2 = 3 / (1 + l + l^2)``. In between f reaches its
    top value one, so the next interval is [f(t l), 1].
    """
    lowest, factors = math.sqrt(share), []
    while lowest < 1 - ACCURACY:
        stretch = math.sqrt(3.0 / (1.0 + lowest + lowest**2))
        factors.append(stretch)
        x = stretch * lowest
        lowest = x * (3.0 - x * x) / 2.0
    return factors


def largest_eigenvalue_bound(gram: Array) -> Array:
    """Return ``|G^2|_F^(1/2) = (sum of eigenvalue^4)^(1/4)``, at least the largest eigenvalue."""
    xp = namespace(gram)
    square = gram @ gram
    return xp.sqrt(xp.sqrt(xp.sum(square * square)))


def inverse_root(gram: Array, factors: list[float]) -> Array:
    """Return ``G^(-1/2)`` for a symmetric G >= 0, without a wait for the device.

    Directions in which G is zero, as a residual has them where a signal was taken off, get a large
    but bounded value: they take part in the products that grow, and in no others. The factors are
    those of `stretches`, for a lower bound on the nonzero eigenvalues as a share of
    `largest_eigenvalue_bound`.
    """
    xp = namespace(gram)
    bound = largest_eigenvalue_bound(gram)
    scale = 1.0 / bound
    root = gram * scale
    inverse = diagonal_matrix(xp.ones_like(gram[0, :]))
    three = 3.0 * inverse
    for stretch in factors:
        half = 0.5 * stretch * (three - (stretch * stretch) * (inverse @ root))
        root, inverse = root @ half, half @ inverse
    # Products of commuting symmetric matrices are symmetric but for rounding.
    return (inverse + inverse.T) * (0.5 * xp.sqrt(scale))
