"""The model of a matrix with holes or covariates: chosen on a completed one, then re-estimated."""

from dataclasses import dataclass, replace

from mnpca.engines import engine_for
from mnpca.selection.auto_rank import guess_rank, largest_rank
from mnpca.selection.choose_model import ChosenModel, choose_model
from mnpca.selection.held_out import Candidate, Prediction, can_be_hidden, compare_predictions
from mnpca.selection.noise_structure import NoiseTrial
from mnpca.solvers.flagship.noise_step import Structure
from mnpca.solvers.flagship.search import Settings
from mnpca.solvers.missing.flagship import FlagshipRounds
from mnpca.solvers.missing.incomplete import Incomplete, Outcome
from mnpca.solvers.missing.start import column_fill, first_guess
from mnpca.solvers.progress import Progress, Report, State, silent


@dataclass(frozen=True)
class IncompleteModel:
    """A chosen model of an incomplete matrix.

    Attributes
    ----------
    chosen : ChosenModel
        The model; its data are complete and without covariate effects.
    outcome : Outcome
        Of holes and covariates.
    prediction : Prediction or None
        Of hidden cells, by the model that stands out from the noise and by networks from
        variances; None where nothing was left to choose.
    """

    chosen: ChosenModel
    outcome: Outcome
    prediction: Prediction | None


def choose_incomplete_model(
    problem: Incomplete,
    rank: int | None,
    structure: Structure | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> IncompleteModel:
    """Fit the model to a matrix with holes or covariates.

    Rank and noise structure are chosen, and the networks first estimated, on the matrix
    completed under row and column variances. Then rounds of expectation and maximisation
    re-estimate signal, effects and noise from what was observed. Outliers that `robust` finds
    become holes of these rounds.

    Where rank or structure are to be chosen, and networks are allowed, this model has a rival:
    networks, and as many components as stand above the noise, from rounds that begin with
    variances alone. It is taken where it predicts hidden cells better.

    Parameters are those of `choose_model`.
    """
    start_rank = guess_rank(column_fill(problem), settings) if rank is None else rank
    guess = first_guess(problem, start_rank, settings.center, settings.seed)
    chosen_state = None if resume is None else resume["chosen"]
    in_rounds = resume is not None and "rounds" in resume

    def tell(progress: Progress) -> None:
        nonlocal chosen_state
        chosen_state = progress.state()  # the rounds' checkpoints hold the last one
        report(replace(progress, state=lambda: {"chosen": chosen_state}))

    chosen = choose_model(
        guess,
        rank,
        structure,
        settings,
        robust=robust,
        report=silent if in_rounds else tell,
        resume=chosen_state,
    )
    has_holes = bool(problem.missing.any())
    if chosen.outliers is not None:
        problem = replace(problem, missing=problem.missing | chosen.outliers)
    final = chosen.noise_trials[-1].structure
    rounds = FlagshipRounds(problem, chosen.data, chosen.fit, final, settings.center, settings.seed)
    rounds_state = resume if in_rounds else None

    def tell_round(progress: Progress) -> None:
        nonlocal rounds_state
        rounds_state = progress.state()
        report(replace(progress, state=lambda: rounds_state))

    completed = rounds.run(tell_round, lambda: {"chosen": chosen_state}, rounds_state)
    candidates, prediction = [Candidate(rounds, completed)], None
    automatic = structure is None or (structure == "graph" and rank is None)
    if has_holes and automatic and can_be_hidden(problem.missing):
        # The rival is quick: a fit that was interrupted in it resumes right before it.
        rival = _rival(
            problem, rank, settings, lambda each: report(replace(each, state=lambda: rounds_state))
        )
        prediction = compare_predictions(problem, candidates[0], rival, settings.seed)
        candidates.insert(1 if prediction.second_is_better else 0, rival)
    return _as_model(chosen, candidates, prediction)


def _rival(problem: Incomplete, rank: int | None, settings: Settings, report: Report) -> Candidate:
    """Fit networks from variances, at the given rank or with what stands above the noise."""
    most = largest_rank(problem.matrix.shape) if rank is None else rank
    rounds = FlagshipRounds.from_variances(
        problem, most, "graph", settings.center, settings.seed, prune=rank is None
    )
    return Candidate(rounds, rounds.run(report, dict, None))


def _as_model(
    chosen: ChosenModel, candidates: list[Candidate], prediction: Prediction | None
) -> IncompleteModel:
    """Put the last candidate in the place of the fit to the completed matrix."""
    trials = [
        NoiseTrial.of(engine_for(each.completed.data), each.completed.fit, each.rounds.structure)
        for each in candidates
    ]
    best = candidates[-1].completed
    model = replace(
        chosen,
        fit=best.fit,
        data=best.data,
        noise_trials=[*chosen.noise_trials[:-1], *trials],
    )
    return IncompleteModel(model, best.outcome, prediction)
