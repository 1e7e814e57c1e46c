"""The fit of an array: signal and noise in turn, variances first, then networks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mnpca._typing import FloatArray
from mnpca.model.gpca import identify
from mnpca.model.metric import Metric
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca.fit import fit_mnpca
from mnpca.solvers.progress import Progress, Report, Resumable, State, silent
from mnpca.solvers.tensor.noise_step import (
    AxisNoise,
    axis_noise_step,
    axis_scales,
    free_axes,
    in_gauge,
)
from mnpca.solvers.tensor.tucker import Tucker, mapped, tucker, unfold, weighted

#: Iterations with networks after which a stage ends at the latest.
GRAPH_STEPS = 20
#: Noise steps on the data themselves, before the last stage.
FIRST_NETWORKS = 3
#: On the way the signal need not be exact; at the end it is.
_rough_tucker = partial(tucker, tol=1e-6, max_iter=20)
DIAGONAL, GRAPH, DONE = "diagonal noise", "graph noise", "done"
AGAIN = "graph noise from networks of the data"


@dataclass(frozen=True)
class TensorFit:
    """A fitted model ``T = mean + core x_1 F_1 ... x_K F_K + E``, vec E ~ N(0, x_k inv P_k).

    ``F_k' P_k F_k = I``, and ``logdet P_k = 0`` on every estimated axis but the last. The history
    has (stage, iteration, score, change) of every iteration; `chosen` is the stage whose end is
    this fit. `components` are what the first axis's scores multiply, orthonormal slices, and their
    lengths.
    """

    signal: Tucker
    noise: list[AxisPrecision]
    components: tuple[FloatArray, FloatArray]
    history: list[tuple[str, int, float, float]]
    chosen: str
    converged: bool


def fit_tensor(
    data: FloatArray,
    ranks: Sequence[int | None],
    structures: Sequence[AxisNoise],
    *,
    center: bool = False,
    max_iter: int = 9,
    tol: float = 1e-2,
    report: Report = silent,
    resume: State | None = None,
) -> TensorFit:
    """Fit a Tucker signal and one noise precision per axis, with nothing to tune.

    The signal is the best one in the metrics of the noise; the noise is estimated from the residual
    plus what the signal has absorbed; edges enter by score tests and are refitted without a
    penalty, as in the fit of one matrix.

    Variances settle first, in `max_iter` iterations at most, then networks. Where the noise is
    stronger than the signal, the first components are noise and may stay so; therefore a second
    stage with networks starts from those of the data without any signal, under which a signal
    stands out. The stage that ends with the highest likelihood, less the price of its edges, is the
    fit.
    """
    offset = data.mean(axis=0) if center else np.zeros(data.shape[1:])
    scale = float(np.sqrt(np.mean((data - offset) ** 2))) or 1.0
    given: dict[str, Any] = {
        "data": (data - offset) / scale,
        "ranks": ranks,
        "structures": structures,
        "center": center,
        "max_iter": max_iter,
        "tol": tol,
    }
    loop = _Loop.begin(**given) if resume is None else _Loop.resume(resume, **given)
    while loop.stage != DONE:
        loop.advance()
        stage, iteration, score, _ = loop.history[-1]
        report(Progress(stage, iteration, score, loop.state))
    return loop.result(offset, scale)


@dataclass(frozen=True)
class _End:
    """Where a stage came to rest."""

    stage: str
    score: float
    converged: bool
    noise: list[AxisPrecision]
    signal: Tucker


@dataclass(eq=False)
class _Loop(Resumable):
    """Where the fit stands."""

    given: ClassVar = ("data", "ranks", "structures", "center", "max_iter", "tol")

    data: FloatArray
    ranks: Sequence[int | None]
    structures: Sequence[AxisNoise]
    center: bool
    max_iter: int
    tol: float
    noise: list[AxisPrecision]
    signal: Tucker
    stage: str = DIAGONAL
    iteration: int = 0
    best: _End | None = None
    history: list[tuple[str, int, float, float]] = field(default_factory=list)

    @classmethod
    def begin(cls, data: FloatArray, ranks: Any, structures: Any, **options: Any) -> Self:
        """Take the variances of the data, and the signal under them."""
        noise = axis_scales(data, structures)
        signal = _rough_tucker(data, ranks, noise, center=options["center"])
        loop = cls(data, ranks, structures, **options, noise=noise, signal=signal)
        if not free_axes(structures):
            loop._end_stage(settled=True)
        return loop

    def advance(self) -> None:
        """Do one noise step and one signal step; end the stage when it is time."""
        before, level = self.signal, self._level()
        structures = self.structures
        if self.stage == DIAGONAL:
            structures = ["diagonal" if each == "graph" else each for each in structures]
        self.noise = axis_noise_step(self.data, before, self.noise, structures)
        self.signal = self._low_rank(before)
        change = max(self._change(before), abs(self._level() - level))
        self.iteration += 1
        self.history.append((self.stage, self.iteration, self.score(), change))
        settled = change < self.tol and self.iteration > 1
        most = self.max_iter if self.stage == DIAGONAL else GRAPH_STEPS
        if settled or self.iteration >= most:
            self._end_stage(settled)

    def _end_stage(self, settled: bool) -> None:
        """Keep the end if it is the best so far, and begin the next stage."""
        end = _End(self.stage, self.score(), settled, self.noise, self.signal)
        if self.best is None or end.score > self.best.score:
            self.best = end
        self.iteration = 0
        if "graph" not in self.structures or self.stage == AGAIN:
            self.stage = DONE
        elif self.stage == DIAGONAL:
            self.stage = GRAPH
        else:
            self.stage = AGAIN
            self.noise = self._networks_of_data()
            self.signal = self._low_rank(None)

    def _networks_of_data(self) -> list[AxisPrecision]:
        """Estimate the noise as if there were no signal."""
        ranks = [0] * self.data.ndim
        nothing = tucker(self.data, ranks, self.noise, center=self.center, max_iter=1)
        noise = axis_scales(self.data, self.structures)
        for _ in range(FIRST_NETWORKS):
            noise = axis_noise_step(self.data, nothing, noise, self.structures)
        return noise

    def score(self) -> float:
        """Return the log-likelihood less ``(log m + 2 log q) / 2`` for every edge."""
        residual = self.data - self.signal.dense()
        size = self.data.size
        value = -0.5 * float(np.vdot(residual, weighted(residual, self.noise)))
        value -= 0.5 * size * float(np.log(2 * np.pi))
        for side in self.noise:
            m = size // side.size
            value += 0.5 * m * side.log_determinant
            value -= 0.5 * (np.log(m) + 2 * np.log(side.size)) * side.n_edges
        return float(value)

    def result(self, offset: FloatArray, scale: float) -> TensorFit:
        """Express the best end in the units of the data."""
        best = self.best
        assert best is not None
        core, factors, mean = tucker(
            self.data, self.ranks, best.noise, center=self.center, start=best.signal
        )
        noise, free = list(best.noise), free_axes(self.structures)
        if not free:
            core = core * scale
        else:
            # The last estimated axis carries the units; its factor stays orthonormal in its metric.
            last = free[-1]
            noise[last] = noise[last].scaled(scale**-2)
            factor = factors[last]
            if factor is None:
                core = core * scale
            else:
                factors = (*factors[:last], factor * scale, *factors[last + 1 :])
        mean = None if mean is None else mean * scale + offset
        lengths = np.linalg.norm(unfold(core, 0), axis=1)
        unit = np.maximum(lengths, np.finfo(float).tiny).reshape(-1, *[1] * (core.ndim - 1))
        constant = self.data.size * np.log(scale)
        return TensorFit(
            signal=Tucker(core, factors, mean),
            noise=in_gauge(noise, self.structures),
            components=(mapped(core / unit, [None, *factors[1:]]), lengths),
            history=[(stage, i, score - constant, c) for stage, i, score, c in self.history],
            chosen=best.stage,
            converged=best.converged,
        )

    def _low_rank(self, start: Tucker | None) -> Tucker:
        return _rough_tucker(self.data, self.ranks, self.noise, center=self.center, start=start)

    def _level(self) -> float:
        """Return the mean log precision of an entry."""
        return sum(side.log_determinant / side.size for side in self.noise)

    def _change(self, before: Tucker) -> float:
        """Return ``|new - old| / |new|`` of the signal; the data have mean square one."""
        present = self.signal.dense()
        size = max(float(np.mean(present**2)), 1e-4)
        return float(np.sqrt(np.mean((present - before.dense()) ** 2) / size))


def fit_matrix(
    data: FloatArray, rank: int, structures: Sequence[AxisNoise], *, center: bool, **options: Any
) -> TensorFit:
    """Fit a matrix by `fit_mnpca` and write the posterior mean as ``F_1 core F_2'``."""
    row, col = ("identity" if s == "unit" else s for s in structures)
    fit = fit_mnpca(data, rank, noise=(row, col), center=center, **options)
    noise = [fit.row_noise, fit.col_noise]
    # The factors are orthonormal in the two metrics.
    parts = identify(*fit.low_rank, *(Metric(side.size, side.precision) for side in noise))
    core, mean = np.diag(parts.singular_values), fit.mean if fit.centered else None
    return TensorFit(
        signal=Tucker(core, (parts.left, parts.right), mean),
        noise=noise,
        components=(fit.loadings.T, fit.singular_values),
        history=list(fit.history),
        chosen=fit.chosen,
        converged=fit.converged,
    )
