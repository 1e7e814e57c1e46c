"""MN-PCA of an AnnData object, in scanpy's manner."""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph

from mnpca.diagnostics import network_edges
from mnpca.engines import engine_for
from mnpca.estimators import MNPCA

__all__ = ["fit_anndata", "normalize_counts"]


def fit_anndata(
    adata,
    n_comps="auto",
    *,
    layer=None,
    mask_var=None,
    key_added=None,
    copy=False,
    n_neighbors=15,
    random_state=0,
    **params,
):
    """Split the data of an AnnData object into signal and noise networks.

    Parameters
    ----------
    adata : anndata.AnnData
        Observations in rows. Normalized, log-transformed values suit the model; raw counts do
        not, see `normalize_counts`. A sparse matrix stays sparse.
    n_comps : int or "auto", default="auto"
        Number of components.
    layer : str, default=None
        Layer to use instead of X.
    mask_var : str or boolean array, default=None
        Variables to use, for instance ``"highly_variable"``; all if None.
    key_added : str, default=None
        Name of the results instead of ``"mnpca"``.
    copy : bool, default=False
        Return a changed copy instead of changing `adata`.
    n_neighbors : int, default=15
        Nearest neighbors of each observation among the scores.
    random_state : int, default=0
        Seed of the fit.
    **params
        Further parameters of `mnpca.MNPCA`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. With KEY = `key_added` or "mnpca", these are set:

        ``obsm["X_mnpca"]`` (or ``obsm[KEY]``)
            Scores.
        ``varm[KEY]``
            Loadings; zero for variables left out.
        ``obsp["KEY_precision"]``, ``varp["KEY_precision"]``
            The noise networks, sparse; empty rows for variables left out.
        ``uns[KEY]``
            Parameters, singular values, noise variance, convergence, and the mean of the
            variables that took part.
        ``uns["KEY_neighbors"]``
            Nearest neighbors among the scores: ``sc.tl.leiden(adata,
            neighbors_key="mnpca_neighbors")``, the same for ``sc.tl.umap``. Absent where no
            component was found.
        ``uns["KEY_noise"]``
            The noise network among observations as a neighborhood graph, so that
            ``sc.tl.leiden(adata, neighbors_key="mnpca_noise")`` finds groups of observations that
            deviate together, such as batches.

    Warns
    -----
    UserWarning
        If the data look like raw counts.

    Examples
    --------
    >>> import anndata
    >>> from mnpca.datasets import make_paper_small
    >>> from mnpca.interop.anndata import fit_anndata
    >>> adata = anndata.AnnData(make_paper_small(c=8, seed=0).Y)
    >>> fit_anndata(adata, n_comps=2)
    >>> adata.obsm["X_mnpca"].shape, adata.varm["mnpca"].shape
    ((300, 2), (200, 2))
    """
    adata = adata.copy() if copy else adata
    key = "mnpca" if key_added is None else key_added
    used = _used_variables(adata, mask_var)
    X = _columns(_matrix(adata, layer), used)
    if _are_counts(X):
        warnings.warn(
            f"{'adata.X' if layer is None else f'Layer {layer!r}'} holds whole numbers, as raw "
            "counts do; their noise grows with their mean, which the model does not describe. "
            "Call mnpca.interop.anndata.normalize_counts(adata) first.",
            UserWarning,
            stacklevel=2,
        )
    model = MNPCA(n_comps, random_state=random_state, **params).fit(X)
    scores = model.transform(X)
    representation = "X_mnpca" if key_added is None else key_added
    adata.obsm[representation] = scores
    # From the variables that took part to all of them.
    spread = sp.eye_array(adata.n_vars, format="csr")[:, used]
    adata.varm[key] = spread @ model.components_.T
    adata.obsp[f"{key}_precision"] = sp.csr_matrix(model.row_precision_)
    adata.varp[f"{key}_precision"] = sp.csr_matrix(spread @ model.col_precision_ @ spread.T)
    adata.uns[key] = _description(model, layer, mask_var)
    if scores.shape[1]:
        graph = _neighbors(scores, n_neighbors)
        _store_graph(adata, f"{key}_neighbors", *graph, use_rep=representation)
    else:  # the graph of an earlier run would stay
        adata.uns.pop(f"{key}_neighbors", None)
        for kind in ("distances", "connectivities"):
            adata.obsp.pop(f"{key}_neighbors_{kind}", None)
    _store_graph(adata, f"{key}_noise", *_noise_graph(model))
    return adata if copy else None


