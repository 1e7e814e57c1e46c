"""The model of an incomplete matrix: chosen on a completed one, re-estimated, compared.

Models are compared by how well they predict observed cells that they are not shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from mnpca.solvers.mnpca.priors import PriorChoice
from mnpca.solvers.mnpca.settings import NETWORKS_FIRST, UNEQUAL, Settings
from mnpca.solvers.progress import Progress, Report, State, silent

#: So many parts of the observed cells, each hidden in turn ...
PARTS = 10
#: ... until so many cells were hidden, but no more parts than this.
ENOUGH_CELLS = 1000
MOST_PARTS = 3
#: Components that a rival begins with; those that turn out to be noise are left out.
RIVAL_RANK = 10


class Candidate(NamedTuple):
    """Rounds of expectation and what came out of them."""

    rounds: MissingRounds
    completed: CompletedFit

    @property
    def n_components(self) -> int:
        """Return the rank of the signal."""
        return len(self.completed.fit.singular_values)


class Prediction(NamedTuple):
    """How well a model predicts hidden cells: root mean square error, in column deviations."""

    noise: tuple[Structure, Structure]
    n_components: int
    error: float
    n_cells: int


def predict_hidden(problem: Incomplete, candidates: list[Candidate], seed: int) -> list[Prediction]:
    """Hide tenths of the observed cells, re-estimate all models and compare their predictions."""
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
    """Whether every part has cells that can be hidden."""
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


@dataclass(frozen=True)
class IncompleteModel:
    """A chosen model, whose data are complete and without covariate effects, and what it fills in.

    `predictions` has first the model that was chosen as for complete data, then its rivals; it is
    None where there were none.
    """

    chosen: ChosenModel
    outcome: Outcome
    predictions: list[Prediction] | None


def choose_incomplete_model(
    problem: Incomplete,
    n_components: int | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> IncompleteModel:
    """Fit the model to a matrix with missing cells or covariates.

    Rank and noise structure are chosen, and the networks first estimated, on the matrix
    completed under row and column variances. Then rounds of expectation and maximization
    re-estimate signal, effects and noise from what was observed. Outliers that `robust` finds
    become missing cells of these rounds.

    Where rank or structure are to be chosen, this model has rivals: rounds that begin with
    variances alone and as many components as there may be, with networks and without. Whichever
    predicts hidden cells best is taken.

    Parameters are those of `choose_model`.
    """
    rank, prior = n_components, settings.prior
    # The prior is learned for the model that wins. Columns without the effects of column covariates
    # depend on each other, which is nothing that the data show.
    settings = replace(settings, prior=None, complete=False)
    start_rank = rank
    if start_rank is None:
        start_rank = len(fit_with(column_fill(problem), settings)[0].singular_values)
    guess = first_guess(problem, start_rank, settings.center, settings.seed)
    chosen_state = None if resume is None else resume["chosen"]
    in_rounds = resume is not None and "rounds" in resume

    def tell(progress: Progress) -> None:
        nonlocal chosen_state
        chosen_state = progress.state()  # the rounds' checkpoints hold the last one
        report(replace(progress, state=lambda: {"chosen": chosen_state}))

    chosen = choose_model(
        guess,
        n_components,
        settings,
        robust=robust,
        report=silent if in_rounds else tell,
        resume=chosen_state,
    )
    has_missing = bool(problem.missing.any())
    if chosen.outliers is not None:
        problem = replace(problem, missing=problem.missing | chosen.outliers)
    final, center, seed = chosen.structures, settings.center, settings.seed
    rounds = MissingRounds(problem, chosen.data, chosen.shown, final, center, seed)
    rounds_state = resume if in_rounds else None

    def tell_round(progress: Progress) -> None:
        nonlocal rounds_state
        rounds_state = progress.state()
        report(replace(progress, state=lambda: rounds_state))

    completed = rounds.run(tell_round, lambda: {"chosen": chosen_state}, rounds_state)
    candidates = [Candidate(rounds, completed)]
    allowed = _rival_structures(settings, rank, final) if has_missing else []
    if allowed and can_be_hidden(problem.missing, settings.seed):
        # Rivals are quick: a fit that was interrupted in one resumes right before them.
        candidates += _rivals(
            problem,
            rank,
            allowed,
            settings,
            lambda each: report(replace(each, state=lambda: rounds_state or {})),
        )
    return _best_of(problem, chosen, _different(candidates), settings.seed, prior)


def _rival_structures(
    settings: Settings, rank: int | None, final: tuple[Structure, Structure]
) -> list[tuple[Structure, Structure]]:
    """Return the noise structures of the rivals of a model whose noise is `final`."""
    asked = (settings.row_structure, settings.col_structure)
    graphs = settings.structures(NETWORKS_FIRST)
    if "auto" not in asked:
        return [graphs] if "graph" in asked and rank is None else []
    return [graphs, settings.structures(UNEQUAL)] if "graph" in final else [graphs]


def _rivals(
    problem: Incomplete,
    rank: int | None,
    structures: list[tuple[Structure, Structure]],
    settings: Settings,
    report: Report,
) -> list[Candidate]:
    """Fit from variances, at the given rank or with what then stands above the noise."""
    most = min(RIVAL_RANK, largest_rank(problem.matrix.shape)) if rank is None else rank
    center, seed = settings.center, settings.seed
    guess, fit = first_fit(problem, most, center, seed)
    options: dict[str, Any] = {"n_rounds": ROUNDS_FROM_START, "prune": rank is None}
    rivals = [
        MissingRounds(problem, guess, fit, each, center, seed, **options) for each in structures
    ]
    return [Candidate(each, each.run(report, dict, None)) for each in rivals]


def _different(candidates: list[Candidate]) -> list[Candidate]:
    """Leave out rivals of the same rank and structure as an earlier candidate."""
    kinds = [(each.rounds.structures, each.n_components) for each in candidates]
    return [each for at, each in enumerate(candidates) if kinds[at] not in kinds[:at]]


def _best_of(
    problem: Incomplete,
    chosen: ChosenModel,
    candidates: list[Candidate],
    seed: int,
    prior: PriorChoice | None,
) -> IncompleteModel:
    """Put the candidate that predicts best in the place of the fit to the completed matrix."""
    predictions, at = None, 0
    if len(candidates) > 1:
        predictions = predict_hidden(problem, candidates, seed)
        at = int(np.argmin([each.error for each in predictions]))
    best = candidates[at].rounds.learned(prior)
    model = replace(chosen, fit=best.fit, shown=best.fit, data=best.data)
    return IncompleteModel(model, best.outcome, predictions)
