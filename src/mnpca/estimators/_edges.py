"""Noise networks of a fitted model: as graphs, as tables of edges with an error rate, compared."""

from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mnpca._typing import FloatArray, IntArray
from mnpca.noise.edges import EdgeTests, compare_tests
from mnpca.solvers.progress import Progress, Report, silent

SIDES = ("rows", "columns")
TESTED_VALUES = ("partial_correlation", "standard_error", "z", "p", "q")


def stored(tests: EdgeTests) -> dict[str, Any]:
    """Return edge tests as plain values that a model file can hold, in little room."""
    values = {field.name: getattr(tests, field.name) for field in fields(EdgeTests)}
    return {name: _retyped(value, "i4", "f4") for name, value in values.items()}


def restored(values: dict[str, Any]) -> EdgeTests:
    """Return the edge tests that `stored` was given."""
    return EdgeTests(**{name: _retyped(value, "i8", "f8") for name, value in values.items()})


def _retyped(value: Any, integers: str, floats: str) -> Any:
    """Return an array with other numbers, anything else as it is."""
    kind = value.dtype.kind if isinstance(value, np.ndarray) else ""
    return value.astype({"i": integers, "f": floats}[kind]) if kind in ("i", "f") else value


def _named(model: Any, side: Any) -> Any:
    """Return the name of axis 0 or 1 of a matrix; axes of a tensor have numbers."""
    is_number = isinstance(side, Integral) and side in (0, 1)
    return SIDES[side] if is_number and not hasattr(model, "precisions_") else side


def side_precision(model: Any, side: Any) -> Any:
    """Return the precision matrix of ``"rows"`` or ``"columns"``; of a tensor, of an axis."""
    check_is_fitted(model)
    side = _named(model, side)
    if hasattr(model, "precisions_"):
        last = len(model.precisions_) - 1
        if not isinstance(side, Integral) or not -last - 1 <= int(side) <= last:
            raise ValueError(f"axis must be 0 to {last}, got {side!r}.")
        return model.precisions_[side]
    if hasattr(model, "precision_"):
        if side != "columns":
            raise ValueError(f'side must be "columns", got {side!r}: only these have a network.')
        return model.precision_
    if side not in SIDES:
        raise ValueError(f'side must be "rows" or "columns", got {side!r}.')
    return model.row_precision_ if side == "rows" else model.col_precision_


def item_names(model: Any, side: Any) -> list[str]:
    """Names of the rows or columns of the training data; their numbers where it had none.

    Examples
    --------
    >>> import mnpca
    >>> data = mnpca.datasets.make_paper_small(n_samples=30, n_features=20, density=0.1)
    >>> model = mnpca.GeneralizedPCA(2, col_metric=data.col_precision).fit(data.Y)
    >>> mnpca.diagnostics.item_names(model, "columns")[:3]
    ['0', '1', '2']
    """
    attributes = {"rows": "sample_names_in_", "columns": "feature_names_in_"}
    names = getattr(model, attributes.get(_named(model, side), ""), None)
    if names is None:
        names = range(side_precision(model, side).shape[0])
    return [str(name) for name in names]


def side_tests(model: Any, side: Any) -> EdgeTests:
    """Return the edge tests of one side of a fitted model, or say why it has none."""
    check_is_fitted(model)
    side = _named(model, side)
    if side not in SIDES:
        raise ValueError(f'side must be "rows" or "columns", got {side!r}.')
    tests = getattr(model, "edge_tests_", None)
    if not hasattr(model, "edges"):
        raise ValueError(f"{type(model).__name__} tests no edges; MNPCA and SparsePrecision do.")
    if tests is None:
        raise ValueError(
            f"This {type(model).__name__} has no tests of its edges: it was fitted to sparse data, "
            "to data outside memory, or by an earlier version. Fit it again, to a NumPy array or "
            "data frame."
        )
    if side not in tests:
        raise ValueError(f"{type(model).__name__} has no network among {side}.")
    return restored(tests[side])


def check_rate(fdr: Any) -> float:
    """Return a false discovery rate as a float."""
    if not (isinstance(fdr, Real) and 0.0 < float(fdr) <= 1.0):
        raise ValueError(f"fdr must be a number above 0 and at most 1, got {fdr!r}.")
    return float(fdr)


def edge_table(model: Any, side: Any, fdr: float, **more: FloatArray) -> Any:
    """Return the edges with the given false discovery rate, see `edges`, and more columns."""
    tests = side_tests(model, side)
    kept = _surest(tests, fdr)
    values = {name: getattr(tests, name)[kept] for name in TESTED_VALUES}
    return _table(model, side, tests.first[kept], tests.second[kept], values | more)


