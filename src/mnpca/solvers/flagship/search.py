"""The search over noise models: a diagonal stage, then graph stages from two of its iterates."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.engines.dense import DenseEngine
from mnpca.solvers.flagship.iterate import Iterate
from mnpca.solvers.flagship.low_rank_step import Center, low_rank_step, relative_change
from mnpca.solvers.flagship.noise_step import Memory, NoiseModel, Structure, noise_step
from mnpca.solvers.flagship.scales import row_col_scales
from mnpca.solvers.progress import Progress, Report, State

#: Variational sweeps of the last low-rank step.
FINAL_SWEEPS = 20
#: Graph stages after which a trail ends at the latest.
GRAPH_STAGES = 8


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

    @property
    def has_graph(self) -> bool:
        """Tell whether a side has a graph."""
        return "graph" in (self.row_structure, self.col_structure)


@dataclass
class Search:
    """An explicit state machine: `advance` does one noise step and one low-rank step.

    The diagonal stage alternates from the start until the signal settles. Then each start in
    `waiting` gets a trail of graph stages. All fields together are the state to resume from.
    """

    engine: DenseEngine
    settings: Settings
    current: Iterate
    stage: str = "diagonal noise"
    iteration: int = 1
    waiting: dict[str, Iterate] = field(default_factory=dict)
    finished: dict[str, Iterate] = field(default_factory=dict)
    history: list[tuple[str, int, float, float]] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)

    @classmethod
    def begin(
        cls,
        engine: DenseEngine,
        settings: Settings,
        noise: NoiseModel | None = None,
        loadings: FloatArray | None = None,
    ) -> "Search":
        """Start from given noise, or from the row and column scales."""
        if noise is None:
            noise = NoiseModel(*row_col_scales(engine))
        noise = _flattened(noise, settings)
        search = cls(engine, settings, _low_rank(engine, noise, settings, loadings))
        if settings.has_graph:
            search.waiting["scales"] = search.current
        search._record(1.0)
        return search

    @property
    def done(self) -> bool:
        """Tell whether every trail has ended."""
        return self.stage == "done"

    def run(self, report: Report) -> Iterate:
        """Advance to the end and return the best iterate, polished."""
        report(self.progress())
        while not self.done:
            self.advance()
            report(self.progress())
        best = self.finished[self.best_name()]
        return Iterate(
            best.noise,
            _low_rank(
                self.engine, best.noise, self.settings, best.posterior.svd.right, FINAL_SWEEPS
            ).posterior,
        )

    def advance(self) -> None:
        """Do one outer iteration of the present stage, or end the stage."""
        settings = self.settings
        diagonal = self.stage == "diagonal noise"
        identity = settings.row_structure == settings.col_structure == "identity"
        structures = (settings.row_structure, settings.col_structure)
        if diagonal:
            structures = tuple("diagonal" if s == "graph" else s for s in structures)  # type: ignore[assignment]
        noise = noise_step(
            self.engine, self.current.posterior, self.current.noise, *structures, self.memory
        )
        new = _low_rank(self.engine, noise, settings, self.current.posterior.svd.right)
        change = relative_change(new.posterior, self.current.posterior)
        self.current = new
        self.iteration += 1
        self._record(change)
        most = settings.max_iter if diagonal else GRAPH_STAGES
        early = (2 if not identity else 1) if diagonal else 1
        settled = change < settings.tol and self.iteration > early
        empty = not diagonal and noise.row.n_edges + noise.col.n_edges == 0 and self.iteration > 1
        if settled or empty or self.iteration >= most:
            self._end_stage()

    def best_name(self) -> str:
        """Name the best trail: most live components, then the score; diagonal if it scores more."""
        graphs = [name for name in self.finished if name != "diagonal noise"]
        if not graphs:
            return "diagonal noise"
        best = max(graphs, key=lambda g: (self.finished[g].n_live, self.finished[g].score))
        if self.finished["diagonal noise"].score > self.finished[best].score:
            return "diagonal noise"
        return best

    def _end_stage(self) -> None:
        self.finished[self.stage] = self.current
        if self.stage == "diagonal noise" and self.settings.has_graph:
            self.waiting["diagonal"] = self.current
        if not self.waiting:
            self.stage = "done"
            return
        name = next(iter(self.waiting))
        self.current = self.waiting.pop(name)
        self.stage = f"graph noise from {name}"
        self.iteration = 0

    def _record(self, change: float) -> None:
        self.history.append((self.stage, self.iteration, self.current.score, change))

    def progress(self) -> Progress:
        """Return a report of where the search is."""
        return Progress(self.stage, self.iteration, self.current.score, self.pack)

    def pack(self) -> State:
        """Return the whole state as a flat dictionary."""
        packed: dict[str, Any] = {"stage": self.stage, "iteration": self.iteration}
        packed |= self.current.pack("current")
        for kind, iterates in (("waiting", self.waiting), ("finished", self.finished)):
            packed[kind] = "\n".join(iterates)
            for name, iterate in iterates.items():
                packed |= iterate.pack(f"{kind}.{name}")
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
    def unpack(cls, engine: DenseEngine, settings: Settings, state: State) -> "Search":
        """Rebuild a search from `pack`'s dictionary."""
        search = cls(engine, settings, Iterate.unpack("current", state))
        search.stage = str(state["stage"])
        search.iteration = int(state["iteration"])
        for kind, iterates in (("waiting", search.waiting), ("finished", search.finished)):
            for name in filter(None, str(state[kind]).split("\n")):
                iterates[name] = Iterate.unpack(f"{kind}.{name}", state)
        for side, candidates in (("row", search.memory.row), ("col", search.memory.col)):
            candidates.complete = bool(state[f"memory.{side}.complete"])
            candidates.correlated = state.get(f"memory.{side}.correlated")
            candidates.scored = state.get(f"memory.{side}.scored")
        numbers = np.asarray(state["history.numbers"])
        for stage, (iteration, score, change) in zip(
            str(state["history.stage"]).split("\n"), numbers, strict=True
        ):
            search.history.append((stage, int(iteration), float(score), float(change)))
        return search


def _low_rank(
    engine: DenseEngine,
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


def _flattened(noise: NoiseModel, settings: Settings) -> NoiseModel:
    """Replace a side's scales by one number where its structure is the identity."""
    from mnpca.solvers.flagship.noise_side import NoiseSide

    def level(side: NoiseSide, structure: Structure) -> NoiseSide:
        if structure != "identity":
            return side
        return NoiseSide.diagonal(np.full(side.size, 1.0 / side.variances.mean()))

    flat = NoiseModel(
        level(noise.row, settings.row_structure), level(noise.col, settings.col_structure)
    )
    return flat.in_gauge()
