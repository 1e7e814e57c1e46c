"""The number of components: as many as stand above the noise and spread over the data."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines import Engine
from mnpca.solvers.mnpca.fit import MNPCAFit, as_fit
from mnpca.solvers.mnpca.iterate import LEAST_SPREAD, Iterate, spreads
from mnpca.solvers.mnpca.search import FROM_SCALES, Search, Settings
from mnpca.solvers.mnpca.standardized import StandardizedData
from mnpca.solvers.progress import Progress, Report, State

#: More components than this are never proposed.
MAX_RANK = 10
#: In a large matrix a component must exceed the largest singular value of pure noise by this
#: share: so much is left to false components by a dense network whose weak edges no test sees.
MIN_EXCESS = 0.17
#: A matrix is large from this many rows and columns on. In a smaller one true components are
#: weaker and more uneven, while false ones are not stronger.
LARGE = 200
#: Graph stages of a fit before the rank is judged by it.
FEWEST_STAGES = 2


@dataclass(frozen=True)
class RankTrial:
    """A fit at one rank and what its components look like.

    Attributes
    ----------
    rank : int
        Components of the fit.
    strengths : array of shape (rank,)
        Generalized singular values in units of ``sqrt n + sqrt p``, where those of pure noise end.
    spreads : array of shape (rank,)
        The smaller of ``3 / (n sum x^4)`` and ``3 / (p sum w^4)`` over a component's vectors of
        unit length: about one where it lives on all rows and columns, ``3 / q`` on a single one.
    smaller_side : int
        ``min(n, p)``, on which depends what is strong and spread.
    """

    rank: int
    strengths: FloatArray
    spreads: FloatArray
    smaller_side: int = LARGE

    @classmethod
    def of(cls, iterate: Iterate) -> "RankTrial":
        """Describe the components of an iterate."""
        svd = iterate.posterior.svd
        return cls(
            rank=len(svd.singular_values),
            strengths=svd.singular_values / iterate.edge,
            spreads=np.minimum(spreads(svd.left), spreads(svd.right)),
            smaller_side=min(len(svd.left), len(svd.right)),
        )

    @property
    def least_strength(self) -> float:
        """Return ``1 + 0.17 h``, ``h = sqrt(min(n, p) / 200)``, at most 1.17."""
        return 1.0 + MIN_EXCESS * self._size

    @property
    def least_spread(self) -> float:
        """Return ``0.3 (1 + h) / 2``, at most 0.3."""
        return LEAST_SPREAD * (1.0 + self._size) / 2.0

    @property
    def _size(self) -> float:
        return float(np.sqrt(min(1.0, self.smaller_side / LARGE)))

    @property
    def n_good(self) -> int:
        """Return how many leading components are strong and spread."""
        bad = (self.strengths < self.least_strength) | (self.spreads < self.least_spread)
        return int(np.argmax(bad)) if bad.any() else self.rank

    @property
    def accepted(self) -> bool:
        """Tell whether all components are signal.

        All of them are looked at: a noise component can outrank a true one.
        """
        return self.n_good == self.rank

    @property
    def clearly_accepted(self) -> bool:
        """Tell whether the components would be signal even if they lost much of their strength."""
        enough = 1.0 + 2.5 * (self.least_strength - 1.0)
        return self.accepted and bool(np.all(self.strengths >= enough))

    def clearly_rejected(self, before: "RankTrial") -> bool:
        """Tell whether the weakest component is far from strong and did not grow."""
        if self.rank == 0:
            return False
        weakest = float(self.strengths[-1])
        limit = 1.0 + 0.5 * (self.least_strength - 1.0)
        return weakest < min(limit, float(before.strengths[-1]))


def fit_auto_rank(
    Y: Any, settings: Settings, report: Report, resume: State | None = None
) -> tuple[MNPCAFit, list[RankTrial]]:
    """Fit with the largest rank whose components all are signal, while one more is not.

    A first guess counts the good components under row and column scales alone, or, where that
    says all, after two graph stages of a fit with as many as there may be. From
    there the rank moves up while a fit is accepted and down while it is rejected, until an
    accepted rank lies right below a rejected one. A trial runs the diagonal stage and one trail
    of graph stages; only the accepted rank is fitted to the end.

    Parameters
    ----------
    Y : array or Engine of shape (n, p)
        Data.
    settings : Settings
        Of the fits; its rank is ignored.
    report, resume
        As in `fit_mnpca`.

    Returns
    -------
    fit : MNPCAFit
        At the chosen rank, which may be 0.
    trials : list of RankTrial
        In the order they were made.
    """
    standardized = StandardizedData.of(Y, settings.center, settings.col_structure)
    settings = replace(settings, center=standardized.center)
    return _RankSearch(standardized.engine, settings, standardized, report, resume).run()


class _RankSearch:
    """The walk over ranks, with the searches that may still be needed."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        standardized: StandardizedData,
        report: Report,
        resume: State | None,
    ):
        self.engine = engine
        self.settings = settings
        self.standardized = standardized
        self.report = report
        self.resume = resume
        self.most = largest_rank(engine.shape)
        self.accepted: Search | None = None
        self.trials: list[RankTrial] = (
            [] if resume is None else _unpack_trials(resume, min(engine.shape))
        )
        if resume is not None and "accepted.rank" in resume:
            own = {
                key.removeprefix("accepted."): value
                for key, value in resume.items()
                if key.startswith("accepted.")
            }
            accepted = replace(settings, rank=int(own["rank"]))
            self.accepted = Search.unpack(engine, accepted, own)

    def run(self) -> tuple[MNPCAFit, list[RankTrial]]:
        """Walk, then fit the accepted rank to the end."""
        low, high = 0, self.most + 1
        rank = self._guess()
        for trial in self.trials:  # a resumed walk repeats its decisions, not its fits
            low, high, rank = _move(trial, low, high)
        while high - low > 1:
            search, trial = self._try(rank)
            self.trials.append(trial)
            if trial.accepted:
                self.accepted = search
            low, high, rank = _move(trial, low, high)
        search = self.accepted
        if search is None or search.settings.rank != low:
            search = self._open(low)
        best = search.run(self._reporter(search))
        return as_fit(best, search, self.standardized), self.trials

    def _guess(self) -> int:
        """Count the good components of a fit with as many as there may be, hardly begun."""
        if self.trials or self.most == 0:
            return 1
        search = self._begin(self.most)
        trial = RankTrial.of(search.current)
        if self.settings.has_graph and trial.n_good == trial.rank:
            # Strongly correlated noise looks like components until networks explain it.
            for _ in range(FEWEST_STAGES):
                search.advance()
            trial = RankTrial.of(search.current)
        return max(trial.n_good, 1)

    def _try(self, rank: int) -> tuple[Search, RankTrial]:
        """Run a search up to the end of its first trail, or until the verdict is clear."""
        search = self._open(rank)
        report = self._reporter(search)
        trial = RankTrial.of(search.current)
        while not search.finished:
            before = trial
            search.advance()
            trial = RankTrial.of(search.current)
            judged = search.stage == FROM_SCALES and search.iteration >= FEWEST_STAGES
            if judged and (trial.clearly_accepted or trial.clearly_rejected(before)):
                return search, trial
            report(search.progress())  # a state to resume from is one that was not yet judged
        assert search.ended is not None
        # Where the trail came to rest: on the way, networks have not yet taken their own back.
        return search, RankTrial.of(search.ended)

    def _open(self, rank: int) -> Search:
        """Begin a search, or go on with the one that was interrupted at this rank."""
        settings = replace(self.settings, rank=rank)
        if self.resume is not None and int(self.resume["walk.rank"]) == rank:
            state, self.resume = self.resume, None
            return Search.unpack(self.engine, settings, state)
        search = self._begin(rank)
        if self.accepted is not None:
            # Pairs of items that were worth a look one rank below still are.
            search.memory = copy.deepcopy(self.accepted.memory)
        return search

    def _begin(self, rank: int) -> Search:
        return Search.begin(self.engine, replace(self.settings, rank=rank))

    def _reporter(self, search: Search) -> Report:
        """Report with the walk added to the search's state."""
        rank = search.settings.rank

        def report(progress: Progress) -> None:
            def state() -> State:
                walk = {"walk.rank": rank, **_pack_trials(self.trials)}
                if self.accepted is not None and self.accepted is not search:
                    walk["accepted.rank"] = self.accepted.settings.rank
                    walk |= {f"accepted.{key}": v for key, v in self.accepted.pack().items()}
                return {**progress.state(), **walk}

            self.report(replace(progress, stage=f"rank {rank}, {progress.stage}", state=state))

        return report


