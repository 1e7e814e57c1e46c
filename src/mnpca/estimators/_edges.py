"""Edges with an error rate: tables, graphs, stability and comparison of networks."""

from dataclasses import fields
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from mnpca.noise.edges import EdgeTests, compare_tests
from mnpca.solvers.progress import Progress, silent

SIDES = ("rows", "columns")


def stored(tests):
    """Return edge tests as plain values that a model file can hold, in little room."""
    values = {field.name: getattr(tests, field.name) for field in fields(EdgeTests)}
    return {
        name: value.astype(np.int32 if value.dtype.kind == "i" else np.float32)
        if isinstance(value, np.ndarray)
        else value
        for name, value in values.items()
    }


def restored(values):
    """Return the edge tests that `stored` was given."""
    return EdgeTests(
        **{
            name: value.astype(np.int64 if value.dtype.kind == "i" else np.float64)
            if isinstance(value, np.ndarray)
            else value
            for name, value in values.items()
        }
    )


def side_tests(model, side):
    """Return the edge tests of one side of a fitted model, or say why it has none."""
    check_is_fitted(model)
    if side not in SIDES:
        raise ValueError(f'side must be "rows" or "columns", got {side!r}.')
    tests = getattr(model, "edge_tests_", None)
    if tests is None:
        raise ValueError(
            f"This {type(model).__name__} has no tests of its edges: it was fitted by an earlier "
            "version, or to data outside memory. Fit it again, to a NumPy array or data frame."
        )
    if side not in tests:
        raise ValueError(f"{type(model).__name__} has no network among {side}.")
    return restored(tests[side])


def check_rate(fdr):
    """Return a false discovery rate as a float."""
    if not (isinstance(fdr, Real) and 0.0 < fdr <= 1.0):
        raise ValueError(f"fdr must be a number above 0 and at most 1, got {fdr!r}.")
    return float(fdr)


def edge_table(model, side, fdr):
    """Return the edges of a network with the given false discovery rate; see `edges`."""
    tests, fdr = side_tests(model, side), check_rate(fdr)
    kept = np.flatnonzero(tests.q <= fdr)
    kept = kept[np.lexsort((tests.second[kept], tests.first[kept], -np.abs(tests.z[kept])))]
    values = {
        name: getattr(tests, name)[kept]
        for name in ("partial_correlation", "standard_error", "z", "p", "q")
    }
    return _table(model, side, tests.first[kept], tests.second[kept], values)


def tested_graph(model, side, fdr):
    """Return the network with the given false discovery rate as a networkx graph."""
    import networkx as nx

    table = edge_table(model, side, fdr)
    graph = nx.Graph(fdr=float(fdr))
    for node, name in enumerate(_names(model, side, side_tests(model, side).n_items)):
        graph.add_node(node, name=name)
    values = ("partial_correlation", "standard_error", "z", "p", "q")
    columns = [np.asarray(table[name]).tolist() for name in ("node_1", "node_2", *values)]
    for i, j, *row in zip(*columns, strict=True):
        graph.add_edge(i, j, **dict(zip(values, row, strict=True)))
    return graph


class EdgesMixin:
    """Adds edges with an error rate to an estimator that keeps `edge_tests_`."""

    def edges(self, side="columns", *, fdr=0.05):
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
            edge. A NumPy record array with these fields where pandas is not installed.
        """
        return edge_table(self, side, fdr)


def edge_stability(model, X, side="columns", *, fdr=0.05, n_splits=20, seed=0, callback=None):
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
        Called with a `mnpca.solvers.progress.Progress` after every half; its objective is the
        number of edges in it.

    Returns
    -------
    DataFrame
        As `MNPCA.edges` returns it, with a column ``stability``.

    Examples
    --------
    >>> from mnpca import MNPCA, edge_stability
    >>> from mnpca.datasets import make_paper_small
    >>> X = make_paper_small(c=64, seed=0).Y
    >>> model = MNPCA(2, noise="graph").fit(X)
    >>> table = edge_stability(model, X, n_splits=4)
    >>> bool(table["stability"].between(0, 1).all())
    True
    """
    tests = side_tests(model, side)
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
    table = edge_table(model, side, fdr)
    keys = np.asarray(table["node_1"]) * tests.n_items + np.asarray(table["node_2"])
    counts = np.zeros(len(keys))
    for split in range(n_splits):
        half = np.sort(rng.permutation(X.shape[axis])[: X.shape[axis] // 2])
        refitted = _same_model(model).fit(np.take(X, half, axis=axis))
        found = edge_table(refitted, side, fdr)
        found = np.asarray(found["node_1"]) * tests.n_items + np.asarray(found["node_2"])
        counts += np.isin(keys, found)
        report(Progress("half-samples", split + 1, float(len(found)), dict))
    return _with_column(table, "stability", counts / n_splits)


def compare_edges(model_a, model_b, side="columns", *, fdr=0.05):
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
    >>> from mnpca import MNPCA, compare_edges
    >>> from mnpca.datasets import make_paper_small
    >>> data = make_paper_small(c=64, seed=0)
    >>> one, other = (MNPCA(2, noise="graph").fit(data.Y[half::2]) for half in (0, 1))
    >>> len(compare_edges(one, other))
    0
    """
    one, other, fdr = side_tests(model_a, side), side_tests(model_b, side), check_rate(fdr)
    names = [_names(m, side, t.n_items) for m, t in ((model_a, one), (model_b, other))]
    if names[0] != names[1]:
        raise ValueError(
            f"model_a and model_b must be of the same {side}, in the same order; they have "
            f"{one.n_items} and {other.n_items}"
            + (", with different names." if one.n_items == other.n_items else ".")
        )
    differences = compare_tests(one, other)
    kept = np.flatnonzero(differences.q <= fdr)
    kept = kept[np.argsort(-np.abs(differences.z[kept]), kind="stable")]
    correlation_a, correlation_b = differences.partial_correlations
    values = {
        "partial_correlation_a": correlation_a[kept],
        "partial_correlation_b": correlation_b[kept],
        **{
            name: getattr(differences, name)[kept]
            for name in ("difference", "standard_error", "z", "p", "q")
        },
    }
    return _table(model_a, side, differences.first[kept], differences.second[kept], values)


def _same_model(model):
    """Return an unfitted model with the choices that a fitted one has made."""
    copy = clone(model)
    if hasattr(model, "n_components_"):
        copy.set_params(n_components=model.n_components_)
        if any(
            each["structure"] == "graph" for each in model.noise_.values()
        ):  # otherwise there is no edge to find
            copy.set_params(noise="graph")
    return copy


def _names(model, side, size):
    """Return the names of the items, their numbers where the data had none."""
    attribute = "sample_names_in_" if side == "rows" else "feature_names_in_"
    names = getattr(model, attribute, None)
    return [str(name) for name in (range(size) if names is None else names)]


def _table(model, side, first, second, values):
    """Return pairs with their names and values as a table."""
    size = max(int(first.max(initial=-1)), int(second.max(initial=-1))) + 1
    names = np.array(_names(model, side, size), dtype=object)
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
        return np.rec.fromarrays(list(columns.values()), names=list(columns))
    return pd.DataFrame(columns)


def _with_column(table, name, values):
    """Return the table with one more column."""
    if isinstance(table, np.ndarray):
        columns = {each: table[each] for each in table.dtype.names} | {name: values}
        return np.rec.fromarrays(list(columns.values()), names=list(columns))
    return table.assign(**{name: values})
