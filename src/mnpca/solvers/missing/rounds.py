"""Expectation and maximization for MNPCA: signal and noise steps on a matrix with missing cells."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from mnpca._typing import BoolArray, FloatArray
from mnpca.engines import Engine, engine_for
from mnpca.model.low_rank import LowRank
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure
from mnpca.solvers.missing.incomplete import (
    Completion,
    Expectation,
    Incomplete,
    Outcome,
    relative_change,
)
from mnpca.solvers.mnpca.evidence import penalized_evidence
from mnpca.solvers.mnpca.fit import MNPCAFit, posterior_fields
from mnpca.solvers.mnpca.learned import learn_signal
from mnpca.solvers.mnpca.low_rank_step import Center, low_rank_step, noise_edge
from mnpca.solvers.mnpca.noise_step import Memory, noise_step
from mnpca.solvers.mnpca.priors import PriorChoice
from mnpca.solvers.mnpca.search import FINAL_SWEEPS
from mnpca.solvers.mnpca.standardized import StandardizedData
from mnpca.solvers.mnpca.variational import GeneralizedSVD, Posterior
from mnpca.solvers.progress import Progress, Report, State, pack, silent, unpack

#: Noise steps from the end of a search, and most noise steps from another start ...
ROUNDS, ROUNDS_FROM_START = 3, 8
#: ... where they end when the signal changes by less than this share; the draws never let it
#: stand still.
STILL = 0.05
#: Low-rank steps before each noise step but the first.
SIGNAL_STEPS = 1
#: Low-rank steps under the final noise, at most, and the change of the signal at which they end.
FINAL_STEPS, FINAL_TOL = 5, 2e-3
#: How often the priors are learned, each time on cells that were expected under the last ones.
LEARNING_STEPS = 2
#: Accuracy of the final conditional means.
FINAL_CELL_TOL = 1e-4
#: The name of the stage.
STAGE = "expectation"


@dataclass(frozen=True)
class CompletedFit:
    """An MNPCA fit of an incomplete matrix.

    `data` is a complete matrix without effects whose noise has the fitted covariances.
    """

    fit: MNPCAFit
    outcome: Outcome
    data: FloatArray


@dataclass(frozen=True)
class _Point:
    """Where the rounds stand, in units of the data: all that the next one reads.

    The signal has its mean row; `rounds` has the score and the change of the signal of every round.
    """

    noise: NoiseModel
    signal: LowRank
    loadings: FloatArray
    centered: bool
    rounds: tuple[tuple[float, float], ...] = ()


#: A signal under one noise model, and the matrix that is expected with it.
Settled: TypeAlias = tuple[Posterior, Completion]


@dataclass(eq=False)
class MissingRounds:
    """Rounds of expectation, low-rank steps and a noise step, from a fit of a completed matrix.

    There are `n_rounds` at most; more than three only until the signal hardly changes. With
    `prune`, components below ``sqrt n + sqrt p``, where the singular values of noise end, are left
    out of the result; their posterior mean is next to nothing.
    """

    problem: Incomplete
    guess: FloatArray
    start: MNPCAFit
    structures: tuple[Structure, Structure]
    center: Center
    seed: int
    n_rounds: int = ROUNDS
    prune: bool = False

    def __post_init__(self) -> None:
        self.standardized = StandardizedData.of(self.guess, self.center, self.structures[1])
        self.rank = len(self.start.singular_values)

    def run(self, report: Report, outer: Callable[[], State], resume: State | None) -> CompletedFit:
        """Do all rounds and the final low-rank steps.

        `outer` makes the state of what came before, for checkpoints; `resume` is the state of an
        earlier run, or None.
        """
        point = self._beginning() if resume is None else unpack(_Point, resume["rounds"])
        self.end = self._rounds_from(point, report, outer)
        return self._finish(self.end)

    def learned(self, prior: PriorChoice | None) -> CompletedFit:
        """Return the outcome of `run` with learned priors of scores and loadings."""
        return self._finish(self.end, prior)

    def predictions(self, completed: CompletedFit, hidden: BoolArray) -> FloatArray:
        """Return what the model expects of observed cells that it is re-estimated without.

        The rounds begin with the outcome of `run`: its signal, which has forgotten the hidden
        cells after a few expectations, and its variances. Its networks would not forget, since a
        large value in one hidden cell can make an edge.
        """
        other, missing = copy.copy(self), self.problem.missing | hidden
        matrix = np.where(hidden, 0.0, self.problem.matrix)
        other.problem = replace(self.problem, matrix=matrix, missing=missing)
        other.start, other.center = completed.fit, completed.fit.centered
        other.n_rounds = ROUNDS_FROM_START
        known = other._beginning()
        # Eigenvalues, of which variances are made, have a floor in the solver's units.
        scaled = other.standardized.to_scaled(known.noise)
        sides = (AxisPrecision.diagonal(1.0 / each.variances) for each in (scaled.row, scaled.col))
        beginning = replace(known, noise=other.standardized.from_scaled(NoiseModel(*sides)))
        point = other._rounds_from(beginning, silent, dict)
        _, completion = other._settle(other._under(point.noise), point, point.centered)
        return np.asarray(completion.filled[hidden])

    def _beginning(self) -> _Point:
        """Return the fit to start from as a point."""
        fit = self.start
        noise = NoiseModel(fit.row_noise, fit.col_noise)
        return _Point(noise, _with_mean(fit.low_rank, fit.mean), fit.loadings, fit.centered)

    def _rounds_from(self, point: _Point, report: Report, outer: Callable[[], State]) -> _Point:
        """Do the rounds that are left."""
        while len(point.rounds) < self.n_rounds:
            if len(point.rounds) >= ROUNDS and point.rounds[-1][1] < STILL:
                break
            point = self._round(point)
            number, (score, _) = len(point.rounds), point.rounds[-1]
            state = partial(_state, point, outer)
            report(Progress(STAGE, number, score, state))
        return point

    def _round(self, point: _Point) -> _Point:
        """Return the next point: the signal under the present noise, then the noise."""
        expectation, number = self._under(point.noise), len(point.rounds) + 1
        if number == 1:
            posterior, completion = self._settle(expectation, point, self.center)
        else:
            posterior, completion = self._signal_steps(
                expectation, point, point.centered, SIGNAL_STEPS
            )
        rng = np.random.default_rng([self.seed, number])
        scaled = self.standardized.to_scaled(point.noise)
        noise = noise_step(
            self._engine(expectation.for_noise(completion, rng)),
            posterior,
            scaled,
            *self.structures,
            Memory(),  # another draw may have other edges
        )
        signal = self._in_data(posterior)
        score = penalized_evidence(scaled, posterior) + self.standardized.constant
        change = relative_change(signal.dense(), point.signal.dense())
        return _Point(
            self.standardized.from_scaled(noise),
            signal,
            self._loadings(posterior),
            posterior.centered,
            (*point.rounds, (score, change)),
        )

    def _settle(self, expectation: Expectation, point: _Point, center: Center) -> Settled:
        """Let the signal settle; ``center="auto"`` compares the evidence with and without a mean.

        Expected cells agree with the model they were expected under, so each of the two gets its
        own completion before they are compared.
        """
        options = (False, True) if center == "auto" else (bool(center),)
        ends = [self._signal_steps(expectation, point, each, FINAL_STEPS) for each in options]
        return max(ends, key=lambda end: end[0].elbo)

    def _signal_steps(
        self, expectation: Expectation, point: _Point, centered: bool, steps: int
    ) -> Settled:
        """Alternate expectation and low-rank step, at most `steps` times."""
        signal, loadings, cells = point.signal.dense(), point.loadings, None
        for _ in range(steps):
            completion = expectation.complete(signal, cells)
            posterior = self._low_rank(expectation, completion, point.noise, loadings, centered)
            old, signal = signal, self._in_data(posterior).dense()
            loadings, cells = self._loadings(posterior), completion.cells
            if relative_change(signal, old) < FINAL_TOL:
                break
        return posterior, expectation.complete(signal, cells)

    def _finish(self, point: _Point, prior: PriorChoice | None = None) -> CompletedFit:
        """Let the signal settle under the final noise, and describe what came out."""
        expectation = self._under(point.noise)
        posterior, completion = self._settle(expectation, point, point.centered)
        if self.prune:
            above = posterior.svd.singular_values > noise_edge(self.problem.matrix.shape)
            self.rank = int(np.sum(above))
        loadings = self._loadings(posterior)
        posterior = self._low_rank(
            expectation, completion, point.noise, loadings, point.centered, FINAL_SWEEPS
        )
        svd, scaled = posterior.svd, self.standardized.to_scaled(point.noise)
        signal = self._in_data(posterior).dense()
        completion = expectation.complete(signal, completion.cells, tol=FINAL_CELL_TOL)
        for _ in range(LEARNING_STEPS):
            if prior is None:
                break
            engine = self._engine(expectation.for_signal(completion))
            posterior = learn_signal(engine, scaled, posterior, prior)
            signal = self._in_data(posterior).dense()
            completion = expectation.complete(signal, completion.cells, tol=FINAL_CELL_TOL)
        drawn = expectation.for_noise(completion, np.random.default_rng([self.seed, 0]))
        fit = self._as_fit(posterior, point, svd)
        return CompletedFit(fit, expectation.outcome(completion, fit.signal_variance), drawn)

    def _as_fit(self, posterior: Posterior, point: _Point, svd: GeneralizedSVD) -> MNPCAFit:
        scaled = self.standardized.to_scaled(point.noise)
        shares = observed_shares(self.problem.missing, posterior, scaled)
        rounds = ((STAGE, number, *entry) for number, entry in enumerate(point.rounds, 1))
        history = (*self.start.history, *rounds)
        return replace(
            self.start,
            **posterior_fields(posterior, scaled, self.standardized, svd, *shares),
            elbo=posterior.elbo + self.standardized.constant,
            evidence=penalized_evidence(scaled, posterior) + self.standardized.constant,
            history=history,
            chosen=STAGE,
            converged=False,  # left to the last change
            last_change=point.rounds[-1][1],
            n_iter=len(history),
        )

    def _under(self, noise: NoiseModel) -> Expectation:
        return self.problem.under(noise.row.precision, noise.col.precision)

    def _engine(self, matrix: FloatArray) -> Engine:
        """Return a completed matrix in the solver's units."""
        units = self.standardized
        return engine_for(matrix).standardized(units.offset, units.scale[:, 0])

    def _low_rank(
        self,
        expectation: Expectation,
        completion: Completion,
        noise: NoiseModel,
        loadings: FloatArray,
        centered: bool,
        sweeps: int = 8,
    ) -> Posterior:
        scaled = self.standardized.to_scaled(noise)
        return low_rank_step(
            self._engine(expectation.for_signal(completion)),
            scaled.row,
            scaled.col,
            self.rank,
            center=centered,
            start=loadings / self.standardized.scale,
            max_sweeps=sweeps,
            seed=self.seed,
        )

    def _loadings(self, posterior: Posterior) -> FloatArray:
        """Return the loadings of the posterior's decomposition, in the units of the data."""
        return posterior.svd.right * self.standardized.scale

    def _in_data(self, posterior: Posterior) -> LowRank:
        """Return the signal, mean row included, in the units of the data."""
        right = posterior.right * self.standardized.scale
        return _with_mean(LowRank(posterior.left, right), self.standardized.offset)