def largest_rank(shape: tuple[int, ...]) -> int:
    """Return the largest rank worth trying for a matrix of this shape.

    Beyond Ledermann's bound, ``(2q + 1 - sqrt(8q + 1)) / 2`` for q items, components and unequal
    noise variances cannot be told apart.
    """
    q = min(shape)
    bound = int((2 * q + 1 - np.sqrt(8 * q + 1)) / 2)
    return min(MAX_RANK, max(bound, 1), q - 1)


def guess_rank(Y: Any, settings: Settings) -> int:
    """Count the good components under row and column scales alone; quick and rough."""
    standardized = StandardizedData.of(Y, settings.center, settings.col_structure)
    settings = replace(settings, rank=largest_rank(Y.shape), center=standardized.center)
    trial = RankTrial.of(Search.begin(standardized.engine, settings).current)
    # Under strongly correlated noise everything looks like a component.
    return 1 if 1 < trial.n_good == trial.rank else trial.n_good


def _move(trial: RankTrial, low: int, high: int) -> tuple[int, int, int]:
    """Return the largest accepted rank, the smallest rejected one and the next to try."""
    if trial.accepted:
        return max(low, trial.rank), high, trial.rank + 1
    return low, min(high, trial.rank), max(low + 1, min(trial.n_good, trial.rank - 1))


def _pack_trials(trials: list[RankTrial]) -> dict[str, object]:
    packed: dict[str, object] = {"walk.n_trials": len(trials)}
    for number, trial in enumerate(trials):
        packed[f"walk.{number}"] = np.stack([trial.strengths, trial.spreads])
    return packed


def _unpack_trials(state: State, smaller_side: int) -> list[RankTrial]:
    pairs = [np.asarray(state[f"walk.{number}"]) for number in range(int(state["walk.n_trials"]))]
    return [RankTrial(pair.shape[1], *pair, smaller_side) for pair in pairs]
