"""The paper's algorithm: Adam steps on the factors Q and R of A = Q'Q and B = R'R.

Each round finds the signal of the current factors, then takes steps on Q and on R with the
residual held. No singular value decomposition and no automatic differentiation: the gradient is
``2 Q (dF/dA + alpha sign(A))``, and dF/dA comes from the smaller Gram matrix of Q E R'.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mnpca._typing import FloatArray
from mnpca.model.wasserstein import (
    Discrepancy,
    Spectrum,
    relaxed,
    spectrum,
    tall_gradient,
    wide_gradient,
)
from mnpca.solvers.progress import Progress, Report, State, silent
from mnpca.solvers.wasserstein.adam import Adam
from mnpca.solvers.wasserstein.pair import Matrices, Pair, WassersteinFit, each, exact_fit

# Steps on each factor in a round.
STEPS = 5
# Sizes of the data between which float32 and the fixed learning rate make sense.
SMALLEST, LARGEST = 1e-4, 1e4
# Rounds whose mean objective is compared with that of as many before: single ones jitter.
WINDOW = 10


def fit_gradient(
    data: FloatArray,
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

    The number of rounds is given. Adam with a constant rate jitters around the place where it
    ends, and long stretches of slow progress come before it, so no test ends the rounds early.

    Parameters
    ----------
    data : array of shape (n, p)
        Y, centred if it is to be.
    rank : int
        Number of components. Where they explain Y exactly, the precisions are identities.
    alpha : Pair of float
        Weights of |Q'Q|_1 and |R'R|_1.
    discrepancy : Discrepancy, default=relaxed
        Objective, one of `mnpca.model.wasserstein.DISCREPANCIES`.
    tol : float, default=1e-3
        Relative change between the mean objectives of the last ten rounds and of the ten before
        at which the fit counts as converged.
    max_iter : int, default=500
        Rounds, of five steps on each factor.
    report, resume
        See `mnpca.solvers.progress`.
    """
    size = float(np.sqrt(np.mean(data**2)))
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
        report(Progress("noise factors", len(history) - 1, value, descent.saver(history)))
    return WassersteinFit(descent.precision(), history, _settled(history, tol))


class Descent:
    """The factors, their optimisers and the steps on them.

    The work is done on the matrix or its transpose, whichever has no fewer rows than columns.

    Parameters
    ----------
    data, rank, alpha, discrepancy
        As for `fit_gradient`.
    """

    def __init__(
        self,
        data: FloatArray,
        rank: int,
        alpha: Pair[float],
        discrepancy: Discrepancy,
    ) -> None:
        self.flipped = data.shape[0] < data.shape[1]
        data = data.T if self.flipped else data
        self.data = np.ascontiguousarray(data, dtype=np.float32)
        self.rank = rank
        self.alpha = alpha.swapped() if self.flipped else alpha
        self.discrepancy = discrepancy
        self.factor: Matrices = each(lambda size: np.eye(size, dtype=np.float32), Pair(*data.shape))
        self.adam = each(Adam, self.factor)

    def round(self, residual: FloatArray) -> None:
        """Take steps on the factor of the rows of Y, then of its columns, then balance them."""
        steps = [self._tall_steps, self._wide_steps]
        for step in reversed(steps) if self.flipped else steps:
            step(residual)
        self._balance()

    def residual(self) -> tuple[FloatArray, float]:
        """Return E = Y - inv(Q) (Q Y R')_k inv(R)', and the objective there.

        With V_k the leading right singular vectors of Z = Q Y R', the truncated Z is
        ``Z V_k V_k'``, so E = Y - Y R' V_k V_k' inv(R)' needs k solves with R and none with Q.
        The other singular values of Z are those of the whitened residual.
        """
        q, r = self.factor
        carried = self.data @ r.T
        whitened = q @ carried
        parts = spectrum(whitened.T @ whitened, slice(None))
        noise, leading = parts.singular_values[: -self.rank], parts.vectors[:, -self.rank :]
        value, _ = self.discrepancy(noise, self.data.size)
        for factor, alpha in zip(self.factor, self.alpha, strict=True):
            value += alpha * float(np.abs(factor.T @ factor).sum(dtype=np.float64))
        back = np.linalg.solve(r, leading)
        return self.data - (carried @ leading) @ back.T, value

    def _tall_steps(self, residual: FloatArray) -> None:
        """Move the factor of the longer side; with the other held, E R' stays."""
        factor = self.factor.row
        carried = residual @ self.factor.col.T
        for _ in range(STEPS):
            whitened = factor @ carried
            parts, slope = self._noise(whitened.T @ whitened)
            self._move(0, tall_gradient(carried, parts, slope), factor.T @ factor)

    def _wide_steps(self, residual: FloatArray) -> None:
        """Move the factor of the shorter side; with the other held, E'AE stays."""
        factor = self.factor.col
        whitened = self.factor.row @ residual
        moment = whitened.T @ whitened
        for _ in range(STEPS):
            moved = moment @ factor.T
            parts, slope = self._noise(factor @ moved)
            self._move(1, wide_gradient(moved, parts, slope), factor.T @ factor)

    def _noise(self, gram: FloatArray) -> tuple[Spectrum, FloatArray]:
        """Return the spectrum of the whitened residual, which lacks k directions, and slopes."""
        parts = spectrum(gram, slice(self.rank, None))
        return parts, self.discrepancy(parts.singular_values, self.data.size)[1]

    def _move(self, side: int, gradient: FloatArray, precision: FloatArray) -> None:
        """Take one step against ``2 Q (dF/dA + alpha sign(A))``; overwrites its arguments."""
        np.sign(precision, out=precision)
        precision *= self.alpha[side]
        gradient += precision
        gradient *= 2
        self.adam[side].step(self.factor[side], self.factor[side] @ gradient)

    def _balance(self) -> None:
        """Bring the mean diagonals a, b of A and B together: Q becomes Q (a + b) / (2 a)."""
        rows, cols = self.factor.swapped() if self.flipped else self.factor
        a, b = (float(np.vdot(side, side)) / len(side) for side in (rows, cols))
        rows *= (a + b) / (2 * a)

    def precision(self) -> Pair[sp.csr_array]:
        """Return A = Q'Q and B = R'R of the matrix as it was given, positive definite."""
        sides = each(_definite, self.factor)
        return sides.swapped() if self.flipped else sides

    def saver(self, history: list[float]) -> Callable[[], State]:
        """Return a function that makes the state to resume from."""

        def state() -> dict[str, Any]:
            return {
                "factor": [factor.copy() for factor in self.factor],
                "adam": [adam.state() for adam in self.adam],
                "history": list(history),
            }

        return state

    def restore(self, state: State) -> None:
        """Take up the state of an earlier run."""
        self.factor = each(np.array, Pair(*state["factor"]))
        self.adam = each(Adam.restore, Pair(*state["adam"]))


def _definite(factor: FloatArray) -> sp.csr_array:
    """Return F'F in float64, plus what the rounding of F may have taken from its eigenvalues."""
    unit = float(np.finfo(factor.dtype).eps)
    factor = factor.astype(np.float64)
    precision = factor.T @ factor
    precision[np.diag_indices_from(precision)] += len(factor) * unit**2 * np.trace(precision)
    return sp.csr_array(precision)


def _settled(history: list[float], tol: float) -> bool:
    if len(history) < 2 * WINDOW:
        return False
    last, before = np.mean(history[-WINDOW:]), np.mean(history[-2 * WINDOW : -WINDOW])
    return bool(abs(before - last) <= tol * abs(last))
