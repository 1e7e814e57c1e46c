"""The paper's algorithm: Adam steps on the factors Q and R of A = Q'Q and B = R'R.

Each round finds the signal of the current factors, then takes steps on Q and on R with the
residual held. No singular value decomposition and no automatic differentiation: the gradient is
``2 Q (dF/dA + alpha sign(A))``, and Q dF/dA comes from the smaller Gram matrix of Q E R'.
"""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import Array, astype, diagonal_matrix, like, namespace, to_numpy
from mnpca.model.wasserstein import Discrepancy, Spectrum, relaxed, spectrum
from mnpca.solvers.progress import Progress, Report, State, silent
from mnpca.solvers.wasserstein.inverse_root import SMALLEST_SHARE, gram, inverse_root, stretches
from mnpca.solvers.wasserstein.pair import Pair, WassersteinFit, each, exact_fit

# Of Adam (Kingma and Ba 2015).
LEARNING_RATE = 1e-3
BETAS = (0.5, 0.9)
EPSILON = 1e-8
# Steps on each factor in a round.
STEPS = 5
# Sizes of the data between which float32 and the fixed learning rate make sense.
SMALLEST, LARGEST = 1e-4, 1e4
# Rounds whose mean objective is compared with that of as many before: single ones jitter.
WINDOW = 10
# How far below a round's first spectrum the later ones may reach (see `_stretches`).
MARGIN = 0.25


class Adam:
    """Moments of the gradients seen so far, and the step they give.

    ``m <- b1 m + (1 - b1) g``, ``v <- b2 v + (1 - b2) g^2``; the step is
    ``-rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)``.
    """

    def __init__(self, matrix: Array) -> None:
        xp = namespace(matrix)
        self.first = xp.zeros_like(matrix)
        self.second = xp.zeros_like(matrix)
        self.count = 0

    def step(self, matrix: Array, gradient: Array) -> None:
        """Move the matrix, in place; overwrites the gradient."""
        xp = namespace(matrix)
        b1, b2 = BETAS
        self.count += 1
        self.first *= b1
        self.first += (1 - b1) * gradient
        self.second *= b2
        gradient *= gradient
        gradient *= 1 - b2
        self.second += gradient
        denominator = xp.sqrt(self.second)
        denominator *= 1 / (1 - b2**self.count) ** 0.5
        denominator += EPSILON
        matrix -= LEARNING_RATE / (1 - b1**self.count) * self.first / denominator

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        first, second = (to_numpy(moment).copy() for moment in (self.first, self.second))
        return {"first": first, "second": second, "count": self.count}

    @classmethod
    def restore(cls, state: State, matrix: Array) -> "Adam":
        """Return the optimizer of the matrix that `state` was taken from."""
        adam = cls(matrix)
        adam.first += like(state["first"], matrix)
        adam.second += like(state["second"], matrix)
        adam.count = int(state["count"])
        return adam


def fit_gradient(
    data: Array,
    rank: int,
    alpha: Pair[float],
    *,
    discrepancy: Discrepancy = relaxed,
    tol: float = 1e-3,
    max_iter: int = 500,
    report: Report = silent,
    resume: State | None = None,
) -> WassersteinFit:
    """Run the paper's schedule from Q = R = I, in float32 as the paper's program does.

    There are `max_iter` rounds of five steps on each factor. Adam with a constant rate jitters
    around the place where it ends, and long stretches of slow progress come before it, so no test
    ends the rounds early. The fit counts as converged where the mean objectives of the last ten
    rounds and of the ten before differ by at most the share `tol`. Where the components explain Y
    exactly, the precisions are identities.
    """
    size = float(namespace(data).mean(data**2)) ** 0.5
    if not SMALLEST <= size <= LARGEST:
        raise ValueError(
            f'method="gradient" starts from noise of unit variance in float32, and the entries of '
            f"X are of size {size:.2g}. Divide X by {size:.2g} first."
        )
    exact = exact_fit(data, rank)
    if exact is not None:
        return exact
    descent = Descent(data, rank, alpha, discrepancy)
    if resume is not None:
        descent.restore(resume)
    residual, value = descent.residual()
    history = [value] if resume is None else list(resume["history"])
    while len(history) <= max_iter:
        descent.round(residual)
        residual, value = descent.residual()
        history.append(value)
        state = partial(descent.state, list(history))
        report(Progress("noise factors", len(history) - 1, value, state, max_iter))
    return WassersteinFit(descent.precision(), history, _settled(history, tol))


