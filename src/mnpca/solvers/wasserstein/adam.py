"""The Adam optimiser (Kingma and Ba 2015) for one matrix."""

from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.solvers.progress import State

LEARNING_RATE = 1e-3
BETAS = (0.5, 0.9)
EPSILON = 1e-8


class Adam:
    """Moments of the gradients seen so far, and the step they give.

    ``m <- b1 m + (1 - b1) g``, ``v <- b2 v + (1 - b2) g^2``; the step is
    ``-rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)``.
    """

    def __init__(self, like: FloatArray) -> None:
        self.first = np.zeros_like(like)
        self.second = np.zeros_like(like)
        self.count = 0

    def step(self, matrix: FloatArray, gradient: FloatArray) -> None:
        """Move the matrix, in place."""
        b1, b2 = BETAS
        self.count += 1
        self.first *= b1
        self.first += (1 - b1) * gradient
        self.second *= b2
        np.square(gradient, out=gradient)
        gradient *= 1 - b2
        self.second += gradient
        denominator = np.sqrt(self.second, out=gradient)
        denominator *= 1 / (1 - b2**self.count) ** 0.5
        denominator += EPSILON
        matrix -= LEARNING_RATE / (1 - b1**self.count) * self.first / denominator

    def state(self) -> dict[str, Any]:
        """Return all that `restore` needs."""
        return {"first": self.first.copy(), "second": self.second.copy(), "count": self.count}

    @classmethod
    def restore(cls, state: State) -> "Adam":
        """Return the optimiser that `state` was taken from."""
        adam = cls(state["first"])
        adam.first = np.array(state["first"])
        adam.second = np.array(state["second"])
        adam.count = int(state["count"])
        return adam
