"""The paper's algorithm: Adam steps on the factors Q and R of A = Q'Q and B = R'R.

Each round finds the signal of the current factors, then takes steps on Q and on R with the
residual held. No singular value decomposition and no automatic differentiation: the gradient is
``2 Q (dF/dA + alpha sign(A))``, and Q dF/dA comes from the smaller Gram matrix of Q E R'.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from mnpca.engines.arrays import Array, astype, diagonal_matrix, namespace, to_numpy
from mnpca.model.wasserstein import Discrepancy, Spectrum, relaxed, spectrum
from mnpca.solvers.progress import Progress, Report, State, pack, silent, unpack
from mnpca.solvers.wasserstein.inverse_root import SMALLEST_SHARE, gram, inverse_root, stretches
from mnpca.solvers.wasserstein.pair import Pair, WassersteinFit, exact_fit

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
# How far below a round's first spectrum the later ones may reach (see `_schedule`).
MARGIN = 0.25


@dataclass(eq=False)
class Factor:
    """Q or R, and what Adam knows of the gradients seen so far.

    ``m <- b1 m + (1 - b1) g``, ``v <- b2 v + (1 - b2) g^2``; the step is
    ``-rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)``.
    """

    matrix: Array
    first: Array
    second: Array
    count: int = 0

    @classmethod
    def identity(cls, ones: Array) -> "Factor":
        """Return a factor to begin with, for as many items as there are ones."""
        matrix = diagonal_matrix(ones)
        xp = namespace(matrix)
        return cls(matrix, xp.zeros_like(matrix), xp.zeros_like(matrix))

    def move(self, gradient: Array, alpha: float) -> None:
        """Take one step against ``2 (gradient + alpha Q sign(A))``; overwrites the gradient."""
        xp = namespace(gradient)
        b1, b2 = BETAS
        gradient += alpha * (self.matrix @ xp.sign(gram(self.matrix)))
        gradient *= 2
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
        self.matrix -= LEARNING_RATE / (1 - b1**self.count) * self.first / denominator

    def precision(self) -> Array:
        """Return Q'Q in float64, plus what rounding may have taken from its eigenvalues."""
        xp = namespace(self.matrix)
        unit = float(xp.finfo(self.matrix.dtype).eps)
        precision = gram(astype(self.matrix, "float64"))
        lost = precision.shape[0] * unit**2 * float(xp.linalg.trace(precision))
        precision = precision + diagonal_matrix(lost * xp.ones_like(precision[0, :]))
        return sp.csr_array(precision) if isinstance(precision, np.ndarray) else precision


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
        descent.factors = Pair(*unpack(list[Factor], resume["factors"], descent.data))
    residual, value = descent.residual()
    history = [value] if resume is None else list(resume["history"])
    while len(history) <= max_iter:
        descent.round(residual)
        residual, value = descent.residual()
        history.append(value)
        state = partial(pack, {"factors": list(descent.factors), "history": history})
        report(Progress("noise factors", len(history) - 1, value, state, max_iter))
    row, col = (factor.precision() for factor in descent.factors)
    precision = Pair(col, row) if descent.flipped else Pair(row, col)
    return WassersteinFit(precision, history, _settled(history, tol))


class Descent:
    """The factors and the steps on them.

    The work is done on the matrix or its transpose, whichever has no fewer rows than columns. In
    the notation of `mnpca.model.wasserstein`, a step needs ``M = a I + b (Z'Z)^(-1/2)``. Arrays
    of NumPy get it from eigenvectors; elsewhere it is made of products, for one decomposition in
    every round tells how many are needed.
    """

    def __init__(
        self, data: Array, rank: int, alpha: Pair[float], discrepancy: Discrepancy
    ) -> None:
        self.flipped = data.shape[0] < data.shape[1]
        self.data = astype(data.T if self.flipped else data, "float32")
        self.size = int(data.shape[0] * data.shape[1])
        self.rank = rank
        self.alpha = alpha.swapped() if self.flipped else alpha
        self.discrepancy = discrepancy
        ones = namespace(data).ones_like(self.data)
        self.factors = Pair(Factor.identity(ones[:, 0]), Factor.identity(ones[0, :]))
        self.schedule: list[float] | None = None

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
        q, r = (factor.matrix for factor in self.factors)
        xp = namespace(q)
        carried = self.data @ r.T
        parts = spectrum(gram(q @ carried), slice(None))
        noise = Spectrum(parts.singular_values[: -self.rank], parts.vectors[:, : -self.rank])
        leading = parts.vectors[:, -self.rank :]
        value, _ = noise.measure(self.discrepancy, self.size)
        for factor, alpha in zip((q, r), self.alpha, strict=True):
            value += alpha * float(xp.sum(xp.abs(gram(factor)), dtype=xp.float64))
        self.schedule = _schedule(noise.singular_values)
        back = xp.linalg.solve(r, leading)
        return self.data - (carried @ leading) @ back.T, value

    def _tall_steps(self, residual: Array) -> None:
        """Move the factor of the longer side; with the other held, E R' stays."""
        factor = self.factors.row
        carried = residual @ self.factors.col.matrix.T
        for _ in range(STEPS):
            whitened = factor.matrix @ carried
            factor.move((whitened @ self._slope(gram(whitened))) @ carried.T, self.alpha.row)

    def _wide_steps(self, residual: Array) -> None:
        """Move the factor of the shorter side; with the other held, E'AE stays."""
        factor = self.factors.col
        moment = gram(self.factors.row.matrix @ residual)
        for _ in range(STEPS):
            moved = factor.matrix @ moment
            factor.move(self._slope(moved @ factor.matrix.T) @ moved, self.alpha.col)

    def _slope(self, moment: Array) -> Array:
        """Return ``a I + b G^(-1/2)`` of the whitened residual, which lacks k directions."""
        xp = namespace(moment)
        if self.schedule is None:
            parts = spectrum(moment, slice(self.rank, None))
            _, slope = parts.measure(self.discrepancy, self.size)
            return (parts.vectors * slope) @ parts.vectors.T
        inverse = inverse_root(moment, self.schedule)
        square, total = xp.linalg.trace(moment), xp.sum(moment * inverse)
        _, constant, weight = self.discrepancy(square, total, self.size)
        return diagonal_matrix(constant + xp.zeros_like(moment[0, :])) + weight * inverse

    def _balance(self) -> None:
        """Bring the mean diagonals a, b of A and B together: Q becomes Q (a + b) / (2 a)."""
        rows, cols = self.factors.swapped() if self.flipped else self.factors
        a, b = (float(namespace(q).sum(q * q)) / q.shape[0] for q in (rows.matrix, cols.matrix))
        rows.matrix *= (a + b) / (2 * a)


def _schedule(singular_values: Array) -> list[float] | None:
    """Return the schedule of `inverse_root` for a round, None where eigenvectors serve better.

    They do on a processor, and where the spectrum is too wide for products. A round may move the
    lower end of the spectrum, hence the margin.
    """
    if isinstance(singular_values, np.ndarray):
        return None
    values = to_numpy(singular_values).astype(np.float64) ** 2
    share = MARGIN * values[0] / np.sum(values**4) ** 0.25
    return None if share < SMALLEST_SHARE else stretches(float(share))


def _settled(history: list[float], tol: float) -> bool:
    if len(history) < 2 * WINDOW:
        return False
    last, before = np.mean(history[-WINDOW:]), np.mean(history[-2 * WINDOW : -WINDOW])
    return bool(abs(before - last) <= tol * abs(last))
