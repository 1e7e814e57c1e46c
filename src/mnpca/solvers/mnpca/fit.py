"""The MNPCA fit: from a matrix to a signal with its uncertainty and two noise networks."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mnpca._typing import FloatArray, IntArray
from mnpca.engines import engine_for
from mnpca.engines.engine import Engine
from mnpca.model.low_rank import LowRank, components_for_share, fix_signs
from mnpca.model.whiteness import EDGE_LEFT
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, Structure
from mnpca.noise.graph import graph_can_show
from mnpca.solvers.mnpca.beside_signal import with_principal_components
from mnpca.solvers.mnpca.learned import learn_signal
from mnpca.solvers.mnpca.low_rank_step import (
    SURPLUS,
    Center,
    largest_rank,
    leading_components,
    noise_edge,
)
from mnpca.solvers.mnpca.priors import PriorChoice
from mnpca.solvers.mnpca.scaled import Scaled
from mnpca.solvers.mnpca.search import Iterate, Search
from mnpca.solvers.mnpca.settings import SIGNAL_FIRST, Allowed, Settings, trail_of
from mnpca.solvers.mnpca.standardized import (
    Dependence,
    StandardizedData,
    find_dependence,
    units_of,
)
from mnpca.solvers.mnpca.variational import FactorPrior, GeneralizedSVD, Posterior
from mnpca.solvers.progress import Progress, Report, State, silent

#: Rows on which a search with very many of them begins ...
SAMPLED_ROWS = 2000
#: ... and how many times as many there have to be, without and with a network among them.
MANY, MANY_WITH_NETWORK = 2, 20
#: Rows have units of their own if the evidence gains so many nats for each. With two components or
#: more it gains .2 to .4 over one decade of units and .8 over two. Where rows differ in noise alone
#: it loses as much, but in matrices of 60 x 40 seemed to gain up to .16.
CLEAR_GAIN = 0.2


@dataclass(frozen=True)
class Candidate:
    """The end of one stage of the search.

    `group_gain` is what groups among rows and columns add to the evidence. It is asked where two
    ends of the search compete; 0 elsewhere.
    """

    name: str
    n_components: int
    evidence: float
    group_gain: float
    n_row_edges: int
    n_col_edges: int


@dataclass(frozen=True)
class MNPCAFit:
    """A fitted model ``Y = 1 mean' + signal + E``, E ~ MN(inv A, inv B), logdet A = 0.

    Attributes
    ----------
    mean : array of shape (p,)
        Mean row, zeros where the model has none.
    centered : bool
        Whether the model has a mean row.
    low_rank : LowRank
        Posterior mean of the signal, the mean row left out.
    signal_variance : LowRank
        Posterior variance of every entry of signal + mean, as factors of an n x p matrix.
    scores, loadings, singular_values : arrays
        Generalized SVD of ``Y - 1 mean'`` under A and B: scores are U diag(s), loadings V with
        V'BV = I.
    priors : pair of FactorPrior or None
        The priors of scores and of loadings, where they were learned.
    row_noise, col_noise : AxisPrecision
        A and B with their spectra by component.
    elbo, evidence : float
        Evidence lower bound, and the evidence by which fits are compared (see `evidence`).
    history : tuple of (stage, iteration, evidence, change)
        Every outer iteration.
    candidates : tuple of Candidate
        The ends of all stages; `chosen` names the one that won.
    rank_path : tuple of (rank, evidence)
        The highest evidence that was seen at each rank on the trail that won.
    comparisons : pair of dict
        For rows and for columns: what the evidence loses with a simpler structure on that side.
    converged : bool
        Whether the trail that won settled before its last iteration.
    last_change : float
        Relative change of the signal or of the noise level in that iteration.
    n_iter : int
        Outer iterations in all.
    dependent : array of int
        Columns that are linear combinations of others (see `find_dependence`).
    row_units : array of shape (n,)
        By what rows were divided for the fit: ones where they share their units.
    row_units_gain : float
        How much the evidence loses if they are not divided, under the same noise.
    """

    mean: FloatArray
    centered: bool
    low_rank: LowRank
    signal_variance: LowRank
    scores: FloatArray
    loadings: FloatArray
    singular_values: FloatArray
    priors: tuple[FactorPrior, FactorPrior] | None
    row_noise: AxisPrecision
    col_noise: AxisPrecision
    elbo: float
    evidence: float
    history: tuple[tuple[str, int, float, float], ...]
    candidates: tuple[Candidate, ...]
    rank_path: tuple[tuple[int, float], ...]
    comparisons: tuple[dict[Structure, float], dict[Structure, float]]
    chosen: str
    converged: bool
    last_change: float
    n_iter: int
    dependent: IntArray
    row_units: FloatArray
    row_units_gain: float

    def denoised(self) -> FloatArray:
        """Return the posterior mean of the training matrix's signal, mean included."""
        dense: FloatArray = self.low_rank.dense() + self.mean
        return dense


