"""From a matrix to a fitted model: outliers, noise structure and rank, each given or chosen."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mnpca._typing import BoolArray
from mnpca.engines import Engine, engine_for
from mnpca.noise.estimate import Structure
from mnpca.selection.auto_rank import RankTrial, fit_auto_rank, guess_rank
from mnpca.selection.noise_structure import NoiseTrial, graph_is_right, variances_are_noise
from mnpca.solvers.mnpca.fit import MNPCAFit, fit_mnpca
from mnpca.solvers.mnpca.robust import clean_cells
from mnpca.solvers.mnpca.search import Settings
from mnpca.solvers.progress import Progress, Report, State, silent

T = TypeVar("T")


@dataclass(frozen=True)
class ChosenModel:
    """The fit and how it was chosen.

    Attributes
    ----------
    fit : MNPCAFit
        The model.
    data : array or Engine of shape (n, p)
        What was fitted: the observations, outliers replaced by the signal.
    rank_trials : list of RankTrial or None
        None where the rank was given.
    noise_trials : list of NoiseTrial
        The last one is the chosen.
    outliers : boolean array of shape (n, p) or None
        None where no outliers were looked for.
    """

    fit: MNPCAFit
    data: Any
    rank_trials: list[RankTrial] | None
    noise_trials: list[NoiseTrial]
    outliers: BoolArray | None


def choose_model(
    Y: Any,
    rank: int | None,
    structure: Structure | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> ChosenModel:
    """Fit the model; choose its rank and noise structure where they are None.

    Parameters
    ----------
    Y : array or Engine of shape (n, p)
        Data; finding outliers needs a NumPy array.
    rank : int or None
        Number of components.
    structure : {"identity", "diagonal", "graph"} or None
        Noise structure of both sides.
    settings : Settings
        Of every fit; its rank and structures are ignored.
    robust : bool
        Whether to find and replace gross outliers first.
    report, resume
        As in `fit_mnpca`. Short fits that were complete are repeated on resuming.
    """
    steps = _Steps(report, resume)
    if not robust:
        return _Chooser(Y, rank, settings, steps, "").choose(structure)
    if not isinstance(Y, np.ndarray):
        raise TypeError(
            f"robust=True needs the data as a NumPy array, not as a {type(Y).__name__}. "
            "Convert X first, or use robust=False."
        )
    Y = Y.astype(np.float64, copy=False)
    cleaned, outliers = clean_cells(
        Y, lambda data: guess_rank(data, settings) if rank is None else rank, seed=settings.seed
    )
    first = _Chooser(cleaned, rank, settings, steps, "outliers, ").choose(structure)
    # Detection knew variances only. The full model fills the gaps better; then it fits again.
    filled = np.where(outliers, first.fit.denoised(), Y)
    chosen = first.noise_trials[-1].structure
    final_rank = len(first.fit.singular_values)
    second = _Chooser(filled, final_rank, settings, steps, "refit, ").choose(chosen)
    return replace(
        second,
        rank_trials=first.rank_trials,
        noise_trials=[*first.noise_trials[:-1], *second.noise_trials],
        outliers=outliers,
    )


class _Chooser:
    """Fits of one matrix."""

    def __init__(self, Y: Any, rank: int | None, settings: Settings, steps: "_Steps", label: str):
        self.Y = Y
        self.engine: Engine = engine_for(Y)
        self.rank = rank
        self.settings = settings
        self.steps = steps
        self.label = label

    def choose(self, structure: Structure | None) -> ChosenModel:
        """Fit with the given structure, or the one that the data ask for."""
        if structure is not None:
            return self._fit(structure, self.rank)
        diagonal = self._fit("diagonal", self.rank)
        trials = diagonal.noise_trials
        if trials[0].sparse_graph_possible:
            graph = self._fit("graph", self.rank)
            rank = len(graph.fit.singular_values)
            rival = diagonal
            if rank != len(diagonal.fit.singular_values):
                rival = self._fit("diagonal", rank)  # networks are judged at equal rank
            if graph_is_right(graph.noise_trials[0], rival.noise_trials[0]):
                return replace(graph, noise_trials=[*rival.noise_trials, *graph.noise_trials])
            trials = [*graph.noise_trials, *trials]
        if variances_are_noise(diagonal.noise_trials[0]):
            return replace(diagonal, noise_trials=trials)
        identity = self._fit("identity", self.rank)
        return replace(identity, noise_trials=[*trials, *identity.noise_trials])

    def _fit(self, structure: Structure, rank: int | None) -> ChosenModel:
        settings = replace(self.settings, row_structure=structure, col_structure=structure)
        label = f"{self.label}{structure} noise" + ("" if rank is None else f", rank {rank}")
        trials: list[RankTrial] | None = None
        if rank is None:
            fit, trials = self.steps.run(
                label, lambda report, resume: fit_auto_rank(self.engine, settings, report, resume)
            )
        else:
            fit = self.steps.run(
                label,
                lambda report, resume: fit_mnpca(
                    self.engine,
                    rank,
                    noise=structure,
                    center=settings.center,
                    max_iter=settings.max_iter,
                    tol=settings.tol,
                    random_state=settings.seed,
                    n_matrices=settings.n_matrices,
                    report=report,
                    resume=resume,
                ),
            )
        return ChosenModel(fit, self.Y, trials, [NoiseTrial.of(self.engine, fit, structure)], None)


class _Steps:
    """Runs labeled fits; the one that was interrupted goes on where it was."""

    def __init__(self, report: Report, resume: State | None):
        self.report = report
        self.resume = resume

    def run(self, label: str, fit: Callable[[Report, State | None], T]) -> T:
        """Run a fit under its label."""
        if self.resume is not None and self.resume["step"] != label:
            # A repeated fit must not take the place of a later one in the checkpoint.
            return fit(silent, None)
        state, self.resume = self.resume, None

        def report(progress: Progress) -> None:
            self.report(
                replace(
                    progress,
                    stage=f"{label}: {progress.stage}",
                    state=lambda: {**progress.state(), "step": label},
                )
            )

        return fit(report, state)
