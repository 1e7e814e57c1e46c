"""The search for signal and noise: trails from both ends, compared by their evidence."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.engine import Engine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure, simpler_structures, structure_of
from mnpca.solvers.mnpca.evidence import evidence, group_gains
from mnpca.solvers.mnpca.joint_start import joint_start
from mnpca.solvers.mnpca.low_rank_step import Center, low_rank_step, noise_edge, relative_change
from mnpca.solvers.mnpca.noise_step import Memory, noise_step, simpler_noise
from mnpca.solvers.mnpca.settings import (
    BOTH_AT_ONCE,
    EQUAL,
    FEWER,
    NETWORKS_FIRST,
    SETTLING,
    SIGNAL_FIRST,
    UNEQUAL,
    Settings,
    Stage,
    trail_of,
    trails_of,
)
from mnpca.solvers.mnpca.variational import Posterior
from mnpca.solvers.progress import Progress, Report, Resumable

#: Variational sweeps of a low-rank step, and of the last one.
SWEEPS, FINAL_SWEEPS = 8, 20
#: Iterations of a trail with networks, at most (ten cut off some that were still finding a network,
#: which once cost 5 dB); the fewest of any trail.
MOST_STEPS, FEWEST_STEPS = 20, 2
#: Iterations of the stage with equal variances, at most.
EQUAL_STEPS = 3
#: Iterations with networks that tell how many components to begin with beside them.
TRIED_STEPS = 2
#: How many times fewer components the next trial has.
FEWER_TRIED = 1.5
#: Most components above the noise that groups may be about. With eight, eight blocks of correlated
#: columns are taken for groups, not for a network, and 14 dB are lost.
GROUPED = 4
#: Two ends are at the same place if they differ by less than so many times the tolerance.
SAME_PLACE = 5.0
#: A walk to fewer components ends after this many ranks in a row that are no better, a trail after
#: one more iteration than that.
PATIENCE = 2
#: Components that a walk drops at once, at most: twice as many after every success.
MOST_DROPPED = 8


@dataclass
class Iterate:
    """A noise model, the posterior of the signal under it, and the evidence of both."""

    noise: NoiseModel
    posterior: Posterior
    evidence: float
    group_gain: float | None = None
    """What groups would add to the evidence, once it was asked; see `Search.worth`."""


@dataclass
class Search(Resumable):
    """An explicit state machine: `advance` does one noise step and one low-rank step.

    Which structure explains a matrix, components or networks, depends on what is let in first.
    So the search comes from both ends. One trail begins without any signal: networks take what
    they can, then components, in turn (`NETWORKS_FIRST`). The other begins with components
    that stand above equal or unequal variances, as many of them as explain most beside networks
    (`SIGNAL_FIRST`). Where the rank is to be chosen, it is on a trail the number of components
    above the noise edge; then the weakest components go as long as the evidence rises, and the
    noise settles. The end with the highest evidence wins, what groups add included (`worth`).

    `leader` is the best iterate of the present stage, `finished` holds those of the stages before,
    `unsettled` names the ones that were cut off, `misses` counts the iterations that were no
    better, and `dropped` components go at once. All fields together are the state to resume from.
    """

    given: ClassVar = ("engine", "settings")

    engine: Engine
    settings: Settings
    current: Iterate
    todo: list[Stage]
    iteration: int = 0
    leader: Iterate | None = None
    finished: dict[str, Iterate] = field(default_factory=dict)
    held_rank: int | None = None
    """The rank on trails where they may not find it themselves."""
    misses: int = 0
    dropped: int = 1
    unsettled: list[str] = field(default_factory=list)
    history: list[tuple[str, int, float, float]] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    looked_again: bool = False

    @classmethod
    def begin(cls, engine: Engine, settings: Settings) -> "Search":
        """Start from equal variances."""
        n, p = engine.shape
        row = AxisPrecision.diagonal(np.ones(n // settings.n_matrices)).tile(settings.n_matrices)
        noise = NoiseModel(row, AxisPrecision.diagonal(np.ones(p)))
        start = _fit_signal(engine, noise, settings, settings.rank)
        return cls(
            engine, settings, start, [Stage(name) for name in trails_of(settings, engine.shape)]
        )

    @classmethod
    def go_on(
        cls,
        engine: Engine,
        settings: Settings,
        trail: str,
        noise: NoiseModel,
        held_rank: int,
    ) -> "Search":
        """Start one trail from a noise that was found on a part of the data, with a given rank.

        The noise edge cannot tell the rank: it is sharper where there is more data, and the errors
        of a noise from a part of it stand above the edge as components.
        """
        start = _fit_signal(engine, noise, settings, held_rank)
        return cls(engine, settings, start, [Stage(trail)], held_rank=held_rank)

    @property
    def done(self) -> bool:
        """Tell whether every stage has ended."""
        return not self.todo

    def run(self, report: Report) -> Iterate:
        """Advance to the end and return the best iterate, polished."""
        report(self.progress())
        while not self.done:
            self.advance()
            report(self.progress())
        return self.polished(self.finished[self.best_name()])

    def polished(self, iterate: Iterate) -> Iterate:
        """Return the iterate with a low-rank step to the end."""
        rank, loadings = iterate.posterior.rank, iterate.posterior.svd.right
        return _fit_signal(self.engine, iterate.noise, self.settings, rank, loadings, FINAL_SWEEPS)

    def simplified(
        self, best: Iterate
    ) -> tuple[Iterate, tuple[dict[Structure, float], dict[Structure, float]]]:
        """Compare the best iterate with simpler noise on one side at a time, at its rank.

        Returns the iterate, or the simpler one where that has more evidence, and for rows and for
        columns how much the evidence falls with each structure that was not taken. Only sides that
        are left to the evidence are looked at.
        """
        losses: tuple[dict[Structure, float], dict[Structure, float]] = ({}, {})
        asked = (self.settings.row_structure, self.settings.col_structure)
        for axis, allowed in enumerate(asked):
            if allowed != "auto":
                continue
            side = best.noise.col if axis else best.noise.row
            structure, seen = structure_of(side), {structure_of(side): best.evidence}
            for simpler in simpler_structures(side):
                noise = simpler_noise(self.engine, best.posterior, best.noise, axis, simpler)
                rival = self._with_signal(noise, best.posterior.rank, best)
                seen[simpler] = rival.evidence
                if rival.evidence > best.evidence:
                    best, structure = self.polished(rival), simpler
            losses[axis].update(
                (other, seen[structure] - value)
                for other, value in seen.items()
                if other != structure
            )
        return best, losses

    def ending(self, trail: str) -> tuple[bool, float]:
        """Tell whether a trail settled in the end, and by how much its last iteration changed."""
        last = [entry for entry in self.history if entry[0] == Stage(trail, SETTLING).name]
        last = last or [entry for entry in self.history if entry[0] == trail]
        return last[-1][0] not in self.unsettled, last[-1][3]

    def rank_path(self) -> list[tuple[int, float]]:
        """Return the highest evidence seen at each rank on the trail that won."""
        trail = trail_of(self.best_name())
        seen: dict[int, float] = {}
        for rank, (name, _, value, _) in zip(self.ranks, self.history, strict=True):
            if trail_of(name) == trail:
                seen[rank] = max(value, seen.get(rank, value))
        return sorted(seen.items())

    def advance(self) -> None:
        """Do one outer iteration of the present stage, and end the stage when it is time."""
        stage = self.todo[0]
        before = self.current
        start, rank = before, self._rank(stage)
        if stage.part == FEWER:
            assert rank is not None
            start = self._with_signal(before.noise, rank, before)
        noise = noise_step(
            self.engine,
            start.posterior,
            start.noise,
            *self.settings.structures(stage.trail),
            self.memory,
        )
        # Whether there is a mean row is asked once in a stage: it hardly ever changes.
        center = self.settings.center if self.iteration == 0 else None
        self.current = self._with_signal(noise, rank, start, center)
        if stage.part == FEWER and start.evidence > self.current.evidence:
            self.current = start
        self.iteration += 1
        change = _change(self.current, before)
        self._record(stage, change)
        if self._has_ended(stage, change):
            self._end_stage(stage)

    def best_name(self) -> str:
        """Name the end of a trail that is worth most, among those that are allowed."""
        ends = {trail_of(name): name for name in self._allowed()}.values()
        best = max(ends, key=lambda name: self.finished[name].evidence)
        if all(self._at_same_place(best, name) for name in ends):
            return best
        return max(ends, key=lambda name: self.worth(self.finished[name]))

    def worth(self, iterate: Iterate) -> float:
        """Return the evidence and what groups of rows or of columns would add to it.

        The same correlations can be a network or a signal; scores that come in groups are a
        signal. But every block of correlated columns is both a group with a component of its
        own and a network. So where there are many components, groups do not count.
        """
        if iterate.group_gain is None:
            live, iterate.group_gain = self._live(iterate), 0.0
            if 0 < live <= GROUPED:
                iterate.group_gain = group_gains(
                    self.engine, iterate.noise, iterate.posterior, live
                )
        return iterate.evidence + iterate.group_gain

    def _live(self, iterate: Iterate) -> int:
        """Return the number of components above the noise edge."""
        singular_values = iterate.posterior.svd.singular_values
        return int(np.sum(singular_values > noise_edge(self.engine.shape)))

    def _allowed(self) -> list[str]:
        return [name for name in self.finished if self.settings.allows(trail_of(name))]

    def _rank(self, stage: Stage) -> int | None:
        """Return the rank of the next iterate; None leaves it to the noise edge."""
        rank = self.current.posterior.rank
        if stage.part == FEWER:
            return max(rank - self.dropped, 0)
        if stage.part == SETTLING or (stage.trail == BOTH_AT_ONCE and self.settings.rank is None):
            return rank
        return self.settings.rank if self.held_rank is None else self.held_rank

    def _most(self, stage: Stage) -> int:
        """Return after how many iterations a stage ends at the latest."""
        if stage.trail not in (EQUAL, UNEQUAL):
            return MOST_STEPS
        return EQUAL_STEPS if stage.trail == EQUAL else self.settings.max_iter

    def _has_ended(self, stage: Stage, change: float) -> bool:
        if stage.part == FEWER:
            return self.misses >= PATIENCE or self.current.posterior.rank == 0
        settled = change < self.settings.tol or self.misses > PATIENCE
        fewest = FEWEST_STEPS + (stage.trail == UNEQUAL)
        if settled and self.iteration >= fewest:
            return not self._looks_again(stage)
        if self.iteration >= self._most(stage):
            self.unsettled.append(stage.name)
            return True
        return False

    def _looks_again(self, stage: Stage) -> bool:
        """Go on with all pairs, once, at the end of the trail that first saw them without signal.

        Other pairs correlate then. At 1000 x 2000 a quarter of the edges had never been candidates,
        and a trail that ended 9 dB lower had more evidence.
        """
        if stage.trail != NETWORKS_FIRST or self.looked_again:
            return False
        self.memory.reopen()
        self.looked_again, self.misses = True, 0
        return True

    def _end_stage(self, stage: Stage) -> None:
        """Keep the stage's best iterate and begin the next one."""
        best = self.leader
        assert best is not None
        self.finished[stage.name] = best
        self.todo.pop(0)
        self.leader, self.misses, self.dropped, self.iteration = None, 0, 1, 0
        if stage.part == FEWER:
            self.todo.insert(0, Stage(stage.trail, SETTLING))
        elif not self.todo and not stage.part:
            self.todo = self._walks() if self.settings.rank is None else self._unfinished()
        if not self.todo:
            return
        self.current = self._start_of(self.todo[0])
        if self.todo[0].part:
            self.leader = self.current
        elif self.todo[0].trail == SIGNAL_FIRST:
            # Without a signal other pairs correlate than with one.
            self.memory.reopen()

    def _start_of(self, stage: Stage) -> Iterate:
        """Return the iterate that a stage begins with."""
        if stage.part:
            walked = self.finished.get(Stage(stage.trail, FEWER).name)
            return walked or self.finished[stage.trail]
        equal = self.finished[EQUAL]
        if stage.trail == UNEQUAL:
            return max(equal, self._from_sizes(equal), key=lambda start: start.evidence)
        if stage.trail == NETWORKS_FIRST:
            return self._with_signal(equal.noise, 0, equal)
        unequal = self.finished.get(UNEQUAL, equal)
        start = unequal if unequal.evidence > equal.evidence else equal
        if stage.trail == SIGNAL_FIRST:
            return self._with_networks(start)
        noise, rank = joint_start(self.engine, start.noise, start.posterior)
        return self._with_signal(noise, self._given(rank), start)

    def _from_sizes(self, equal: Iterate) -> Iterate:
        """Return a start whose variances are the mean squares of rows and columns.

        Where rows differ by decades, the components under equal variances are the noise of the
        largest rows, and a search that begins with these does not get away from them.
        """
        nothing = self._with_signal(equal.noise, 0, equal)
        noise = noise_step(
            self.engine,
            nothing.posterior,
            nothing.noise,
            *self.settings.structures(UNEQUAL),
            self.memory,
        )
        return self._with_signal(noise, self.settings.rank, nothing)

    def _with_networks(self, start: Iterate) -> Iterate:
        """Return the best of a few first steps with networks, from other weights and ranks.

        Under unequal variances the components that stand above the noise are those of the signal
        and some that networks would explain. With all of them in the model the residual shows no
        network, with too few it holds the rest of the signal. So networks are tried beside all
        components, two thirds of them, and so on down to one; and beside the components that
        are found when rows and columns are weighted by their mean squares.
        """
        starts = [(start, self._given(start.posterior.rank))]
        while self.settings.rank is None and starts[-1][1] > 1:
            starts.append((start, round(starts[-1][1] / FEWER_TRIED)))
        weighted = self._from_sizes(self.finished[EQUAL])
        starts.append((weighted, weighted.posterior.rank))
        return max((self._tried(*each) for each in starts), key=lambda end: end.evidence)

    def _tried(self, start: Iterate, rank: int) -> Iterate:
        """Take the first steps with networks beside so many components."""
        tried, memory = self._with_signal(start.noise, rank, start), Memory()
        for _ in range(TRIED_STEPS):
            structures = self.settings.structures(SIGNAL_FIRST)
            noise = noise_step(self.engine, tried.posterior, tried.noise, *structures, memory)
            tried = self._with_signal(noise, rank, tried)
        return tried

    def _given(self, rank: int) -> int:
        """Return the rank that was asked for, or this one where none was."""
        return rank if self.settings.rank is None else self.settings.rank

    def _walks(self) -> list[Stage]:
        """Return walks to fewer components from the ends that can still win.

        Of two trails that ended at the same place only one goes on, and the end with variances
        alone only if it is ahead.
        """
        order = sorted(self._allowed(), key=lambda name: -self.finished[name].evidence)
        chosen: list[str] = []
        for name in order:
            if name in (EQUAL, UNEQUAL) and chosen:
                continue
            if not any(self._at_same_place(name, other) for other in chosen):
                chosen.append(name)
        return [Stage(name, FEWER) for name in chosen if self.finished[name].posterior.rank > 0]

    def _unfinished(self) -> list[Stage]:
        """Return a last stage for the best end if its trail was cut off."""
        best = self.best_name()
        return [Stage(best, SETTLING)] if best in self.unsettled else []

    def _at_same_place(self, name: str, other: str) -> bool:
        first, second = self.finished[name], self.finished[other]
        return _change(first, second) < SAME_PLACE * self.settings.tol

    def _with_signal(
        self, noise: NoiseModel, rank: int | None, near: Iterate, center: Center | None = None
    ) -> Iterate:
        """Fit the signal near another one; with a mean row if that has one, or as said."""
        center = near.posterior.centered if center is None else center
        settings = replace(self.settings, center=center)
        return _fit_signal(self.engine, noise, settings, rank, near.posterior.svd.right)

    def _record(self, stage: Stage, change: float) -> None:
        value = self.current.evidence
        self.history.append((stage.name, self.iteration, value, change))
        self.ranks.append(self.current.posterior.rank)
        leader = self.leader
        better = leader is None or value > leader.evidence
        if better and leader and stage.part == FEWER:
            # A component above the noise edge takes with it what groups gain by it.
            same = self._live(self.current) == self._live(leader)
            better = same or self.worth(self.current) > self.worth(leader)
        if better:
            self.leader = self.current
        if stage.part == FEWER and not better and self.dropped > 1:
            # Too many at once: back to where it was better.
            assert self.leader is not None
            self.current, self.dropped = self.leader, 1
            return
        self.misses = 0 if better else self.misses + 1
        if stage.part == FEWER and better:
            self.dropped = min(2 * self.dropped, MOST_DROPPED)

    def progress(self) -> Progress:
        """Return a report of where the search is."""
        stage = self.todo[0] if self.todo else None
        name = stage.name if stage else "done"
        # Components are taken away until that does not pay: nobody knows how many.
        most = self._most(stage) if stage and stage.part != FEWER else None
        return Progress(name, self.iteration, self.current.evidence, self.state, most)


def _fit_signal(
    engine: Engine,
    noise: NoiseModel,
    settings: Settings,
    rank: int | None,
    loadings: FloatArray | None = None,
    sweeps: int = SWEEPS,
) -> Iterate:
    posterior = low_rank_step(
        engine,
        noise.row,
        noise.col,
        rank,
        most=settings.most,
        center=settings.center,
        start=loadings,
        max_sweeps=sweeps,
        seed=settings.seed,
    )
    value = evidence(engine, noise, posterior)
    if sweeps < FINAL_SWEEPS:
        # Only the end is asked for its scores. Those of every leader on the way would have a good
        # part of the size of a table with few columns.
        nobody = np.zeros((0, posterior.rank))
        posterior = replace(posterior, svd=posterior.svd._replace(left=nobody))
    return Iterate(noise, posterior, value)


def _change(new: Iterate, old: Iterate) -> float:
    """Return the relative change of the signal or of the noise level, whichever is larger.

    A strong signal stands still long before the level of the noise does.
    """
    level = new.noise.col.log_determinant - old.noise.col.log_determinant
    return max(relative_change(new.posterior, old.posterior), abs(level) / new.noise.col.size)