def fit_mnpca(
    Y: Any,
    rank: int | None = None,
    *,
    noise: Allowed | tuple[Allowed, Allowed] = "auto",
    center: Center = "auto",
    max_iter: int = 9,
    tol: float = 1e-2,
    random_state: int = 0,
    n_matrices: int = 1,
    prior: PriorChoice = "auto",
    report: Report = silent,
    resume: State | None = None,
) -> MNPCAFit:
    """Fit signal and noise networks with nothing to tune.

    Parameters
    ----------
    Y : array or Engine of shape (n, p)
        Data without missing entries; anything that `mnpca.engines.engine_for` takes.
    rank : int, optional
        Number of components, 0 allowed; chosen by the evidence where it is None.
    noise : {"auto", "identity", "diagonal", "graph"} or a pair of these
        Structure of the noise precisions, of both or of rows and columns.
    center : bool or "auto"
        Whether the model has a mean row; "auto" compares both by their evidence.
    max_iter : int
        Outer iterations of the stage with unequal variances.
    tol : float
        A stage ends when the signal and the level of the noise change by less than this share.
    random_state : int
        Seed of the subspace iteration's random columns.
    n_matrices : int
        Y holds so many matrices, one under the other, that share mean row, loadings and both
        noise precisions (A is then repeated, see `AxisPrecision`).
    prior : {"auto", "gaussian", "mixture"}
        What rows of scores and of loadings are drawn from; see `learn_signal`.
    report : callable
        Called after every outer iteration.
    resume : State, optional
        A state that `report` was given, to continue from.
    """
    rows, cols = (noise, noise) if isinstance(noise, str) else noise
    settings = Settings(rank, rows, cols, center, max_iter, tol, random_state, n_matrices, prior)
    return fit_with(Y, settings, report, resume)[0]


def fit_with(
    Y: Any,
    settings: Settings,
    report: Report = silent,
    resume: State | None = None,
    shown: float | None = None,
) -> tuple[MNPCAFit, MNPCAFit]:
    """Fit with the given settings; return the fit, and the same with its leading components only.

    The second has the noise of the first and its `shown` leading components (all of them where
    `shown` is None or more than there are); below 1 it is a share, see `components_for_share`.
    """
    given = engine_for(Y)
    dependence = None
    if settings.complete and settings.col_structure in ("auto", "graph"):
        dependence = find_dependence(given)
    found = _search(Scaled.of(given, settings, dependence), settings, report, resume)
    # With a mean row that is asked for, and in several matrices, rows are what they are.
    if settings.complete and settings.center is not True and settings.n_matrices == 1:
        found = _with_row_units(found, given, dependence, report)
    scaled, best, engine = found.scaled, found.best, found.scaled.kept.engine

    def fields(posterior: Posterior) -> dict[str, Any]:
        learned = posterior
        if settings.prior is not None:
            learned = learn_signal(engine, best.noise, posterior, settings.prior)
        svd = posterior.svd
        if settings.rank is not None:
            svd = with_principal_components(engine, best.noise, svd, settings.seed)
        if scaled.dependence is None:
            return posterior_fields(learned, best.noise, scaled.whole, svd)
        whole = scaled.dependence.posterior(learned, best.noise.col)
        noise = NoiseModel(best.noise.row, scaled.dependence.precision(best.noise.col))
        svd = svd._replace(right=scaled.dependence.expanded(svd.right))
        return posterior_fields(whole, noise, scaled.whole, svd)

    known = outcome(found)
    del found  # the ends of its trails: with few columns their scores are not thin beside the data
    fit = MNPCAFit(**fields(best.posterior), **known)
    if shown is not None and 0 < shown < 1:
        shown = components_for_share(fit.singular_values, shown)
    if shown is None or shown >= best.posterior.rank:
        return fit, fit
    leading = leading_components(engine, best.noise, best.posterior, int(shown))
    return fit, replace(fit, **fields(leading))


