"""Small matrices, of a size that is not round, for tests of compiled passes."""

import numpy as np
import scipy.sparse as sp

P = 7
OFF = ~np.eye(P, dtype=bool)


def sparse_precision_of(rng, p=P):
    """A sparse precision as rows, and dense."""
    A = np.where(rng.random((p, p)) < 0.3, rng.normal(size=(p, p)), 0.0)
    T = sp.csr_array(A @ A.T + np.diag(rng.uniform(1.0, 3.0, size=p)))
    T.sort_indices()
    return (T.indptr.astype(np.int64), T.indices.astype(np.int64), T.data), T.toarray()


def precision_of_regressions(B, theta):
    both = (B != 0) & (B.T != 0)
    T = np.where(both, -0.5 * (B * theta[:, None] + (B * theta[:, None]).T), 0.0)
    np.fill_diagonal(T, theta)
    return T
