"""The search over noise models: a diagonal stage, then trails of graph stages."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.base import Engine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure
from mnpca.noise.graph import STRICT, WIDE
from mnpca.noise.scales import row_col_scales
from mnpca.solvers.mnpca.iterate import Iterate
from mnpca.solvers.mnpca.low_rank_step import Center, low_rank_step, relative_change
from mnpca.solvers.mnpca.noise_step import Memory, noise_step
from mnpca.solvers.progress import Progress, Report, State

#: Variational sweeps of the last low-rank step.
FINAL_SWEEPS = 20
#: Graph stages after which a trail ends at the latest.
GRAPH_STAGES = 8
#: A stage ends after this many iterations in a row without progress ...
PATIENCE = 3
#: ... by which is meant a merit higher by this share of e^2, e = sqrt n + sqrt p.
PROGRESS = 0.005
#: Blur of the first noise step of a trail (see `noise_step`), and its factor from step to step.
BLUR = 16.0
SHARPENING = 0.5
#: The stages in their order. The last one starts from the best iterate before.
FROM_SCALES = "graph noise from scales"
DIAGONAL = "diagonal noise"
FROM_DIAGONAL = "graph noise from diagonal"
WIDER = "wider graph noise"
DONE = "done"
#: The end of the diagonal stage is a start of its own if its signal differs by this share.
SAME_START = 0.1


@dataclass(frozen=True)
class Settings:
    """What the caller asked for."""

    rank: int
    row_structure: Structure
    col_structure: Structure
    center: Center
    max_iter: int
    tol: float
    seed: int
    n_matrices: int = 1
    """The data are so many matrices, one under the other, with the same noise."""

    @property
    def has_graph(self) -> bool:
        """Tell whether a side has a graph."""
        return "graph" in (self.row_structure, self.col_structure)


@dataclass
class Search:
    """An explicit state machine: `advance` does one noise step and one low-rank step.

    Row and column scales are the start of a trail of graph stages, and then of a diagonal stage,
    which alternates until the signal settles. Where this ends elsewhere, it is the start of a
    second trail. At last the best iterate so far gets a trail with wider graphs. `leader` is
    the iterate of highest merit of the present stage, `finished` holds those of the stages
    before, and `ended` is where the last of these came to rest. A stage settles when signal and
    noise level stand still, or when no better iterate turns up for some time (`stalled` counts);
    `unsettled` names the stages that did not. All fields together are the state to resume from.
    """

    engine: Engine
    settings: Settings
    current: Iterate
    stage: str = DIAGONAL
    iteration: int = 1
    scales: Iterate | None = None
    leader: Iterate | None = None
    finished: dict[str, Iterate] = field(default_factory=dict)
    ended: Iterate | None = None
    stalled: int = 0
    unsettled: list[str] = field(default_factory=list)
    history: list[tuple[str, int, float, float]] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)

    @classmethod
    def begin(cls, engine: Engine, settings: Settings) -> "Search":
        """Start from the row and column scales."""
        scales = NoiseModel(*row_col_scales(engine, n_repeats=settings.n_matrices))
        noise = _flattened(scales, settings)
        search = cls(engine, settings, _low_rank(engine, noise, settings, None))
        if settings.has_graph:
            search.scales = search.current
            search.stage, search.iteration = FROM_SCALES, 0
        else:
            search._record(1.0)
        return search

    @property
    def done(self) -> bool:
        """Tell whether every trail has ended."""
        return self.stage == DONE

    @property
    def most(self) -> int:
        """Return after how many iterations the present stage ends at the latest."""
        return self.settings.max_iter if self.stage == DIAGONAL else GRAPH_STAGES

    def run(self, report: Report) -> Iterate:
        """Advance to the end and return the best iterate, polished."""
        report(self.progress())
        while not self.done:
            self.advance()
            report(self.progress())
        best = self.finished[self.best_name()]
        return _low_rank(
            self.engine, best.noise, self.settings, best.posterior.svd.right, FINAL_SWEEPS
        )

    def advance(self) -> None:
        """Do one outer iteration of the present stage, and end the stage when it is time."""
        settings = self.settings
        diagonal = self.stage == DIAGONAL
        row, col = settings.row_structure, settings.col_structure
        if diagonal:
            row, col = _without_graph(row), _without_graph(col)
        levels = WIDE if self.stage == WIDER else STRICT
        blur = 0.0 if self.stage == WIDER else BLUR * SHARPENING**self.iteration
        current = self.current
        noise = noise_step(
            self.engine, current.posterior, current.noise, row, col, self.memory, levels, blur
        )
        new = _low_rank(self.engine, noise, settings, self.current.posterior.svd.right)
        # A strong signal stands still long before the level of the noise does.
        level = new.noise.col.log_determinant - self.current.noise.col.log_determinant
        change = relative_change(new.posterior, self.current.posterior)
        change = max(change, abs(level) / new.noise.col.size)
        self.current = new
        self.iteration += 1
        self._record(change)
        least = 3 if diagonal and "diagonal" in (row, col) else 2
        settled = change < settings.tol and self.iteration >= least
        empty = not diagonal and noise.is_diagonal and self.iteration > 1
        if settled or empty or self.stalled >= PATIENCE:
            self._end_stage()
        elif self.iteration >= self.most:
            self.unsettled.append(self.stage)
            self._end_stage()

    def best_name(self) -> str:
        """Name the stage whose best iterate has the highest merit.

        Wider graphs have false edges if the truth is sparse, so they have to be clearly better.
        """
        margin = 0.1 * self.current.edge**2
        return max(
            self.finished,
            key=lambda name: self.finished[name].merit - (margin if name == WIDER else 0.0),
        )

    def _end_stage(self) -> None:
        """Keep the stage's best iterate and go on to the next start."""
        self.finished[self.stage] = self.leader or self.current
        self.ended = self.current
        self.leader = None
        self.stalled = 0
        self.iteration = 0
        if self.stage == FROM_SCALES and self.scales is not None:
            self.stage, self.iteration, self.current = DIAGONAL, 1, self.scales
            self._record(1.0)
        elif self.stage == DIAGONAL and self._is_another_start():
            self.stage = FROM_DIAGONAL
        elif self.stage == WIDER or self.finished[self.best_name()].noise.is_diagonal:
            self.stage = DONE
        else:
            self.stage, self.current = WIDER, self.finished[self.best_name()]

    def _is_another_start(self) -> bool:
        """Tell whether the diagonal stage ended away from the scales, and graphs are wanted."""
        if self.scales is None:
            return False
        return relative_change(self.current.posterior, self.scales.posterior) > SAME_START

    def _record(self, change: float) -> None:
        self.history.append((self.stage, self.iteration, self.current.score, change))
        gain = np.inf if self.leader is None else self.current.merit - self.leader.merit
        self.stalled = 0 if gain > PROGRESS * self.current.edge**2 else self.stalled + 1
        if gain >= 0.0:
            self.leader = self.current

    def progress(self) -> Progress:
        """Return a report of where the search is."""
        return Progress(self.stage, self.iteration, self.current.score, self.pack, self.most)

    def pack(self) -> State:
        """Return the whole state as a flat dictionary."""
        packed: dict[str, Any] = {"stage": self.stage, "iteration": self.iteration}
        packed |= {"stalled": self.stalled, "unsettled": "\n".join(self.unsettled)}
        packed |= self.current.pack("current")
        for name in ("scales", "leader", "ended"):
            iterate = getattr(self, name)
            if iterate is not None:
                packed |= iterate.pack(name)
        packed["finished"] = "\n".join(self.finished)
        for name, iterate in self.finished.items():
            packed |= iterate.pack(f"finished.{name}")
        for side, candidates in (("row", self.memory.row), ("col", self.memory.col)):
            packed[f"memory.{side}.complete"] = candidates.complete
            for key in ("correlated", "scored"):
                pairs = getattr(candidates, key)
                if pairs is not None:
                    packed[f"memory.{side}.{key}"] = pairs
        packed["history.stage"] = "\n".join(entry[0] for entry in self.history)
        packed["history.numbers"] = np.array([entry[1:] for entry in self.history])
        return packed

    @classmethod
    def unpack(cls, engine: Engine, settings: Settings, state: State) -> "Search":
        """Rebuild a search from `pack`'s dictionary."""
        search = cls(engine, settings, Iterate.unpack("current", state))
        search.stage = str(state["stage"])
        search.iteration = int(state["iteration"])
        search.stalled = int(state["stalled"])
        search.unsettled = list(filter(None, str(state["unsettled"]).split("\n")))
        for name in ("scales", "leader", "ended"):
            if f"{name}.row.unscaled" in state:
                setattr(search, name, Iterate.unpack(name, state))
        for name in filter(None, str(state["finished"]).split("\n")):
            search.finished[name] = Iterate.unpack(f"finished.{name}", state)
        for side, candidates in (("row", search.memory.row), ("col", search.memory.col)):
            candidates.complete = bool(state[f"memory.{side}.complete"])
            candidates.correlated = state.get(f"memory.{side}.correlated")
            candidates.scored = state.get(f"memory.{side}.scored")
        numbers = np.asarray(state["history.numbers"]).reshape(-1, 3)
        stages = filter(None, str(state["history.stage"]).split("\n"))
        for stage, (iteration, score, change) in zip(stages, numbers, strict=True):
            search.history.append((stage, int(iteration), float(score), float(change)))
        return search


def _low_rank(
    engine: Engine,
    noise: NoiseModel,
    settings: Settings,
    loadings: FloatArray | None,
    sweeps: int = 8,
) -> Iterate:
    posterior = low_rank_step(
        engine,
        noise.row,
        noise.col,
        settings.rank,
        center=settings.center,
        start=loadings,
        max_sweeps=sweeps,
        seed=settings.seed,
    )
    return Iterate(noise, posterior)


def _without_graph(structure: Structure) -> Structure:
    return "diagonal" if structure == "graph" else structure


def _flattened(noise: NoiseModel, settings: Settings) -> NoiseModel:
    """Replace a side's scales by one number where its structure is the identity."""

    def level(side: AxisPrecision, structure: Structure) -> AxisPrecision:
        if structure != "identity":
            return side
        flat = np.full(side.base.size, 1.0 / side.variances.mean())
        return AxisPrecision.diagonal(flat).tile(side.n_repeats)

    row = level(noise.row, settings.row_structure)
    col = level(noise.col, settings.col_structure)
    return NoiseModel(row, col).in_gauge()