@dataclass(frozen=True)
class _Found:
    """What a search has found, and in which units."""

    scaled: Scaled
    search: Search
    best: Iterate
    comparisons: tuple[dict[Structure, float], dict[Structure, float]]
    row_units_gain: float = 0.0

    @property
    def has_signal(self) -> bool:
        """Tell whether any component stands clearly above the noise."""
        edge = EDGE_LEFT * noise_edge(self.scaled.kept.engine.shape)
        return bool((self.best.posterior.svd.singular_values > edge).any())


def _search(
    scaled: Scaled, settings: Settings, report: Report, resume: State | None = None
) -> _Found:
    engine, settings = scaled.kept.engine, replace(settings, center=scaled.kept.center)
    if resume is not None and "todo" in resume:
        search = Search.resume(resume, engine=engine, settings=settings)
    else:
        search = _begin(engine, settings, report)
    best = search.run(report)
    while settings.rank is None and settings.most <= best.posterior.rank < largest_rank(
        engine.shape
    ):
        # Under a wrong noise hundreds of components stand above it. That many are looked for only
        # where the right noise wants them.
        settings = replace(settings, most=4 * settings.most)
        search = _begin(engine, settings, report)
        best = search.run(report)
    return _Found(scaled, search, *search.simplified(best))


def _with_row_units(
    first: _Found, given: Engine, dependence: Dependence | None, report: Report
) -> _Found:
    """Search again with rows in units of their own, where the signal goes with these.

    A row is larger than others because it has more noise, or because of its unit: then its signal
    is as much larger. Its unit is taken from its noise, and the signal's evidence tells the two
    cases apart. Both are asked under the same noise, since noise steps favor the units that they
    are done in: under the noise that was found, and under the one that a search in the new units
    finds. Where no signal was found, the noise has none to ask about.
    """
    settings, row = first.search.settings, first.best.noise.row
    if np.ptp(units_of(np.sqrt(row.variances))) == 0.0:
        return first
    own = Scaled.of(given, settings, dependence, units_of(first.scaled.row_noise(first.best)))

    def gain(found: _Found) -> float:
        noise = found.scaled.kept.from_scaled(found.best.noise)
        return own.signal_evidence(noise, settings) - first.scaled.signal_evidence(noise, settings)

    def tell(progress: Progress) -> None:
        # A fit that is interrupted in this part begins it anew.
        stage = f"units of rows, {progress.stage}"
        report(replace(progress, stage=stage, state=first.search.state))

    least = CLEAR_GAIN * len(row.variances)
    if first.has_signal and gain(first) < least:
        return first
    rival = _search(own, settings, tell)
    if not rival.has_signal or (advantage := gain(rival)) < least:
        return first
    return replace(rival, row_units_gain=advantage)


def _begin(engine: Engine, settings: Settings, report: Report) -> Search:
    """Begin the search; where there are very many rows, with what a part of them shows.

    Which kind of model fits, how many components it has and what links the columns can be seen on
    some thousand rows. All rows then take one trail from there, with networks of their own if
    the columns are enough to show any.
    """
    n, p = engine.shape
    asked = (settings.row_structure, settings.col_structure)
    row_network = asked[0] in ("auto", "graph") and graph_can_show(n, p)
    many = SAMPLED_ROWS * (MANY_WITH_NETWORK if row_network else MANY)
    if settings.rank is not None or settings.n_matrices > 1 or n <= many:
        return Search.begin(engine, settings)
    rows = np.linspace(0, n - 1, SAMPLED_ROWS).astype(int)
    part = Search.begin(engine_for(engine.block(rows, np.arange(p)).astype(np.float32)), settings)

    def tell(progress: Progress) -> None:
        # This part is quick: a fit that is interrupted in it begins anew.
        report(replace(progress, stage=f"sample, {progress.stage}", state=dict))

    best = part.run(tell)
    noise = NoiseModel(AxisPrecision.diagonal(np.ones(n)), best.noise.col)
    trail = SIGNAL_FIRST if row_network else trail_of(part.best_name())
    held = min(best.posterior.rank + SURPLUS, largest_rank(engine.shape))
    return Search.go_on(engine, settings, trail, noise, held)


