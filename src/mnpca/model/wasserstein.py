"""The Wasserstein objectives of the paper and their exact gradients.

With precisions A = Q'Q and B = R'R and a residual E (n x p), both objectives compare the whitened
residual Z = Q E R' with white noise, and depend on its singular values s alone:

    relaxed    sum(s^2) / (np)^(1/2) - 2 sum(s) / (np)^(1/4)
    original   sum(s^2)^2 / (np) - 2 sum(s)^2 / (np)^(1/2)

The paper puts a noise scale sigma before the second term. It is left out, because it changes
nothing but the meaning of the penalties: with A and B multiplied by sigma, the relaxed objective
is sigma^2 times the one above (for the original, by sigma^(1/2) and sigma^2).

Let g_i be the derivative with respect to s_i^2, and Z = U diag(s) V'. Then

    d/dA = E R' V diag(g) V' R E',        d/dB = E' Q' U diag(g) U' Q E.

Both objectives have g = a + b / s with numbers a and b, so that V diag(g) V' = a I + b (Z'Z)^(-1/2)
=: M. The part with b makes the polar factor U V' of Z. The smaller Gram matrix of Z therefore does
all that the paper does with singular value decompositions. In the factors,

    d/dQ = 2 Q d/dA = 2 Z M (E R')',      d/dR = 2 R d/dB = 2 M R E'AE.

The functions take arrays of any library; results live where the arguments do.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from mnpca.engines.arrays import Array, eigh, namespace


class Measure(NamedTuple):
    """Value of an objective, and its derivative ``constant + inverse / s_i`` in every s_i^2."""

    value: Array
    constant: Array
    inverse: Array


Discrepancy: TypeAlias = Callable[[Array, Array, int], Measure]
"""Takes sum(s^2), sum(s) and np."""


def relaxed(square: Array, total: Array, size: int) -> Measure:
    """Return ``sum(s^2)/(np)^(1/2) - 2 sum(s)/(np)^(1/4)`` with its derivatives.

    Each singular value does best at ``(np)^(1/4)``.
    """
    root = size**0.5
    return Measure(square / root - 2 * total / root**0.5, 1 / root, -1 / root**0.5)


def original(square: Array, total: Array, size: int) -> Measure:
    """Return ``sum(s^2)^2/(np) - 2 sum(s)^2/(np)^(1/2)`` with its derivatives."""
    root = size**0.5
    value = square * square / size - 2 * total * total / root
    return Measure(value, 2 * square / size, -2 * total / root)


DISCREPANCIES: dict[str, Discrepancy] = {"relaxed": relaxed, "original": original}


class Spectrum(NamedTuple):
    """Singular values and right singular vectors (columns) of the whitened residual."""

    singular_values: Array
    vectors: Array

    def measure(self, discrepancy: Discrepancy, size: int) -> tuple[float, Array]:
        """Return the objective and its derivatives with respect to the squared values."""
        xp = namespace(self.singular_values)
        values = self.singular_values
        measure = discrepancy(xp.sum(values * values), xp.sum(values), size)
        return float(measure.value), measure.constant + measure.inverse / values


def spectrum(gram: Array, part: slice) -> Spectrum:
    """Return that part of the spectrum of Z, in rising order; may overwrite its Gram matrix Z'Z.

    A low-rank signal takes k directions away. Where Z still holds the signal they are the last
    k of the spectrum, where it is the residual they are the first k (zero).
    """
    xp = namespace(gram)
    values, vectors = eigh(gram)
    # Squaring loses what is below the root of the precision; such directions count as that large.
    limits = xp.finfo(values.dtype)
    floor = limits.eps * max(float(values[-1]), float(np.finfo(np.float32).tiny))
    return Spectrum(xp.sqrt(xp.clip(values[part], floor, None)), vectors[:, part])


def tall_gradient(carried: Array, parts: Spectrum, slope: Array) -> Array:
    """Return the derivative in the precision of the longer side, here the rows: d/dA.

    `carried` is E R', or Y R' where `parts`, the spectrum of Z'Z = R E' A E R', leaves the signal's
    directions out; `slope` has the derivatives with respect to the squared singular values.
    """
    turned = carried @ parts.vectors
    return (turned * slope) @ turned.T


def wide_gradient(moved: Array, parts: Spectrum, slope: Array) -> Array:
    """Return the derivative in the precision of the shorter side, here the columns: d/dB.

    `moved` is E'A E R', or Y'A Y R' where `parts` leaves the signal's directions out.
    """
    # E'Q'U = E'AER'V diag(1/s), which needs neither Q nor U.
    turned = moved @ parts.vectors / parts.singular_values
    return (turned * slope) @ turned.T
