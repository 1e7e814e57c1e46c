"""From a matrix to a fitted model: outliers, rank and noise, given or chosen, and the reasons."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mnpca._typing import BoolArray
from mnpca.engines import engine_for
from mnpca.model.whiteness import Whiteness, whiteness
from mnpca.noise.estimate import Structure, structure_of
from mnpca.solvers.mnpca.fit import MNPCAFit, fit_with
from mnpca.solvers.mnpca.low_rank_step import noise_edge
from mnpca.solvers.mnpca.robust import clean_cells, conditional_outliers
from mnpca.solvers.mnpca.settings import Settings
from mnpca.solvers.mnpca.variational import FactorPrior
from mnpca.solvers.progress import Progress, Report, State, silent

_NAMES: dict[Structure, str] = {
    "graph": "a network",
    "diagonal": "unequal variances",
    "identity": "equal variances",
}


@dataclass(frozen=True)
class ChosenModel:
    """The fit and what it was made of.

    Attributes
    ----------
    fit : MNPCAFit
        The model, with all components of its signal.
    shown : MNPCAFit
        The same with the leading components that were asked for.
    data : array or Engine of shape (n, p)
        What was fitted: the observations, outliers replaced by the signal.
    outliers : boolean array of shape (n, p) or None
        None where no outliers were looked for.
    """

    fit: MNPCAFit
    shown: MNPCAFit
    data: Any
    outliers: BoolArray | None = None

    @property
    def structures(self) -> tuple[Structure, Structure]:
        """Return the noise structures of rows and columns."""
        return structure_of(self.fit.row_noise), structure_of(self.fit.col_noise)


def choose_model(
    Y: Any,
    n_components: float | None,
    settings: Settings,
    *,
    robust: bool,
    report: Report,
    resume: State | None = None,
) -> ChosenModel:
    """Fit the model with the rank that the evidence prefers; show the components asked for.

    The noise does not depend on how many components are asked for: the model is fitted with all
    components that it needs, and the leading ones are shown. Only where more are asked for than
    the evidence finds is it fitted again, with that many.

    Parameters
    ----------
    Y : array or Engine of shape (n, p)
        Data; finding outliers needs a NumPy array.
    n_components : int, float or None
        How many components to show, or the share of the signal that they have; None shows all.
    settings : Settings
        Of the fits, with the rank left to the evidence.
    robust : bool
        Whether to find and replace gross outliers first.
    report, resume
        As in `fit_mnpca`. Fits that were complete are repeated on resuming.
    """

    def run(
        label: str, data: Any, rank: int | None, shown: float | None
    ) -> tuple[MNPCAFit, MNPCAFit]:
        nonlocal resume
        given = engine_for(data), replace(settings, rank=rank)
        if resume is not None and resume["step"] != label:
            # A repeated fit must not take the place of a later one in the checkpoint.
            return fit_with(*given, silent, None, shown)
        state, resume = resume, None
        return fit_with(*given, _labeled(report, label), state, shown)

    def fit(data: Any, shown: float | None, label: str) -> ChosenModel:
        whole, leading = run(label, data, None, shown)
        if isinstance(shown, int) and shown > len(whole.singular_values):
            whole, leading = run(f"{label}{shown} components, ", data, shown, None)
        return ChosenModel(whole, leading, data)

    if not robust:
        return fit(Y, n_components, "")
    if not isinstance(Y, np.ndarray):
        raise TypeError(
            f"robust=True needs the data as a NumPy array, not as a {type(Y).__name__}. "
            "Convert X first, or use robust=False."
        )
    Y = Y.astype(np.float64, copy=False)

    def rank_of(data: Any) -> int:
        if isinstance(n_components, int):
            return n_components
        return len(fit(data, None, "rank for outliers, ").fit.singular_values)

    cleaned, outliers = clean_cells(Y, rank_of, seed=settings.seed)
    first = fit(cleaned, n_components, "outliers, ").fit
    # Detection knew variances only; under the networks of a full model more entries stand out.
    signal = first.denoised()
    residual = np.where(outliers, 0.0, Y - signal)
    more = conditional_outliers(residual, first.row_noise.precision, first.col_noise.precision)
    second = fit(np.where(more, signal, cleaned), n_components, "refit, ")
    return replace(second, outliers=outliers | more)


def _labeled(report: Report, label: str) -> Report:
    """Return a report of one of several fits, whose label goes into stages and checkpoints."""

    def tell(progress: Progress) -> None:
        stage = f"{label}{progress.stage}"
        report(replace(progress, stage=stage, state=lambda: {**progress.state(), "step": label}))

    return tell


def explain(chosen: ChosenModel, asked: int | None) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the noise and the prior of each side, and why the model is as it is.

    `asked` is the number of components that was asked for, if any.
    """
    fit = chosen.fit
    noise: dict[str, Any] = {}
    sides = {"rows": fit.row_noise, "columns": fit.col_noise}
    for (name, side), losses in zip(sides.items(), fit.comparisons, strict=True):
        structure = structure_of(side)
        why = f"The {name} have {_NAMES[structure]}"
        if structure == "graph":
            why += f" (the fit whitens with {side.n_edges} edge{'s' * (side.n_edges != 1)})"
        if losses:
            lost = (f"{loss:.0f} nats with {_NAMES[other]}" for other, loss in losses.items())
            why += f"; the evidence loses {' and '.join(lost)}"
        elif structure != "graph":
            why += "; no pair is correlated clearly enough for an edge that pays"
        why += "." + (_row_units(fit) if name == "rows" else _dependent_columns(fit))
        noise[name] = {
            "structure": structure,
            "n_edges": side.n_edges,
            "evidence_lost_with": dict(losses),
            "why": why,
        }
    noise["rows"]["units"] = fit.row_units if fit.row_units_gain else None
    learned = fit.priors or (FactorPrior("gaussian"), FactorPrior("gaussian"))
    priors = {
        name: {"family": prior.family, "groups": prior.groups, "zero": prior.zero}
        for name, prior in zip(sides, learned, strict=True)
    }
    reasons = [_why_this_rank(fit, asked), *(side["why"] for side in noise.values())]
    return noise, priors, " ".join(reasons)


