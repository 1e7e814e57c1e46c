"""The Wasserstein objectives of the paper and their exact gradients.

With precisions A = Q'Q and B = R'R and a residual E (n x p), both objectives compare the whitened
residual Z = Q E R' with white noise, and see nothing of it but its singular values s:

    relaxed    sum(s^2) / (np)^(1/2) - 2 sum(s) / (np)^(1/4)
    original   sum(s^2)^2 / (np) - 2 sum(s)^2 / (np)^(1/2)

The paper puts a noise scale sigma before the second term. It is left out, because it changes
nothing but the meaning of the penalties: with A and B multiplied by sigma, the relaxed objective
is sigma^2 times the one above (for the original, by sigma^(1/2) and sigma^2).

Let g_i be the derivative with respect to s_i^2, and Z = U diag(s) V'. Then

    d/dA = E R' V diag(g) V' R E',        d/dB = E' Q' U diag(g) U' Q E.

The part of g that stems from sum(s), -1/s up to a factor, makes the polar factor U V' of Z:
Q E R' V diag(1/s) V' = U V'. The eigenvectors of the smaller Gram matrix of Z therefore do all
that the paper does with singular value decompositions. In the factors, d/dQ = 2 Q d/dA.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.linalg

from mnpca._typing import FloatArray

Discrepancy: TypeAlias = Callable[[FloatArray, int], tuple[float, FloatArray]]
"""Takes the singular values s and np; gives the value and its derivatives in s^2."""


def relaxed(singular_values: FloatArray, size: int) -> tuple[float, FloatArray]:
    """Return ``sum(s^2)/(np)^(1/2) - 2 sum(s)/(np)^(1/4)`` and its derivatives in s^2.

    Each singular value does best at ``(np)^(1/4)``.
    """
    root = size**0.5
    total = float(singular_values.sum())
    value = float(np.vdot(singular_values, singular_values)) / root - 2 * total / root**0.5
    return value, 1 / root - 1 / (root**0.5 * singular_values)


def original(singular_values: FloatArray, size: int) -> tuple[float, FloatArray]:
    """Return ``sum(s^2)^2/(np) - 2 sum(s)^2/(np)^(1/2)`` and its derivatives in s^2."""
    root = size**0.5
    total = float(singular_values.sum())
    square = float(np.vdot(singular_values, singular_values))
    value = square**2 / size - 2 * total**2 / root
    return value, 2 * square / size - 2 * total / (root * singular_values)


DISCREPANCIES: dict[str, Discrepancy] = {"relaxed": relaxed, "original": original}


class Spectrum(NamedTuple):
    """Singular values and right singular vectors (columns) of the whitened residual."""

    singular_values: FloatArray
    vectors: FloatArray


def spectrum(gram: FloatArray, part: slice) -> Spectrum:
    """Return that part of the spectrum of Z, in rising order; overwrites its Gram matrix Z'Z.

    A low-rank signal takes k directions away. Where Z still holds the signal they are the last
    k of the spectrum, where it is the residual they are the first k (zero).
    """
    values, vectors = scipy.linalg.eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    # Squaring loses what is below the root of the precision; such directions count as that large.
    floor = np.finfo(values.dtype).eps * max(values[-1], np.finfo(values.dtype).tiny)
    return Spectrum(np.sqrt(np.maximum(values[part], floor)), vectors[:, part])


def tall_gradient(carried: FloatArray, parts: Spectrum, slope: FloatArray) -> FloatArray:
    """Return the derivative in the precision of the longer side, here the rows: d/dA.

    Parameters
    ----------
    carried : array of shape (n, p)
        E R', or Y R' where `parts` leaves the signal's directions out.
    parts : Spectrum
        Of Z'Z = R E' A E R'.
    slope : array
        Derivatives of the discrepancy with respect to the squared singular values.
    """
    turned = carried @ parts.vectors
    gradient: FloatArray = (turned * slope) @ turned.T
    return gradient


def wide_gradient(moved: FloatArray, parts: Spectrum, slope: FloatArray) -> FloatArray:
    """Return the derivative in the precision of the shorter side, here the columns: d/dB.

    Parameters
    ----------
    moved : array of shape (p, p)
        E'A E R', or Y'A Y R' where `parts` leaves the signal's directions out.
    parts, slope
        As for `tall_gradient`.
    """
    # E'Q'U = E'AER'V diag(1/s), which needs neither Q nor U.
    turned = moved @ parts.vectors / parts.singular_values
    gradient: FloatArray = (turned * slope) @ turned.T
    return gradient