def _state(point: _Point, outer: Callable[[], State]) -> State:
    return {**outer(), "rounds": pack(point)}


def observed_shares(
    missing: BoolArray, posterior: Posterior, noise: NoiseModel
) -> tuple[FloatArray, FloatArray]:
    """Return how much of what a row says about its scores was observed, and of a column.

    Column j counts by ``b_jj |w_j|^2``, what it contributes to ``W'BW``, and row i by
    ``a_ii |x_i|^2``; all count alike where there is no signal.
    """
    col_weight = noise.col.precision.diagonal() * np.sum(posterior.right**2, axis=1)
    row_weight = noise.row.precision.diagonal() * np.sum(posterior.left**2, axis=1)
    shares = []
    for observed, weight in ((~missing, col_weight), (~missing.T, row_weight)):
        total = float(weight.sum())
        weight = weight / total if total > 0 else np.full(len(weight), 1.0 / len(weight))
        # A share of zero would be an infinite variance; the prior bounds it.
        shares.append(np.maximum(observed @ weight, 1e-2))
    return shares[0], shares[1]


def _with_mean(signal: LowRank, mean: FloatArray) -> LowRank:
    """Return a signal with a mean row."""
    ones = np.ones((len(signal.left), 1))
    return LowRank(np.column_stack([signal.left, ones]), np.column_stack([signal.right, mean]))