class Descent:
    """The factors, their optimizers and the steps on them.

    The work is done on the matrix or its transpose, whichever has no fewer rows than columns. In
    the notation of `mnpca.model.wasserstein`, a step needs ``M = a I + b (Z'Z)^(-1/2)``. Arrays
    of NumPy get it from eigenvectors; elsewhere it is made of products, for one decomposition in
    every round tells how many are needed.
    """

    def __init__(
        self,
        data: Array,
        rank: int,
        alpha: Pair[float],
        discrepancy: Discrepancy,
    ) -> None:
        xp = namespace(data)
        self.flipped = data.shape[0] < data.shape[1]
        data = data.T if self.flipped else data
        self.data = astype(data, "float32")
        self.rank = rank
        self.alpha = alpha.swapped() if self.flipped else alpha
        self.discrepancy = discrepancy
        self.factor: Pair[Array] = Pair(
            diagonal_matrix(xp.ones_like(self.data[:, 0])),
            diagonal_matrix(xp.ones_like(self.data[0, :])),
        )
        self.adam = each(Adam, self.factor)
        self.stretches: list[float] | None = None

    @property
    def size(self) -> int:
        """Return the number of entries np."""
        return int(self.data.shape[0] * self.data.shape[1])

    def round(self, residual: Array) -> None:
        """Take steps on the factor of the rows of Y, then of its columns, then balance them."""
        steps = [self._tall_steps, self._wide_steps]
        for step in reversed(steps) if self.flipped else steps:
            step(residual)
        self._balance()

    def residual(self) -> tuple[Array, float]:
        """Return E = Y - inv(Q) (Q Y R')_k inv(R)', and the objective there.

        With V_k the leading right singular vectors of Z = Q Y R', the truncated Z is
        ``Z V_k V_k'``, so E = Y - Y R' V_k V_k' inv(R)' needs k solves with R and none with Q.
        The other singular values of Z are those of the whitened residual.
        """
        q, r = self.factor
        xp = namespace(q)
        carried = self.data @ r.T
        whitened = q @ carried
        parts = spectrum(gram(whitened), slice(None))
        noise = Spectrum(parts.singular_values[: -self.rank], parts.vectors[:, : -self.rank])
        leading = parts.vectors[:, -self.rank :]
        value, _ = noise.measure(self.discrepancy, self.size)
        for factor, alpha in zip(self.factor, self.alpha, strict=True):
            value += alpha * float(xp.sum(xp.abs(gram(factor)), dtype=xp.float64))
        self.stretches = _stretches(noise.singular_values)
        back = xp.linalg.solve(r, leading)
        return self.data - (carried @ leading) @ back.T, value

    def _tall_steps(self, residual: Array) -> None:
        """Move the factor of the longer side; with the other held, E R' stays."""
        factor = self.factor.row
        carried = residual @ self.factor.col.T
        for _ in range(STEPS):
            whitened = factor @ carried
            slope = self._slope(gram(whitened))
            self._move(0, (whitened @ slope) @ carried.T)

    def _wide_steps(self, residual: Array) -> None:
        """Move the factor of the shorter side; with the other held, E'AE stays."""
        factor = self.factor.col
        whitened = self.factor.row @ residual
        moment = gram(whitened)
        for _ in range(STEPS):
            moved = factor @ moment
            slope = self._slope(moved @ factor.T)
            self._move(1, slope @ moved)

    def _slope(self, moment: Array) -> Array:
        """Return ``a I + b G^(-1/2)`` of the whitened residual, which lacks k directions."""
        xp = namespace(moment)
        if self.stretches is None:
            parts = spectrum(moment, slice(self.rank, None))
            _, slope = parts.measure(self.discrepancy, self.size)
            return (parts.vectors * slope) @ parts.vectors.T
        inverse = inverse_root(moment, self.stretches)
        square, total = xp.linalg.trace(moment), xp.sum(moment * inverse)
        _, constant, weight = self.discrepancy(square, total, self.size)
        return diagonal_matrix(constant + xp.zeros_like(moment[0, :])) + weight * inverse

    def _move(self, side: int, gradient: Array) -> None:
        """Take one step against ``2 (gradient + alpha Q sign(A))``; overwrites the gradient."""
        factor = self.factor[side]
        sign = namespace(factor).sign(gram(factor))
        gradient += self.alpha[side] * (factor @ sign)
        gradient *= 2
        self.adam[side].step(factor, gradient)

    def _balance(self) -> None:
        """Bring the mean diagonals a, b of A and B together: Q becomes Q (a + b) / (2 a)."""
        rows, cols = self.factor.swapped() if self.flipped else self.factor
        xp = namespace(rows)
        a, b = (float(xp.sum(side * side)) / side.shape[0] for side in (rows, cols))
        rows *= (a + b) / (2 * a)

    def precision(self) -> Pair[Array]:
        """Return A = Q'Q and B = R'R of the matrix as it was given, positive definite."""
        sides = each(_definite, self.factor)
        return sides.swapped() if self.flipped else sides

    def state(self, history: list[float]) -> State:
        """Return the state to resume from."""
        return {
            "factor": [to_numpy(factor).copy() for factor in self.factor],
            "adam": [adam.state() for adam in self.adam],
            "history": history,
        }

    def restore(self, state: State) -> None:
        """Take up the state of an earlier run."""
        for factor, stored in zip(self.factor, state["factor"], strict=True):
            factor[...] = like(stored, factor)
        self.adam = each(Adam.restore, Pair(*state["adam"]), self.factor)


def _stretches(singular_values: Array) -> list[float] | None:
    """Return the schedule of `inverse_root` for a round, None where eigenvectors serve better.

    They do on a processor, and where the spectrum is too wide for products. A round may move the
    lower end of the spectrum, hence the margin.
    """
    if isinstance(singular_values, np.ndarray):
        return None
    values = to_numpy(singular_values).astype(np.float64) ** 2
    share = MARGIN * values[0] / np.sum(values**4) ** 0.25
    return None if share < SMALLEST_SHARE else stretches(float(share))


def _definite(factor: Array) -> Array:
    """Return F'F in float64, plus what the rounding of F may have taken from its eigenvalues."""
    xp = namespace(factor)
    unit = float(xp.finfo(factor.dtype).eps)
    size = factor.shape[0]
    factor = astype(factor, "float64")
    precision = gram(factor)
    lost = size * unit**2 * float(xp.linalg.trace(precision))
    precision = precision + diagonal_matrix(lost * xp.ones_like(precision[0, :]))
    return sp.csr_array(precision) if isinstance(precision, np.ndarray) else precision


def _settled(history: list[float], tol: float) -> bool:
    if len(history) < 2 * WINDOW:
        return False
    last, before = np.mean(history[-WINDOW:]), np.mean(history[-2 * WINDOW : -WINDOW])
    return bool(abs(before - last) <= tol * abs(last))
