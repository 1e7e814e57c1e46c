"""What a fit says about its data, as arrays: networks, whiteness, scree. Drawn by plots, report.

The examples take a fitted ``model`` and the matrix ``X`` that it was fitted to for granted.
"""

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray, IntArray
from mnpca.engines.arrays import on_host
from mnpca.estimators._edges import (
    check_rate,
    item_names,
    precision_edges,
    side_precision,
    side_tests,
)
from mnpca.model.whiteness import correlation_matrix, marchenko_pastur, whiten

__all__ = [
    "Correlations",
    "Edges",
    "Scree",
    "communities",
    "correlations",
    "item_names",
    "learned_groups",
    "marchenko_pastur",
    "named_rows",
    "network_edges",
    "network_order",
    "scree",
    "shown_rate",
    "tested_edges",
    "training_view",
    "whiten",
]

#: False discovery rate of the networks that the report and the exported tables show.
SHOWN_RATE = 0.05
#: Correlations and singular values are taken of at most this many rows and columns.
LARGEST = 2000


@dataclass(frozen=True)
class Edges:
    """Edges of a network, the strongest first; each once, with ``first < second``.

    Attributes
    ----------
    first, second : integer arrays
        Positions of the two items.
    precision, partial_correlation : float arrays
        Entry of the precision matrix, and ``-P_ij / sqrt(P_ii P_jj)``.
    n_items : int
        Number of items of the network, joined or not.
    fdr : float or None
        False discovery rate of the network; None where the edges are those of the fit.
    standard_error, p, q : float arrays or None
        Of the partial correlations; None where the edges are those of the fit. An edge that was
        found by its test and is none of the fit's has the precision 0.

    Examples
    --------
    >>> edges = mnpca.diagnostics.network_edges(model, "columns")
    >>> len(edges.strongest(3)), int(edges.degree().sum()) == 2 * len(edges)
    (3, True)
    """

    first: np.ndarray
    second: np.ndarray
    precision: np.ndarray
    partial_correlation: np.ndarray
    n_items: int
    fdr: float | None = None
    standard_error: np.ndarray | None = None
    p: np.ndarray | None = None
    q: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.first)

    def strongest(self, count: int) -> "Edges":
        """Return the first `count` edges."""
        values: dict[str, Any] = vars(self)
        arrays = {name: v[:count] for name, v in values.items() if isinstance(v, np.ndarray)}
        return Edges(**values | arrays)

    def degree(self) -> IntArray:
        """Return the number of edges of each item."""
        return np.bincount(np.concatenate([self.first, self.second]), minlength=self.n_items)


def learned_groups(model: Any, side: str) -> Any:
    """Return the group of every row or column, named by its number; None where none was learned.

    The largest group is number 1.

    Examples
    --------
    >>> mnpca.diagnostics.learned_groups(model, "rows") is None  # no prior was learned
    True
    """
    groups = getattr(model, "priors_", {}).get(side, {}).get("groups")
    if groups is None:
        return None
    return np.array([f"group {number + 1}" for number in np.asarray(groups).argmax(axis=1)])


def named_rows(model: Any, X: Any) -> Any:
    """Give an array the column names of the training data, which ``transform`` compares.

    Examples
    --------
    >>> named = mnpca.diagnostics.named_rows(model, X)
    >>> model.transform(named).shape
    (60, 2)
    """
    if not hasattr(model, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=model.feature_names_in_)


def network_edges(model: Any, side: Any) -> Edges:
    """Return the edges of a noise network, sorted by the size of the partial correlation.

    Examples
    --------
    >>> edges = mnpca.diagnostics.network_edges(model, "columns")
    >>> len(edges) == model.noise_graph("columns").number_of_edges()
    True
    """
    precision = side_precision(model, side)
    first, second, entries, values = precision_edges(precision)
    order = np.lexsort((second, first, -np.abs(values)))
    size = precision.shape[0]
    return Edges(first[order], second[order], entries[order], values[order], size)


def shown_rate(model: Any, fdr: float = SHOWN_RATE) -> float | None:
    """Return the false discovery rate of the network to show, None where there are no tests.

    Examples
    --------
    >>> mnpca.diagnostics.shown_rate(model) is None  # MNPCA tests its edges, others do not
    True
    """
    return None if getattr(model, "edge_tests_", None) is None else check_rate(fdr)


