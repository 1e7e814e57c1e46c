"""What was chosen and why, in numbers and in sentences."""

from typing import Any

import numpy as np

from mnpca.model.whiteness import Whiteness
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import Structure, structure_of
from mnpca.solvers.mnpca.fit import MNPCAFit
from mnpca.solvers.mnpca.variational import FactorPrior

#: Noise levels of rows that differ by more cost a decibel and more where the signal differs alike
#: (docs/accuracy.md, "Units").
UNLIKE_ROWS = 20.0

_NAMES: dict[Structure, str] = {
    "graph": "a network",
    "diagonal": "unequal variances",
    "identity": "equal variances",
}


def describe_noise(fit: MNPCAFit) -> dict[str, Any]:
    """Return the noise of each side: structure, edges, and what simpler structures would lose."""
    sides = {"rows": fit.row_noise, "columns": fit.col_noise}
    described: dict[str, Any] = {
        name: {
            "structure": structure_of(side),
            "n_edges": side.n_edges,
            "evidence_lost_with": dict(compared),
            "why": _why(name, side, dict(compared)),
        }
        for (name, side), compared in zip(sides.items(), fit.comparisons, strict=True)
    }
    described["rows"]["why"] += _sizes(fit.row_noise)
    described["columns"]["why"] += _dependence(fit)
    return described


def describe_priors(fit: MNPCAFit) -> dict[str, Any]:
    """Return the learned prior of each side: its family, groups and rows without a signal."""
    none = FactorPrior("gaussian")
    priors = dict(zip(("rows", "columns"), fit.priors or (none, none), strict=True))
    return {
        name: {"family": prior.family, "groups": prior.groups, "zero": prior.zero}
        for name, prior in priors.items()
    }


def explain_rank(fit: MNPCAFit, edge: float, asked: int | None) -> str:
    """Say why the model has as many components as it has."""
    k = len(fit.singular_values)
    path = dict(fit.rank_path)
    if asked is not None and asked >= k:
        text = f"{asked} component{'s were' if asked != 1 else ' was'} asked for"
        live = int(np.sum(fit.singular_values > edge))
        if live < asked:
            text += f"; {live or 'none'} of them stand{'s' * (live == 1)} above the noise"
            text += f", {'the rest' if live else 'they'} show what varies most, as PCA would"
        return text + "."
    if k == 0:
        return (
            "No component stands above the noise: what the rows and columns share is explained "
            "by the noise model alone. If you know of a signal, ask for its number of components "
            'with n_components, or for noise="diagonal" to see what the networks have taken.'
        )
    weakest = float(fit.singular_values[-1]) / edge
    text = f"{k} components: the weakest is {weakest:.2f} times as strong as noise can be"
    rivals = [(rank, path[k] - path[rank]) for rank in (k - 1, k + 1) if k in path and rank in path]
    if rivals:
        losses = " and ".join(f"{loss:.0f} nats with {rank}" for rank, loss in rivals)
        text += f", and the evidence loses {losses}"
    return text + "."


def advice(residual: Whiteness, structures: tuple[Structure, Structure]) -> str:
    """Say what the residual of a fit shows and what to do about it."""
    if residual.white is None:
        return "The matrix is too small to tell whether the residual is white."
    if residual.white:
        return "The whitened residual looks like white noise: the model fits."
    found = []
    if not residual.uncorrelated:
        found.append(
            f"correlations (root mean square beyond chance {residual.row_correlation:.3f} among "
            f"rows, {residual.col_correlation:.3f} among columns)"
        )
    if residual.has_component:
        found.append(
            f"a component {residual.largest_singular_value:.2f} times as strong as noise can be"
        )
    if not found:
        found.append(
            "singular values unlike those of noise (distance "
            f"{residual.spectrum_distance:.2f} from the Marchenko-Pastur law)"
        )
    remedies = []
    if "graph" not in structures and not residual.uncorrelated:
        remedies.append('allow networks with noise="graph"')
    if residual.has_component:
        remedies.append("allow more components with a larger n_components")
    if not remedies:
        remedies.append("transform the data or drop duplicated columns")
    return (
        f"The residual is not white under the fitted noise: it holds {' and '.join(found)}. "
        f"{' or '.join(remedies).capitalize()}; otherwise take standard errors, edges and scores "
        "as rough."
    )


def _sizes(rows: AxisPrecision) -> str:
    """Say that rows differ very much in size, and what to do if their units do."""
    low, high = np.quantile(rows.variances, [0.05, 0.95])
    ratio = float(np.sqrt(high / low))
    if ratio < UNLIKE_ROWS:
        return ""
    return (
        f" The noise of the large rows is {ratio:,.0f} times that of the small ones. If rows have "
        "units of their own, divide each by its spread first; if they are features, transpose X. "
        "Only columns are brought to one unit by the fit."
    )


def _dependence(fit: MNPCAFit) -> str:
    """Say that columns follow from others, and what that does to the network."""
    count = len(fit.dependent)
    if count == 0:
        return ""
    subject = f"{count} columns are linear combinations"
    if count == 1:
        subject = "1 column is a linear combination"
    return (
        f" {subject} of others: the signal and the rank are those without, and the network links "
        "what is combined. Drop such columns to see the network of the rest."
    )


def _why(name: str, side: AxisPrecision, compared: dict[Structure, float]) -> str:
    """Say what one side of the noise was compared with."""
    structure = structure_of(side)
    text = f"The {name} have {_NAMES[structure]}"
    if structure == "graph":
        edges = "1 edge" if side.n_edges == 1 else f"{side.n_edges} edges"
        text += f" of {edges}"
    losses = [f"{loss:.0f} nats with {_NAMES[other]}" for other, loss in compared.items()]
    if losses:
        text += f"; the evidence loses {' and '.join(losses)}"
    elif structure != "graph":
        text += "; no pair is correlated clearly enough for an edge that pays"
    return text + "."