def _row_units(fit: MNPCAFit) -> str:
    """Say that rows have units of their own, and what that does to the mean row and the scores."""
    if not fit.row_units_gain:
        return ""
    return (
        " The rows have units of their own, and no mean row in common: the signal is larger where "
        f"the noise is, and its evidence loses {fit.row_units_gain:.0f} nats if all rows share "
        "one unit. Scores are in the unit of their row."
    )


def _dependent_columns(fit: MNPCAFit) -> str:
    """Say that columns follow from others, and what that does to the network."""
    count = len(fit.dependent)
    if count == 0:
        return ""
    are = "column is a linear combination" if count == 1 else "columns are linear combinations"
    return (
        f" {count} {are} of others: the signal and the rank are those without, and the network "
        "links what is combined. Drop such columns to see the network of the rest."
    )


def _why_this_rank(fit: MNPCAFit, asked: int | None) -> str:
    """Say why the model has as many components as it has."""
    k = len(fit.singular_values)
    edge = noise_edge((fit.row_noise.size, fit.col_noise.size))
    if asked is not None and asked >= k:
        text = f"{asked} component{'s were' if asked != 1 else ' was'} asked for"
        live = int(np.sum(fit.singular_values > edge))
        if live < asked:
            text += f"; {live or 'none'} of them stand{'s' * (live == 1)} above the noise"
            text += f", {'the rest' if live else 'they'} show what varies most, as PCA would"
        return text + "."
    if k == 0:
        return (
            "No component stands clearly above the noise: what the rows and columns share is "
            "explained by the noise model alone. If you know of a signal, ask for its number of "
            'components with n_components, or for noise="diagonal" to see what the networks have '
            "taken."
        )
    weakest = float(fit.singular_values[-1]) / edge
    text = f"{k} components: the weakest is {weakest:.2f} times as strong as noise can be"
    path = dict(fit.rank_path)
    rivals = [rank for rank in (k - 1, k + 1) if k in path and rank in path]
    if rivals:
        losses = (f"{path[k] - path[rank]:.0f} nats with {rank}" for rank in rivals)
        text += f", and the evidence loses {' and '.join(losses)}"
    return text + "."


def check_residual(chosen: ChosenModel) -> dict[str, Any]:
    """Return the whiteness of a fit's residual, the verdict ``white`` and ``advice``."""
    fit = chosen.fit
    precisions = fit.row_noise.precision, fit.col_noise.precision
    residual = whiteness(
        chosen.data, fit.mean, fit.low_rank, *precisions, n_repeats=fit.row_noise.n_repeats
    )
    advice = _advice(residual, chosen.structures)
    return {**asdict(residual), "white": residual.white, "advice": advice}


def _advice(residual: Whiteness, structures: tuple[Structure, Structure]) -> str:
    """Say what the residual of a fit shows and what to do about it."""
    if residual.white is None:
        return "The matrix is too small to tell whether the residual is white."
    if residual.white:
        return "The whitened residual looks like white noise: the model fits."
    found, remedies = [], []
    if not residual.uncorrelated:
        found.append(
            f"correlations (root mean square beyond chance {residual.row_correlation:.3f} among "
            f"rows, {residual.col_correlation:.3f} among columns)"
        )
        if "graph" not in structures:
            remedies.append('allow networks with noise="graph"')
    if residual.has_component:
        found.append(
            f"a component {residual.largest_singular_value:.2f} times as strong as noise can be"
        )
        remedies.append("allow more components with a larger n_components")
    if not found:
        found.append(
            "singular values unlike those of noise (distance "
            f"{residual.spectrum_distance:.2f} from the Marchenko-Pastur law)"
        )
    remedies = remedies or ["transform the data or drop duplicated columns"]
    return (
        f"The residual is not white under the fitted noise: it holds {' and '.join(found)}. "
        f"{' or '.join(remedies).capitalize()}; otherwise take standard errors, edges and scores "
        "as rough."
    )