def tested_edges(model: Any, side: Any, fdr: float | None) -> Edges:
    """Return the tested edges with a false discovery rate; None gives the fit's edges.

    Tested edges too are sorted by the size of the partial correlation.

    Examples
    --------
    >>> tested = mnpca.SparsePrecision().fit(X)
    >>> edges = mnpca.diagnostics.tested_edges(tested, "columns", fdr=0.05)
    >>> bool((edges.q <= 0.05).all())
    True
    """
    if fdr is None:
        return network_edges(model, side)
    precision, tests = side_precision(model, side), side_tests(model, side)
    kept = np.flatnonzero(tests.q <= fdr)
    size = np.abs(tests.partial_correlation[kept])
    kept = kept[np.lexsort((tests.second[kept], tests.first[kept], -size))]
    first, second = tests.first[kept], tests.second[kept]
    # SciPy 1.13 has no empty selection.
    entries = np.asarray(precision[first, second]).ravel() if len(kept) else np.zeros(0)
    errors = tests.standard_error[kept], tests.p[kept], tests.q[kept]
    correlations = tests.partial_correlation[kept]
    return Edges(first, second, entries, correlations, tests.n_items, fdr, *errors)


def communities(edges: Edges) -> IntArray:
    """Return the community of each item: densely joined groups, the largest numbered 0.

    Louvain's method on the sizes of the partial correlations; items without an edge get -1.

    Examples
    --------
    >>> mnpca.diagnostics.communities(mnpca.diagnostics.network_edges(model, "columns")).shape
    (40,)
    """
    import networkx as nx

    graph = nx.Graph()
    weights = np.abs(edges.partial_correlation).tolist()
    graph.add_weighted_edges_from(
        zip(edges.first.tolist(), edges.second.tolist(), weights, strict=True)
    )
    label = np.full(edges.n_items, -1)
    groups = nx.community.louvain_communities(graph, seed=0) if len(edges) else []
    for number, group in enumerate(sorted(groups, key=lambda g: (-len(g), min(g)))):
        label[list(group)] = number
    return label


def network_order(community: IntArray, labels: Any = None) -> IntArray:
    """Return the order of items that shows blocks: by label if given, then by community.

    Examples
    --------
    >>> mnpca.diagnostics.network_order(np.array([1, 0, -1, 0])).tolist()
    [1, 3, 0, 2]
    """
    last = np.where(community < 0, community.max(initial=0) + 1, community)
    if labels is None:
        return np.argsort(last, kind="stable")
    return np.lexsort((last, np.unique(np.asarray(labels).astype(str), return_inverse=True)[1]))


def force_layout(
    first: Any, second: Any, n_nodes: int, *, n_iter: int = 250, seed: int = 0
) -> FloatArray:
    """Place nodes so that joined ones come close and others keep apart.

    Fruchterman and Reingold's forces and cooling, with a pull to the center that keeps separate
    pieces in the picture.

    Parameters
    ----------
    first, second : integer arrays
        Ends of the edges.
    n_nodes : int
        Number of nodes.
    n_iter : int, default=250
        Number of steps.
    seed : int, default=0
        Seed of the initial places.

    Returns
    -------
    ndarray of shape (n_nodes, 2)
        Places within the square from -1 to 1.

    Examples
    --------
    >>> from mnpca.plots import force_layout
    >>> force_layout([0, 1], [1, 2], 3).shape
    (3, 2)
    """
    places = np.random.default_rng(seed).uniform(-1, 1, size=(n_nodes, 2))
    if n_nodes < 2:
        return np.zeros((n_nodes, 2))
    first, second = np.asarray(first, dtype=int), np.asarray(second, dtype=int)
    degree = np.bincount(np.concatenate([first, second]), minlength=n_nodes)
    # Many edges would pull a dense group into one spot: each edge of a busy pair pulls less.
    stiffness = (0.4 / np.maximum(np.minimum(degree[first], degree[second]), 1))[:, None]
    spacing = 2.0 / np.sqrt(n_nodes)
    for step in range(n_iter):
        # Every pair repels with (spacing / distance)^2 times its offset.
        length = np.einsum("ij,ij->i", places, places)
        squared = length[:, None] + length[None, :] - 2 * (places @ places.T)
        repulsion = spacing**2 / np.maximum(squared, 1e-9)
        force = repulsion.sum(axis=1, keepdims=True) * places - repulsion @ places
        along = places[first] - places[second]
        pull = stiffness * along * (np.linalg.norm(along, axis=1, keepdims=True) / spacing)
        np.add.at(force, first, -pull)
        np.add.at(force, second, pull)
        force -= places
        length = np.linalg.norm(force, axis=1, keepdims=True)
        heat = 0.15 * (1 - step / n_iter) + 1e-3
        places = places + force / np.maximum(length, 1e-12) * np.minimum(length, heat)
    places = places - (places.max(axis=0) + places.min(axis=0)) / 2
    return places / max(float(np.abs(places).max()), 1e-12)