def normalize_counts(adata, *, n_top_genes=2000, layer=None, copy=False):
    """Turn raw counts into what `fit_anndata` takes: the usual recipe for single cells.

    Counts of every observation are divided by its library size, in units of the median one; then
    ``log(1 + x)``; then the `n_top_genes` variables with the largest variance are marked.

    Parameters
    ----------
    adata : anndata.AnnData
        Raw counts, dense or sparse.
    n_top_genes : int, default=2000
        Number of variables to mark; all where there are fewer.
    layer : str, default=None
        Layer with the counts instead of X. The result is X in any case.
    copy : bool, default=False
        Return a changed copy instead of changing `adata`.

    Returns
    -------
    AnnData or None
        The copy, if one was asked for. ``X`` is replaced, and
        ``var["highly_variable"]`` marks the chosen variables. Where the library size is a column
        ``library`` of ``obs``, as it should be when only some genes are left, that is used.

    Raises
    ------
    ValueError
        If the data are not counts, or an observation has none.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> from mnpca.interop.anndata import fit_anndata, normalize_counts
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.poisson(np.exp(rng.normal(size=(60, 1)) + 1), (60, 40)) * 1.0)
    >>> normalize_counts(adata, n_top_genes=30)
    >>> int(adata.var["highly_variable"].sum())
    30
    """
    adata = adata.copy() if copy else adata
    counts = _columns(_matrix(adata, layer), np.arange(adata.n_vars))
    if not _are_counts(counts):
        raise ValueError(
            "The data are no raw counts: there are negative or broken numbers, or none above one. "
            "Name the layer that has the counts, or leave this step out."
        )
    if "library" in adata.obs:
        library = adata.obs["library"].to_numpy(dtype=float)
    else:
        library = np.asarray(counts.sum(axis=1)).ravel()
    if not (library > 0).all():
        raise ValueError(
            f"Observation {np.flatnonzero(library <= 0)[0]} has no counts. Leave such ones out."
        )
    scale = np.median(library) / library
    if sp.issparse(counts):
        values = sp.csr_matrix(sp.diags_array(scale) @ counts)
        np.log1p(values.data, out=values.data)
    else:
        values = np.log1p(counts * scale[:, None])
    engine = engine_for(values)
    variances = engine.column_mean_squares(engine.column_means())
    chosen = np.zeros(adata.n_vars, dtype=bool)
    chosen[np.argsort(-variances, kind="stable")[:n_top_genes]] = True
    adata.X = values
    adata.var["highly_variable"] = chosen
    return adata if copy else None


def _used_variables(adata, mask_var):
    """Return the positions of the variables that take part."""
    if mask_var is None:
        return np.arange(adata.n_vars)
    if isinstance(mask_var, str):
        if mask_var not in adata.var:
            raise ValueError(f"mask_var {mask_var!r} is not a column of adata.var.")
        mask_var = adata.var[mask_var]
    mask = np.asarray(mask_var)
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(f"mask_var must be {adata.n_vars} booleans, one per variable.")
    if not mask.any():
        raise ValueError("mask_var leaves no variable.")
    return np.flatnonzero(mask)


def _matrix(adata, layer):
    if layer is None:
        if adata.X is None:
            raise ValueError("adata has no X; name a layer.")
        return adata.X
    if layer not in adata.layers:
        there = ", ".join(map(repr, adata.layers)) or "none"
        raise ValueError(f"layer {layer!r} is not in adata.layers; there: {there}.")
    return adata.layers[layer]


def _columns(matrix, used):
    """Return the columns that take part, in a floating type; sparse where the matrix is."""
    columns = matrix if len(used) == matrix.shape[1] else matrix[:, used]
    if not sp.issparse(columns):
        return np.asarray(columns, dtype=np.float64)
    return sp.csr_array(columns, dtype=None if columns.dtype.kind == "f" else float)


def _are_counts(X):
    """Tell whether all entries are whole numbers, none negative, and some above one."""
    values = X.data if sp.issparse(X) else X
    return bool(values.size and values.min() >= 0 and values.max() > 1 and (values % 1 == 0).all())


def _description(model, layer, mask_var):
    """Return plain values that every file format can hold."""
    params = {name: str(value) for name, value in model.get_params(deep=False).items()}
    return {
        "params": params
        | {
            "layer": "X" if layer is None else layer,
            "mask_var": mask_var if isinstance(mask_var, str) else str(mask_var is not None),
        },
        "n_components": int(model.n_components_),
        "singular_values": np.asarray(model.singular_values_, dtype=float),
        "noise_variance": float(model.noise_variance_),
        "mean": np.asarray(model.mean_, dtype=float),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
    }


def _neighbors(scores, n_neighbors):
    """Return distances and connectivities of nearest neighbors, and their number.

    The weight of a pair at distance d is exp(-d^2 / (2 s_i s_j)), with s_i the distance of an
    observation's median neighbor; it is the larger of the two directions.
    """
    n_neighbors = min(n_neighbors, len(scores) - 1)
    distances = kneighbors_graph(scores, n_neighbors, mode="distance")
    scale = np.median(distances.data.reshape(len(scores), n_neighbors), axis=1)
    scale = np.maximum(scale, np.finfo(float).tiny ** 0.25)
    row = np.repeat(np.arange(len(scores)), n_neighbors)
    weights = np.exp(-(distances.data**2) / (2 * scale[row] * scale[distances.indices]))
    one_way = sp.csr_matrix((weights, distances.indices, distances.indptr), distances.shape)
    return distances, one_way.maximum(one_way.T), n_neighbors


def _noise_graph(model):
    """Return the noise network among observations in the form of `_neighbors`.

    Connectivities are the |partial correlations|.
    """
    edges = network_edges(model, "rows")
    weights = np.abs(edges.partial_correlation)
    shape = (edges.n_items, edges.n_items)
    half = sp.csr_matrix((weights, (edges.first, edges.second)), shape=shape)
    connectivities = sp.csr_matrix(half + half.T)
    distances = connectivities.copy()
    distances.data = 1.0 - distances.data
    return distances, connectivities, max(int(np.ceil(np.mean(edges.degree()))), 1)


def _store_graph(adata, key, distances, connectivities, n_neighbors, **params):
    """Store a graph where scanpy looks for the one named by ``neighbors_key``."""
    adata.obsp[f"{key}_distances"] = sp.csr_matrix(distances)
    adata.obsp[f"{key}_connectivities"] = sp.csr_matrix(connectivities)
    adata.uns[key] = {
        "connectivities_key": f"{key}_connectivities",
        "distances_key": f"{key}_distances",
        "params": {
            "n_neighbors": n_neighbors,
            "method": "mnpca",
            "metric": "euclidean",
            "random_state": 0,
            **params,
        },
    }
