"""The relaxed Wasserstein objective as a function of the two precisions alone."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from mnpca.engines.arrays import Array, cholesky, inverse, logdet, namespace
from mnpca.model.wasserstein import Spectrum, relaxed, spectrum, tall_gradient, wide_gradient
from mnpca.solvers.wasserstein.pair import Matrices, Pair, each


class Point(NamedTuple):
    """Two precisions, the objective there, and what its gradient needs."""

    precision: Matrices
    value: float
    factor: Matrices
    carried: Array
    weighted: Array
    parts: Spectrum
    slope: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """What is minimized over A and B, for a matrix with at least as many rows as columns.

    The objective of `mnpca.model.wasserstein.relaxed` for the residual of the best signal, plus

        alpha_A |A|_1 + alpha_B |B|_1 - barrier_A logdet A - barrier_B logdet B.

    The barrier is small. Without it the minimum may be singular: with many more rows than columns
    a row whose residual is small does best with precision zero.

    Attributes
    ----------
    data : array of shape (n, p)
        Y.
    rank : int
        Number of components k.
    alpha : Pair of float
        Weights of |A|_1 and |B|_1.
    barrier : Pair of float
        Weights of -logdet A and -logdet B.
    """

    data: Array
    rank: int
    alpha: Pair[float]
    barrier: Pair[float]

    def at(self, precision: Matrices) -> Point | None:
        """Return the objective at A and B, or None where one is not positive definite.

        The best signal for A and B is made of the k largest terms of Q Y R'; the rest is the
        residual's spectrum. Of all signals of rank k it makes both norms of the residual
        smallest, so the gradient needs no term for its change with A and B.
        """
        factor: Pair[Any] = each(cholesky, precision)
        if factor.row is None or factor.col is None:
            return None
        carried = self.data @ factor.col
        weighted = precision.row @ carried
        parts = spectrum(carried.T @ weighted, slice(0, self.data.shape[1] - self.rank))
        value, slope = parts.measure(relaxed, self.data.shape[0] * self.data.shape[1])
        value += sum(each(_restraint, precision, factor, self.alpha, self.barrier))
        return Point(precision, value, factor, carried, weighted, parts, slope)

    def gradient(self, point: Point) -> Matrices:
        """Return the derivatives of all but the penalty."""
        row = tall_gradient(point.carried, point.parts, point.slope)
        col = wide_gradient(self.data.T @ point.weighted, point.parts, point.slope)
        return each(_with_barrier, Pair(row, col), point.factor, self.barrier)


def _with_barrier(gradient: Array, factor: Array, barrier: float) -> Array:
    """Add the barrier's derivative; symmetric to the bit, so that (i, j) and (j, i) stay equal."""
    gradient = gradient - barrier * inverse(factor)
    return (gradient + gradient.T) / 2


def _restraint(precision: Array, factor: Array, alpha: float, barrier: float) -> float:
    """Return penalty and barrier of one side."""
    xp = namespace(precision)
    return alpha * float(xp.sum(xp.abs(precision))) - barrier * logdet(factor)