def drawing(first: Any, second: Any) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Return the items that edges join, their places, and the edges' ends among these items."""
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    first, second = ends[: len(first)], ends[len(first) :]
    return nodes, force_layout(first, second, len(nodes)), first, second


def joined_order(edges: Edges, community: IntArray, labels: Any) -> tuple[IntArray, IntArray]:
    """Return the joined items in `network_order`, and the place of each item among them."""
    order = network_order(community, labels)
    order = order[edges.degree()[order] > 0]
    place = np.zeros(edges.n_items, dtype=int)
    place[order] = np.arange(len(order))
    return order, place


def training_view(model: Any, X: Any) -> tuple[Any, FloatArray]:
    """Return a model and its training matrix in NumPy, completed and without covariate effects.

    What is left is the signal and the noise that the diagnostics are about.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators of a low-rank signal and two noise networks.
    X : array-like of shape (n, p)
        The matrix that it was fitted to.

    Examples
    --------
    >>> model, X = mnpca.diagnostics.training_view(model, X.tolist())
    >>> type(X).__name__, X.shape
    ('ndarray', (60, 40))
    """
    check_is_fitted(model)
    if not hasattr(model, "row_precision_"):
        raise TypeError(
            "Only models of one matrix with two noise networks have these diagnostics; a "
            f"{type(model).__name__} is not one."
        )
    X = np.asarray(on_host(X), dtype=float)
    if X.ndim != 2:
        raise ValueError(
            f"X must be one matrix, and it has {X.ndim} axes; for several matrices see the "
            "estimator's model_check_."
        )
    shape = (model.row_precision_.shape[0], model.col_precision_.shape[0])
    if X.shape != shape:
        raise ValueError(
            f"X must be the training matrix, {shape[0]} x {shape[1]}, and is "
            f"{X.shape[0]} x {X.shape[1]}."
        )
    model = copy.copy(model)
    vars(model).update({name: on_host(value) for name, value in vars(model).items()})
    if hasattr(model, "row_chunks_"):  # results are computed at once
        model.row_chunks_ = None
    if getattr(model, "completed_", None) is not None:
        X = model.completed_.astype(float)
    if getattr(model, "row_covariates_", None) is not None:
        X = X - (model.row_covariates_ - model.row_covariates_mean_) @ model.row_coef_
    if getattr(model, "col_covariates_", None) is not None:
        X = X - model.col_coef_ @ model.col_covariates_.T
    model.row_covariates_ = model.row_covariates_mean_ = model.col_covariates_ = None
    if np.isnan(X).any():
        raise ValueError("X has missing values that the training matrix did not have.")
    return model, X


@dataclass(frozen=True)
class Correlations:
    """Correlations of all pairs of rows and of columns of a matrix, and its singular values.

    Attributes
    ----------
    row_correlations, column_correlations : arrays
        Correlations of all pairs of rows and of columns; around 0 with standard deviations
        1 / sqrt(p) and 1 / sqrt(n) if the matrix is white.
    singular_values : array
        Of the matrix scaled to unit mean square; between sqrt(n) - sqrt(p) and
        sqrt(n) + sqrt(p), by the Marchenko-Pastur law, if it is white.
    shape : tuple of int
        Shape (n, p) of the matrix they were taken of.

    Examples
    --------
    >>> mnpca.diagnostics.correlations(X).share_above("rows") > 0.0027
    True
    """

    row_correlations: np.ndarray
    column_correlations: np.ndarray
    singular_values: np.ndarray
    shape: tuple[int, int]

    def share_above(self, side: str, deviations: float = 3.0) -> float:
        """Return the share of pairs that are correlated beyond white noise.

        White noise has 0.27% of its pairs beyond three standard `deviations`.
        """
        values = self.row_correlations if side == "rows" else self.column_correlations
        other = self.shape[1] if side == "rows" else self.shape[0]
        return float(np.mean(np.abs(values) > deviations / np.sqrt(other))) if len(values) else 0.0


