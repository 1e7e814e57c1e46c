"""How well models of a matrix with holes predict observed cells that they are not shown."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mnpca._typing import BoolArray, FloatArray
from mnpca.noise.estimate import Structure
from mnpca.solvers.missing.incomplete import Incomplete
from mnpca.solvers.missing.rounds import CompletedFit, MissingRounds

#: So many parts of the observed cells, each hidden in turn ...
PARTS = 10
#: ... until so many cells were hidden, but no more parts than this.
ENOUGH_CELLS = 1000
MOST_PARTS = 3


class Candidate(NamedTuple):
    """Rounds of expectation and what came out of them."""

    rounds: MissingRounds
    completed: CompletedFit

    @property
    def n_components(self) -> int:
        """Return the rank of the signal."""
        return len(self.completed.fit.singular_values)


class Prediction(NamedTuple):
    """How well one of several models predicts the same hidden cells.

    Attributes
    ----------
    noise : pair of {"identity", "diagonal", "graph"}
        Structure of its row noise and of its column noise.
    n_components : int
        Of its signal.
    error : float
        Root mean square error, in units of a column's standard deviation.
    n_cells : int
        How many cells were hidden.
    """

    noise: tuple[Structure, Structure]
    n_components: int
    error: float
    n_cells: int


def predict_hidden(problem: Incomplete, candidates: list[Candidate], seed: int) -> list[Prediction]:
    """Hide tenths of the observed cells, re-estimate all models and compare their predictions.

    Parameters
    ----------
    problem : Incomplete
        The matrix that they were fitted to.
    candidates : list of Candidate
        The fits.
    seed : int
        Of the parts.
    """
    weights = _inverse_variances(problem)
    squares = np.zeros(len(candidates))
    n_cells = 0
    for hidden in _parts(problem.missing, seed):
        truth = problem.matrix[hidden]
        weight = np.broadcast_to(weights, hidden.shape)[hidden]
        n_cells += len(truth)
        for number, each in enumerate(candidates):
            predicted = each.rounds.predictions(each.completed, hidden)
            squares[number] += weight @ (predicted - truth) ** 2
    errors = np.sqrt(squares / n_cells)
    return [
        Prediction(each.rounds.structures, each.n_components, float(error), n_cells)
        for each, error in zip(candidates, errors, strict=True)
    ]


def can_be_hidden(missing: BoolArray, seed: int) -> bool:
    """Tell whether every part has cells that can be hidden: a few of them do not tell anything."""
    return all(hidden.any() for hidden in _parts(missing, seed))


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
