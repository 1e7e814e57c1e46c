"""Which of two models of a matrix with holes predicts observed cells better that both miss."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mnpca._typing import BoolArray, FloatArray
from mnpca.solvers.missing.flagship import CompletedFit, FlagshipRounds
from mnpca.solvers.missing.incomplete import Incomplete

#: So many parts of the observed cells, each hidden in turn ...
PARTS = 10
#: ... until so many cells were hidden, but no more parts than this.
ENOUGH_CELLS = 2000
MOST_PARTS = 4


class Candidate(NamedTuple):
    """Rounds of expectation and what came out of them."""

    rounds: FlagshipRounds
    completed: CompletedFit


class Prediction(NamedTuple):
    """How well two models predict the same hidden cells.

    Attributes
    ----------
    errors : tuple of float
        Root mean square error of each, in units of a column's standard deviation.
    gain : float
        How much smaller the mean square error of the second is.
    standard_error : float
        Of the gain.
    n_cells : int
        How many cells were hidden.
    """

    errors: tuple[float, float]
    gain: float
    standard_error: float
    n_cells: int

    @property
    def second_is_better(self) -> bool:
        """Tell whether the second predicts better."""
        return self.gain > 0.0


def compare_predictions(
    problem: Incomplete, first: Candidate, second: Candidate, seed: int
) -> Prediction:
    """Hide tenths of the observed cells, re-estimate both models and compare their predictions.

    Parameters
    ----------
    problem : Incomplete
        The matrix that both were fitted to.
    first, second : Candidate
        The fits.
    seed : int
        Of the parts.
    """
    weights = _inverse_variances(problem)
    squares: list[list[FloatArray]] = [[], []]
    for hidden in _parts(problem.missing, seed):
        truth = problem.matrix[hidden]
        weight = np.broadcast_to(weights, hidden.shape)[hidden]
        for errors, candidate in zip(squares, (first, second), strict=True):
            difference = candidate.rounds.predictions(candidate.completed, hidden) - truth
            errors.append(weight * difference**2)
    one, other = (np.concatenate(errors) for errors in squares)
    gains = one - other
    return Prediction(
        errors=(float(np.sqrt(one.mean())), float(np.sqrt(other.mean()))),
        gain=float(gains.mean()),
        standard_error=float(gains.std() / np.sqrt(len(gains))),
        n_cells=len(gains),
    )


def can_be_hidden(missing: BoolArray) -> bool:
    """Tell whether every part has cells that can be hidden: a few of them do not tell anything."""
    return all(hidden.any() for hidden in _parts(missing, 0))


def _parts(missing: BoolArray, seed: int) -> Iterator[BoolArray]:
    """Yield parts of the observed cells; none takes all that a row or column has."""
    observed = np.flatnonzero(~missing)
    shuffled = np.random.default_rng([seed, PARTS]).permutation(observed)
    parts = np.array_split(shuffled, PARTS)
    number = min(MOST_PARTS, int(np.ceil(ENOUGH_CELLS / max(len(parts[0]), 1))))
    for part in parts[:number]:
        hidden = np.zeros(missing.shape, bool)
        hidden.flat[part] = True
        left = ~(missing | hidden)
        hidden[~left.any(axis=1)] = False
        hidden[:, ~left.any(axis=0)] = False
        yield hidden


def _inverse_variances(problem: Incomplete) -> FloatArray:
    """Return one over the variance of every column's observed cells, zero for constant ones."""
    observed = ~problem.missing
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, problem.matrix, 0.0).sum(axis=0) / count
    variance = (np.where(observed, problem.matrix - mean, 0.0) ** 2).sum(axis=0) / count
    weights = np.zeros(len(variance))
    np.divide(1.0, variance, out=weights, where=variance > 0)
    return weights