def outcome(found: _Found) -> dict[str, Any]:
    """Return how the search went, in the units of the data, by the names of a fit's fields."""
    scaled, search, best = found.scaled, found.search, found.best
    chosen = search.best_name()
    settled, last_change = search.ending(trail_of(chosen))
    constant = scaled.whole.constant
    dependence = scaled.dependence
    return {
        "elbo": best.posterior.elbo + constant,
        "evidence": best.evidence + constant,
        "history": tuple(
            (stage, iteration, value + constant, change)
            for stage, iteration, value, change in search.history
        ),
        "candidates": tuple(
            Candidate(
                name,
                end.posterior.rank,
                end.evidence + constant,
                end.group_gain or 0.0,
                end.noise.row.n_edges,
                end.noise.col.n_edges,
            )
            for name, end in search.finished.items()
        ),
        "rank_path": tuple((rank, value + constant) for rank, value in search.rank_path()),
        "comparisons": found.comparisons,
        "chosen": chosen,
        "converged": settled,
        "last_change": last_change,
        "n_iter": len(search.history),
        "dependent": np.zeros(0, int) if dependence is None else dependence.dependent,
        "row_units": scaled.row_units,
        "row_units_gain": found.row_units_gain,
    }


def posterior_fields(
    posterior: Posterior,
    noise: NoiseModel,
    standardized: StandardizedData,
    svd: GeneralizedSVD,
    row_share: FloatArray | None = None,
    col_share: FloatArray | None = None,
) -> dict[str, Any]:
    """Return signal and noise of a fit, in the units of the data, by the names of its fields.

    Scores and loadings are those of the decomposition `svd` of the data. `row_share` and
    `col_share` are as in `signal_variance`.
    """
    row_scale = standardized.row_scale
    scores, loadings = fix_signs(
        row_scale * svd.left * svd.singular_values, svd.right * standardized.scale
    )
    left, right = signal_variance(posterior, noise, row_share, col_share)
    in_data = standardized.from_scaled(noise)
    return {
        "mean": posterior.mean * standardized.scale[:, 0] + standardized.offset,
        "centered": posterior.centered,
        "low_rank": LowRank(row_scale * posterior.scores, posterior.loadings * standardized.scale),
        "signal_variance": LowRank(row_scale**2 * left, right * standardized.scale**2),
        "scores": scores,
        "loadings": loadings,
        "singular_values": svd.singular_values,
        "priors": posterior.priors,
        "row_noise": in_data.row,
        "col_noise": in_data.col,
    }


def signal_variance(
    posterior: Posterior,
    noise: NoiseModel,
    row_share: FloatArray | None = None,
    col_share: FloatArray | None = None,
) -> LowRank:
    """Posterior variance of every entry of ``left right'``, as thin factors.

    With row covariances T diag(c_i) T' of X and S diag(d_j) S' of W, the variance of
    ``x_i' w_j`` is ``x_i' S diag(d_j) S' x_i + w_j' T diag(c_i) T' w_j`` plus
    ``tr(T diag(c_i) T' S diag(d_j) S')``; each term is a product of something of i and of j.

    The posterior takes every cell for observed. Where only a share of what a row (column) has to
    say about its scores (loadings) was, their variances are divided by that share.
    """
    left: list[FloatArray] = []
    right: list[FloatArray] = []
    if posterior.right_factor is not None:
        basis = posterior.right_factor.basis
        col_variances = posterior.right_factor.row_variances(noise.col)
        if col_share is not None:
            col_variances = col_variances / col_share[:, None]
        left.append((posterior.left @ basis) ** 2)
        right.append(col_variances)
    if posterior.left_factor is not None and posterior.right_factor is not None:
        k = posterior.rank
        basis = posterior.left_factor.basis
        variances = posterior.left_factor.row_variances(noise.row)
        if row_share is not None:
            variances = variances / row_share[:, None]
        overlap = (basis.T @ posterior.right_factor.basis[:k]) ** 2
        left.append(variances)
        right.append((posterior.loadings @ basis) ** 2 + col_variances @ overlap.T)
    if posterior.undetected:
        # A component of scores and loadings with variance one, times s, can be detected from
        # s^4 = 1 / (tr(A^2) tr(B^2)) on. Below, data say nothing of s: uniform, it has a third of
        # the limit as its mean square.
        limit = float(np.sum(noise.row.eigenvalues**2) * np.sum(noise.col.eigenvalues**2)) ** -0.5
        left.append(np.full((noise.row.size, 1), posterior.undetected * limit / 3.0))
        right.append(np.ones((noise.col.size, 1)))
    if not left:
        return LowRank(np.zeros((noise.row.size, 0)), np.zeros((noise.col.size, 0)))
    return LowRank(np.column_stack(left), np.column_stack(right))
