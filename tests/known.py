"""A fitted model whose noise networks are the true ones: quick, and the same every time."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from mnpca.datasets import make_paper_small
from mnpca.diagnostics import whiten
from mnpca.estimators._base import MatrixNormalEstimator
from mnpca.model.low_rank import fix_signs
from mnpca.model.sparse import normalize_gauge


class KnownNetworks(MatrixNormalEstimator):
    """Generalized PCA under given precisions."""

    def __init__(self, n_components=2, row_precision=None, col_precision=None, *, center=True):
        self.n_components = n_components
        self.center = center
        self.row_precision = row_precision
        self.col_precision = col_precision

    def fit(self, X, y=None):
        names = [str(name) for name in X.index] if hasattr(X, "index") else None
        X = validate_data(self, X, dtype=np.float64)
        if names is not None:
            self.sample_names_in_ = np.array(names, dtype=object)
        rows, columns = normalize_gauge(
            sp.csr_array(self.row_precision), sp.csr_array(self.col_precision)
        )
        mean = X.mean(axis=0)
        left, values, right = np.linalg.svd(whiten(X - mean, rows, columns), full_matrices=False)
        k = self.n_components
        # whiten(M) = Fa' M Fb; the inverse factors take the singular vectors back.
        back_rows = np.linalg.inv(whiten(np.eye(len(X)), rows, sp.eye_array(len(X))))
        back_columns = np.linalg.inv(whiten(np.eye(X.shape[1]), columns, sp.eye_array(X.shape[1])))
        low_rank = fix_signs(back_rows @ left[:, :k] * values[:k], back_columns @ right[:k].T)
        self._store_fit(
            X,
            mean=mean,
            low_rank=low_rank,
            components=low_rank.right.T,
            singular_values=values[:k],
            row_precision=rows,
            col_precision=columns,
        )
        self.objective_history_ = np.array([3.0, 2.0, 1.5, 1.4])
        self.n_iter_, self.converged_ = 4, True
        return self


def known_fit(n=60, p=40, c=32, k=2, seed=1000, column_names=None, row_names=None, density=0.08):
    """Return data with truth, its frame with names, and the fitted model."""
    data = make_paper_small(c=c, seed=seed, n_samples=n, n_features=p, density=density)
    frame = pd.DataFrame(
        data.Y,
        index=row_names or [f"sample {i}" for i in range(n)],
        columns=column_names or [f"feature {j}" for j in range(p)],
    )
    model = KnownNetworks(k, data.row_precision, data.col_precision).fit(frame)
    return data, frame, model
