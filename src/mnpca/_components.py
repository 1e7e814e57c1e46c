"""Connected components of a sparse graph: every part of the package that needs them asks here."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mnpca._typing import IntArray


def label_components(graph: sp.csr_array) -> IntArray:
    """Return the component of each item, numbered from 0 in order of appearance."""
    labels: IntArray = connected_components(graph, directed=False)[1].astype(np.int64)
    return labels


def group_by_label(labels: IntArray) -> list[IntArray]:
    """Return the items of each label, in increasing order."""
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels))[:-1])
