"""The model of a matrix with holes or covariates: chosen on a completed one, then re-estimated."""

from dataclasses import dataclass, replace

from mnpca.engines import engine_for
from mnpca.selection.auto_rank import guess_rank
from mnpca.selection.choose_model import ChosenModel, choose_model
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
    """

    chosen: ChosenModel
    outcome: Outcome


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
    if chosen.outliers is not None:
        problem = replace(problem, missing=problem.missing | chosen.outliers)
    final = chosen.noise_trials[-1].structure
    rounds = FlagshipRounds(problem, chosen.data, chosen.fit, final, settings.center, settings.seed)
    completed = rounds.run(report, lambda: {"chosen": chosen_state}, resume if in_rounds else None)
    trial = NoiseTrial.of(engine_for(completed.data), completed.fit, final)
    trials = [*chosen.noise_trials[:-1], trial]
    return IncompleteModel(
        replace(chosen, fit=completed.fit, data=completed.data, noise_trials=trials),
        completed.outcome,
    )
