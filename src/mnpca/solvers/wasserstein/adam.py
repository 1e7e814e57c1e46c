"""The Adam optimizer (Kingma and Ba 2015) for one matrix."""

from typing import Any

from mnpca.engines.arrays import Array, like, namespace, to_numpy
from mnpca.solvers.progress import State

LEARNING_RATE = 1e-3
BETAS = (0.5, 0.9)
EPSILON = 1e-8


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
        moments = {"first": self.first, "second": self.second}
        return {name: to_numpy(moment).copy() for name, moment in moments.items()} | {
            "count": self.count
        }

    @classmethod
    def restore(cls, state: State, matrix: Array) -> "Adam":
        """Return the optimizer of the matrix that `state` was taken from."""
        adam = cls(matrix)
        adam.first += like(state["first"], matrix)
        adam.second += like(state["second"], matrix)
        adam.count = int(state["count"])
        return adam
