"""The model of an incomplete matrix: chosen on a completed one, re-estimated, compared.

Models are compared by how well they predict observed cells that are hidden from them.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mnpca._typing import BoolArray, FloatArray
from mnpca.noise.estimate import Structure
from mnpca.selection.choose_model import ChosenModel, choose_model
from mnpca.solvers.missing.incomplete import Incomplete, Outcome
from mnpca.solvers.missing.rounds import ROUNDS_FROM_START, CompletedFit, MissingRounds
from mnpca.solvers.missing.start import column_fill, first_fit, first_guess
from mnpca.solvers.mnpca.fit import fit_with
from mnpca.solvers.mnpca.low_rank_step import largest_rank
from mnpca.solvers.mnpca.settings import NETWORKS_FIRST, UNEQUAL, Settings
from mnpca.solvers.progress import Progress, Report, State, silent

#: Parts that the observed cells are divided into, each hidden in turn ...
PARTS = 10
#: ... until this number of cells was hidden, with at most this number of parts.
ENOUGH_CELLS = 1000
MOST_PARTS = 3
#: Components that a rival begins with; those that turn out to be noise are left out.
RIVAL_RANK = 10


class Candidate(NamedTuple):
    """Rounds of expectation and what came out of them."""

    rounds: MissingRounds
    completed: CompletedFit

    @property
    def kind(self) -> tuple[tuple[Structure, Structure], int]:
        """Return the noise structures of rows and columns, and the rank of the signal."""
        return self.rounds.structures, len(self.completed.fit.singular_values)


def choose_incomplete_model(
    problem: Incomplete,
    n_components: int | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> tuple[ChosenModel, Outcome, list[dict[str, Any]] | None]:
    """Fit the model to a matrix with missing cells or covariates.

    Rank and noise structure are chosen, and the networks first estimated, on the matrix
    completed under row and column variances. Then rounds of expectation and maximization
    re-estimate signal, effects and noise from what was observed. Outliers that `robust` finds
    become missing cells of these rounds.

    Where rank or structure are to be chosen, this model has rivals: rounds that begin with
    variances alone and as many components as there may be, with networks and without. Whichever
    predicts hidden cells best is taken.

    Parameters are those of `choose_model`. Returned are the model, whose data are complete and
    without covariate effects; what it fills in; and, where there are rivals, the result of
    `predict_hidden` for this model and for them.
    """
    center, seed, prior = settings.center, settings.seed, settings.prior
    # The prior is learned for the model that wins. Columns without the effects of column covariates
    # depend on each other, which is nothing that the data show.
    settings = replace(settings, prior=None, complete=False)
    start_rank = n_components
    if start_rank is None:
        start_rank = len(fit_with(column_fill(problem), settings)[0].singular_values)
    guess = first_guess(problem, start_rank, center, seed)
    state: Any = resume
    of_choice = None if resume is None else resume["chosen"]
    in_rounds = resume is not None and "rounds" in resume

    def keep(progress: Progress, present: State) -> None:
        nonlocal state
        state = present
        report(replace(progress, state=lambda: present))

    def choosing(progress: Progress) -> None:
        nonlocal of_choice
        of_choice = progress.state()  # the checkpoints of the rounds hold the last one
        keep(progress, {"chosen": of_choice})

    chosen = choose_model(
        guess,
        n_components,
        settings,
        robust=robust,
        report=silent if in_rounds else choosing,
        resume=of_choice,
    )
    if chosen.outliers is not None:
        problem = replace(problem, missing=problem.missing | chosen.outliers)
    structures = chosen.structures
    rounds = MissingRounds(problem, chosen.data, chosen.shown, structures, center, seed)
    completed = rounds.run(
        lambda progress: keep(progress, progress.state()),
        lambda: {"chosen": of_choice},
        resume if in_rounds else None,
    )
    candidates = [Candidate(rounds, completed)]
    others = _rival_structures(settings, n_components, structures) if problem.missing.any() else []
    hidden = hidden_parts(problem.missing, seed) if others else []
    if hidden and all(part.any() for part in hidden):
        # Rivals are quick: a fit that was interrupted in one resumes right before them.
        for each in _rivals(problem, n_components, others, settings):
            rival = Candidate(each, each.run(lambda progress: keep(progress, state), dict, None))
            if rival.kind not in [other.kind for other in candidates]:
                candidates.append(rival)
    predictions, best = None, candidates[0]
    if len(candidates) > 1:
        predictions = predict_hidden(problem, candidates, hidden)
        best = candidates[int(np.argmin([each["error"] for each in predictions]))]
    final = best.rounds.learned(prior)
    model = replace(chosen, fit=final.fit, shown=final.fit, data=final.data)
    return model, final.outcome, predictions


def _rival_structures(
    settings: Settings, rank: int | None, chosen: tuple[Structure, Structure]
) -> list[tuple[Structure, Structure]]:
    """Return the noise structures of the rivals of a model with a chosen one."""
    asked = (settings.row_structure, settings.col_structure)
    graphs = settings.structures(NETWORKS_FIRST)
    if "auto" not in asked:
        return [graphs] if "graph" in asked and rank is None else []
    return [graphs, settings.structures(UNEQUAL)] if "graph" in chosen else [graphs]


def _rivals(
    problem: Incomplete,
    rank: int | None,
    structures: list[tuple[Structure, Structure]],
    settings: Settings,
) -> list[MissingRounds]:
    """Begin with variances, at the given rank or with what then stands above the noise."""
    center, seed = settings.center, settings.seed
    most = min(RIVAL_RANK, largest_rank(problem.matrix.shape)) if rank is None else rank
    start = first_fit(problem, most, center, seed)
    options: dict[str, Any] = {"n_rounds": ROUNDS_FROM_START, "prune": rank is None}
    return [MissingRounds(problem, *start, each, center, seed, **options) for each in structures]


def hidden_parts(missing: BoolArray, seed: int) -> list[BoolArray]:
    """Return parts of the observed cells to hide; none takes all that a row or column has."""
    observed = np.flatnonzero(~missing)
    shuffled = np.random.default_rng([seed, PARTS]).permutation(observed)
    parts = np.array_split(shuffled, PARTS)
    number = min(MOST_PARTS, int(np.ceil(ENOUGH_CELLS / max(len(parts[0]), 1))))
    masks = []
    for part in parts[:number]:
        hidden = np.zeros(missing.shape, bool)
        hidden.flat[part] = True
        left = ~(missing | hidden)
        hidden[~left.any(axis=1)] = False
        hidden[:, ~left.any(axis=0)] = False
        masks.append(hidden)
    return masks


def predict_hidden(
    problem: Incomplete, candidates: list[Candidate], parts: list[BoolArray]
) -> list[dict[str, Any]]:
    """Hide parts of the observed cells, re-estimate all models and compare their predictions.

    ``error`` is the root mean square error, in units of a column's standard deviation.
    """
    weights = np.broadcast_to(_inverse_variances(problem), problem.missing.shape)
    squares = np.zeros(len(candidates))
    for hidden in parts:
        truth, weight = problem.matrix[hidden], weights[hidden]
        for number, each in enumerate(candidates):
            predicted = each.rounds.predictions(each.completed, hidden)
            squares[number] += weight @ (predicted - truth) ** 2
    n_cells = int(np.sum(parts))
    errors = np.sqrt(squares / n_cells)
    return [
        {"noise": noise, "n_components": rank, "error": float(error), "n_cells": n_cells}
        for (noise, rank), error in zip((each.kind for each in candidates), errors, strict=True)
    ]


def _inverse_variances(problem: Incomplete) -> FloatArray:
    """Return one over the variance of every column's observed cells, zero for constant ones."""
    observed = ~problem.missing
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, problem.matrix, 0.0).sum(axis=0) / count
    variance = (np.where(observed, problem.matrix - mean, 0.0) ** 2).sum(axis=0) / count
    weights = np.zeros(len(variance))
    np.divide(1.0, variance, out=weights, where=variance > 0)
    return weights
