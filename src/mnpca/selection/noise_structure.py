"""The structure of the noise: networks, unequal variances, or neither."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca.model.whiteness import EDGE_LEFT, Whiteness, whiteness
from mnpca.noise.estimate import Structure
from mnpca.solvers.mnpca.fit import MNPCAFit

#: A network that links more than this share of the pairs, or an item with more others than this
#: on average, is not sparse.
DENSEST_GRAPH = 0.3
MOST_PARTNERS = 100.0
#: Largest singular value of the whitened residual, in units of the noise edge, from which on
#: what a model calls noise is mostly signal of further components.
SIGNAL_IN_NOISE = 2.0


@dataclass(frozen=True)
class NoiseTrial:
    """A fit with one noise structure and what speaks for or against it.

    Attributes
    ----------
    structure : {"identity", "diagonal", "graph"}
        Of both sides.
    n_row_edges, n_col_edges : int
        Size of the networks.
    partners : float
        With how many others a row (or column, whichever has more) is still correlated so strongly
        that it would call for an edge, on average.
    n_live : int
        Components above ``sqrt n + sqrt p``, where the singular values of noise end.
    signal_strength : float
        ``sum log max(s / (sqrt n + sqrt p), 1)`` over the components.
    score : float
        Evidence lower bound less the price of the edges.
    residual : Whiteness
        Of what the fit leaves over.
    n_matrices : int
        How many matrices were fitted together.
    """

    structure: Structure
    n_row_edges: int
    n_col_edges: int
    partners: float
    n_live: int
    signal_strength: float
    score: float
    residual: Whiteness
    n_matrices: int = 1

    @classmethod
    def of(cls, Y: Any, fit: MNPCAFit, structure: Structure) -> "NoiseTrial":
        """Describe a fit of Y, an array or an Engine."""
        edge = np.sqrt(Y.shape[0]) + np.sqrt(Y.shape[1])
        strengths = fit.singular_values / edge
        residual = whiteness(
            Y,
            fit.mean,
            fit.low_rank,
            fit.row_noise.precision,
            fit.col_noise.precision,
            n_repeats=fit.row_noise.n_repeats,
        )
        row_partners = residual.row_linked * (fit.row_noise.base.size - 1)
        col_partners = residual.col_linked * (Y.shape[1] - 1)
        return cls(
            structure=structure,
            n_row_edges=fit.row_noise.n_edges,
            n_col_edges=fit.col_noise.n_edges,
            partners=max(row_partners, col_partners),
            n_live=int(np.sum(strengths > 1.0)),
            signal_strength=float(np.log(np.maximum(strengths, 1.0)).sum()),
            score=fit.score,
            residual=residual,
            n_matrices=fit.row_noise.n_repeats,
        )

    @property
    def sparse_graph_possible(self) -> bool:
        """Tell whether the correlations left over are few enough to be a sparse network.

        Several matrices show the correlation of items that are far apart in a sparse network,
        too; there only the fit itself can tell.
        """
        if self.n_matrices > 1:
            return True
        share = max(self.residual.row_linked, self.residual.col_linked)
        return share <= DENSEST_GRAPH and self.partners <= MOST_PARTNERS


def graph_is_right(graph: NoiseTrial, diagonal: NoiseTrial) -> bool:
    """Decide whether networks belong into the noise model.

    They do if they whiten the residual, and if the signal stands out more with them than
    without, or unequal variances alone leave a correlated residual. Networks that do not whiten
    the residual describe something that is no sparse network, usually signal of components that
    the model has no room for.
    """
    if graph.n_row_edges + graph.n_col_edges == 0 or not graph.residual.uncorrelated:
        return False
    clearer = graph.signal_strength >= diagonal.signal_strength
    return clearer or not diagonal.residual.uncorrelated


def variances_are_noise(diagonal: NoiseTrial) -> bool:
    """Decide whether the unequal variances of a diagonal fit are those of noise.

    Without a component above the noise nothing can be gained by weights; and where the residual
    holds components far above the noise, its variances are theirs.
    """
    strong = diagonal.residual.largest_singular_value > SIGNAL_IN_NOISE
    return diagonal.n_live > 0 and not strong


def advice(trial: NoiseTrial, tried: list[Structure]) -> str:
    """Say what the residual of a fit shows and what to do about it."""
    residual = trial.residual
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
    if residual.largest_singular_value > EDGE_LEFT:
        found.append(
            f"a component {residual.largest_singular_value:.2f} times as strong as noise can be"
        )
    if not found:
        found.append(
            "singular values unlike those of noise (distance "
            f"{residual.spectrum_distance:.2f} from the Marchenko-Pastur law)"
        )
    remedies = []
    if "graph" not in tried and trial.sparse_graph_possible:
        remedies.append('allow networks with noise="graph"')
    if residual.largest_singular_value > EDGE_LEFT:
        remedies.append("allow more components with a larger n_components")
    if not remedies:
        remedies.append("transform the data or drop duplicated columns")
    return (
        f"The residual is not white under the fitted noise: it holds {' and '.join(found)}. "
        f"{' or '.join(remedies).capitalize()}; otherwise take standard errors, edges and scores "
        "as rough."
    )