def _surest(tests: EdgeTests, fdr: float) -> IntArray:
    """Return the places of the edges with the given false discovery rate, the surest first."""
    kept = np.flatnonzero(tests.q <= check_rate(fdr))
    order = np.lexsort((tests.first[kept], -np.abs(tests.z[kept]), tests.q[kept]))
    return np.asarray(kept[order])


def precision_edges(precision: Any) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the places i < j of the entries of a precision, these, and partial correlations.

    ``-P_ij / sqrt(P_ii P_jj)``. Metrics of generalized PCA need not be precisions; those that are
    none are refused.
    """
    if isinstance(precision, LinearOperator) or precision.diagonal().min() <= 0:
        raise ValueError("The metric of this side is not a positive definite matrix: no network.")
    scale = np.sqrt(precision.diagonal())
    upper = sp.triu(precision, k=1, format="coo")
    upper.eliminate_zeros()
    first, second = upper.coords
    return first, second, upper.data, -upper.data / (scale[first] * scale[second])


class NetworksMixin:
    """Adds the networks of the noise as graphs to an estimator."""

    def noise_graph(self, side: Any = "columns", *, fdr: float | None = None) -> Any:
        """Return a noise network as a networkx graph.

        Parameters
        ----------
        side : {"rows", "columns"} or int, default="columns"
            Samples or features, or the number of an axis: 0 are the rows of a matrix.
        fdr : float, default=None
            False discovery rate of a network of tested edges, for a model that has `edges`. None
            is the network that the fit whitens the noise with.

        Returns
        -------
        networkx.Graph
            Nodes carry the names of the samples or features (their numbers where the data had
            none). Edges carry ``precision`` and ``partial_correlation``; with `fdr` the values
            that `edges` lists.
        """
        import networkx as nx

        graph = nx.Graph() if fdr is None else nx.Graph(fdr=check_rate(fdr))
        # Nodes are positions, names are attributes: names in data may repeat.
        for node, name in enumerate(item_names(self, side)):
            graph.add_node(node, name=name)
        if fdr is None:
            first, second, *columns = precision_edges(side_precision(self, side))
            names: tuple[str, ...] = ("precision", "partial_correlation")
        else:
            table, names = edge_table(self, side, fdr), TESTED_VALUES
            first, second, *columns = (
                np.asarray(table[name]) for name in ("node_1", "node_2", *names)
            )
        for i, j, *row in zip(first.tolist(), second.tolist(), *columns, strict=True):
            graph.add_edge(i, j, **dict(zip(names, map(float, row), strict=True)))
        return graph


class EdgesMixin:
    """Adds edges with an error rate to an estimator that keeps `edge_tests_`."""

    def edges(self, side: str = "columns", *, fdr: float = 0.05) -> Any:
        """Return the edges of a noise network, with the error rate of the list.

        Every pair is tested, whether or not the fit uses it: the fit keeps the edges that help it
        to whiten the noise, this list those that the data prove.

        Parameters
        ----------
        side : {"rows", "columns"}, default="columns"
            Samples or features.
        fdr : float, default=0.05
            False discovery rate: the expected share of the list that has no edge in truth.

        Returns
        -------
        DataFrame
            A row per edge, the surest first: ``name_1``, ``name_2``; ``node_1``, ``node_2``, the
            positions; ``partial_correlation``, de-biased, with its ``standard_error``; ``z``,
            standard normal without an edge; ``p``; ``q``, the smallest `fdr` that lists the
            edge. It is smaller, of edges with the same p, where the plain correlation speaks for
            an edge too. A NumPy record array with these fields where pandas is not installed.
        """
        return edge_table(self, side, fdr)


def edge_stability(
    model: Any,
    X: Any,
    side: str = "columns",
    *,
    fdr: float = 0.05,
    n_splits: int = 20,
    seed: int = 0,
    callback: Report | None = None,
) -> Any:
    """Tell in which share of half-samples each edge appears.

    The model is fitted again to random halves of the other side's items (of the rows, for edges
    among columns), with the number of components and the noise structure that it has.

    Parameters
    ----------
    model : fitted MNPCA or SparsePrecision
        The model whose edges are examined.
    X : array-like of shape (n_samples, n_features)
        The data that it was fitted to.
    side : {"rows", "columns"}, default="columns"
        Samples or features.
    fdr : float, default=0.05
        False discovery rate of the list, and of the list of every half.
    n_splits : int, default=20
        Number of halves.
    seed : int, default=0
        Of the choice of the halves.
    callback : callable, default=None
        Called with a `mnpca.Progress` after every half; its objective is the
        number of edges in it.

    Returns
    -------
    DataFrame
        As `MNPCA.edges` returns it, with a column ``stability``.

    Examples
    --------
    >>> from mnpca import MNPCA, edge_stability
    >>> from mnpca.datasets import make_paper_small
    >>> X = make_paper_small(c=64, seed=0, n_samples=120, n_features=80).Y
    >>> model = MNPCA(2, noise="graph", prior="gaussian").fit(X)
    >>> table = edge_stability(model, X, n_splits=2)
    >>> bool(table["stability"].between(0, 1).all())
    True
    """
    side, tests = _named(model, side), side_tests(model, side)
    if not (isinstance(n_splits, Integral) and n_splits >= 1):
        raise ValueError(f"n_splits must be a whole number, at least 1, got {n_splits!r}.")
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[side == "columns"] != tests.n_items:
        raise ValueError(
            f"X must be the training matrix, with {tests.n_items} {side}; it has the shape "
            f"{X.shape}."
        )
    report = callback or silent
    rng = np.random.default_rng(seed)
    axis = 0 if side == "columns" else 1
    keys = tests.keys[_surest(tests, fdr)]
    counts = np.zeros(len(keys))
    for split in range(n_splits):
        half = np.sort(rng.permutation(X.shape[axis])[: X.shape[axis] // 2])
        other = side_tests(_same_model(model).fit(np.take(X, half, axis=axis)), side)
        found = other.keys[_surest(other, fdr)]
        counts += np.isin(keys, found)
        report(Progress("half-samples", split + 1, float(len(found)), dict))
    return edge_table(model, side, fdr, stability=counts / n_splits)


def compare_edges(model_a: Any, model_b: Any, side: str = "columns", *, fdr: float = 0.05) -> Any:
    """Tell which partial correlations differ between two networks of the same items.

    For instance the networks among the same features in two groups of samples.

    Parameters
    ----------
    model_a, model_b : fitted MNPCA or SparsePrecision
        Fitted to different data with the same items on `side`.
    side : {"rows", "columns"}, default="columns"
        Samples or features.
    fdr : float, default=0.05
        False discovery rate: the expected share of the list that does not differ in truth.

    Returns
    -------
    DataFrame
        A row per pair that differs, the surest first: names and positions as in `MNPCA.edges`;
        ``partial_correlation_a`` and ``_b``; ``difference``, b less a, with its
        ``standard_error``; ``z``, ``p`` and ``q``.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from mnpca import MNPCA, compare_edges
    >>> from mnpca.datasets import make_paper_small
    >>> X = make_paper_small(c=64, seed=0, n_samples=200, n_features=80).Y
    >>> model = MNPCA(2, noise="graph", prior="gaussian")
    >>> one, other = (clone(model).fit(X[half::2]) for half in (0, 1))
    >>> len(compare_edges(one, other))
    0
    """
    one, other, fdr = side_tests(model_a, side), side_tests(model_b, side), check_rate(fdr)
    if item_names(model_a, side) != item_names(model_b, side):
        raise ValueError(
            f"model_a and model_b must be of the same {side}, in the same order; they have "
            f"{one.n_items} and {other.n_items}"
            + (", with different names." if one.n_items == other.n_items else ".")
        )
    for name, tests in (("model_a", one), ("model_b", other)):
        if not len(tests.first):
            raise ValueError(
                f"No pair of {side} was tested in {name}: its noise has no network (fit it with "
                'noise="graph"), or the data are too few to show an edge.'
            )
    found = compare_tests(one, other)
    kept = np.flatnonzero(found.q <= fdr)
    kept = kept[np.argsort(-np.abs(found.z[kept]), kind="stable")]
    a, b = (value[kept] for value in found.partial_correlations)
    values = {"partial_correlation_a": a, "partial_correlation_b": b, "difference": b - a}
    values |= {name: getattr(found, name)[kept] for name in TESTED_VALUES[1:]}
    return _table(model_a, side, found.first[kept], found.second[kept], values)


def _same_model(model: Any) -> Any:
    """Return an unfitted model with the choices that a fitted one has made."""
    copy = clone(model)
    if hasattr(model, "n_components_"):
        copy.set_params(n_components=model.n_components_)
        # Without a network there is no edge to find.
        if any(each["structure"] == "graph" for each in model.noise_.values()):
            copy.set_params(noise="graph")
    return copy


def _table(model: Any, side: Any, first: IntArray, second: IntArray, values: dict[str, Any]) -> Any:
    """Return pairs with their names and values as a table."""
    names = np.array(item_names(model, side), dtype=object)
    columns = {
        "name_1": names[first],
        "name_2": names[second],
        "node_1": first.astype(np.int64),
        "node_2": second.astype(np.int64),
        **{name: np.asarray(value, dtype=np.float64) for name, value in values.items()},
    }
    try:
        import pandas as pd
    except ImportError:
        return np.rec.fromarrays(list(columns.values()), names=list(columns))  # type: ignore[call-overload]
    return pd.DataFrame(columns)
