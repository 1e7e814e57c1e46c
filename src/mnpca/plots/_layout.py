"""Places for the nodes of a network, by forces between them."""

from typing import Any

import numpy as np

from mnpca._typing import FloatArray


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
        Of the first places.

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