def correlations(matrix: FloatArray) -> Correlations:
    """Return the correlations and the singular values of a matrix.

    A matrix with more than 2000 rows or columns is thinned to so many at even distances.

    Examples
    --------
    >>> mnpca.diagnostics.correlations(X).column_correlations.shape
    (780,)
    """
    rows, columns = (np.linspace(0, q - 1, min(q, LARGEST)).astype(int) for q in matrix.shape)
    matrix = matrix[np.ix_(rows, columns)]
    size = np.sqrt(np.mean(matrix**2))
    matrix = matrix / size if size > 0 else matrix
    rows, columns = (
        correlation_matrix(m)[np.triu_indices(len(m), k=1)] for m in (matrix, matrix.T)
    )
    return Correlations(rows, columns, np.linalg.svd(matrix, compute_uv=False), matrix.shape)


def residual_correlations(model: Any, X: Any) -> tuple[Correlations, Correlations]:
    """Return the correlations in the residual of a `training_view`, plain and whitened."""
    residual = X - model.denoise()
    whitened = whiten(residual, model.row_precision_, model.col_precision_)
    return correlations(residual), correlations(whitened)


class Histograms(NamedTuple):
    """Densities of two samples, and that of white noise on a finer grid."""

    bins: FloatArray
    before: FloatArray
    after: FloatArray
    at: FloatArray
    law: FloatArray


def histograms(before: Correlations, after: Correlations, kind: str) -> Histograms:
    """Return histograms of ``"singular values"`` or of the pairs of ``"rows"`` or ``"columns"``.

    White noise has singular values by the Marchenko-Pastur law, and correlations that are normal
    with variance one over the length of the rows or columns. Values beyond the picture count in
    its last bars.
    """
    shape = after.shape
    if kind == "singular values":
        samples = before.singular_values, after.singular_values
        edge = float(np.sum(np.sqrt(shape)))
        top = min(1.05 * max(samples[0][0], samples[1][0], edge), 2.5 * edge)
        bins = np.linspace(0, top, int(np.clip(len(samples[1]) // 5, 10, 60)) + 1)
        at = np.linspace(0, top, 181)
        law = marchenko_pastur(at, shape)
    elif kind in ("rows", "columns"):
        name = f"{kind.removesuffix('s')}_correlations"
        samples = getattr(before, name), getattr(after, name)
        deviation = 1 / np.sqrt(shape[1] if kind == "rows" else shape[0])
        limit = min(1.0, 8 * deviation)
        bins, at = np.linspace(-limit, limit, 61), np.linspace(-limit, limit, 121)
        law = np.exp(-((at / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))
    else:
        raise ValueError(f'kind must be "singular values", "rows" or "columns", got {kind!r}.')
    heights = [
        np.histogram(np.clip(values, bins[0], bins[-1]), bins, density=True)[0]
        if len(values)
        else np.zeros(len(bins) - 1)
        for values in samples
    ]
    return Histograms(bins, heights[0], heights[1], at, law)


@dataclass(frozen=True)
class Scree:
    """Leading singular values, in units of the noise edge.

    Attributes
    ----------
    generalized : array
        Of the whitened, centered data, divided by sqrt(n) + sqrt(p): white noise of unit variance
        stays below 1.
    plain : array
        Of the centered data, divided by the same edge and by the noise's root mean square.
    n_components : int
        Number of components the fit kept.

    Examples
    --------
    >>> values = mnpca.diagnostics.scree(model, X)
    >>> values.n_components, values.generalized.shape == values.plain.shape
    (2, True)
    """

    generalized: np.ndarray
    plain: np.ndarray
    n_components: int


def scree(model: Any, X: Any, *, count: int = 20) -> Scree:
    """Return the leading `count` singular values of the training data, plain and generalized.

    Examples
    --------
    >>> mnpca.diagnostics.scree(model, X, count=3).generalized.shape
    (3,)
    """
    X = np.asarray(X, dtype=float)
    edge = np.sum(np.sqrt(X.shape))
    noise = np.sqrt(np.mean((X - model.denoise()) ** 2)) or 1.0
    whitened = whiten(X - model.mean_, model.row_precision_, model.col_precision_)
    generalized, plain = (
        randomized_svd(each, min(count, *X.shape), n_oversamples=20, n_iter=6, random_state=0)[1]
        for each in (whitened, X - X.mean(axis=0))
    )
    return Scree(generalized / edge, plain / (edge * noise), int(model.n_components_))
