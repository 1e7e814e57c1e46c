"""Two axes: MNPCA's fit of a matrix, in the words of the tensor model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mnpca._typing import FloatArray
from mnpca.model.gpca import identify
from mnpca.model.metric import Metric
from mnpca.solvers.mnpca.fit import MNPCAFit, fit_mnpca
from mnpca.solvers.tensor.fit import TensorFit
from mnpca.solvers.tensor.noise_step import AxisNoise
from mnpca.solvers.tensor.tucker import Tucker


@dataclass(frozen=True)
class MatrixFit(TensorFit):
    """The signal is a posterior mean; components are those of generalized PCA, as in `MNPCA`."""

    loadings: FloatArray
    singular_values: FloatArray

    def components(self) -> tuple[FloatArray, FloatArray]:
        """Return loadings as rows, and generalized singular values."""
        return self.loadings.T, self.singular_values


def fit_matrix(
    data: FloatArray, rank: int, structures: Sequence[AxisNoise], *, center: bool, **options: Any
) -> MatrixFit:
    """Fit a matrix by `fit_mnpca` and write the signal as ``F_1 core F_2'``.

    Parameters
    ----------
    data : array of shape (n, p)
        Y.
    rank : int
        Number of components.
    structures : pair of {"identity", "diagonal", "graph"}
        Noise of rows and of columns.
    center : bool
        Whether there is a mean row.
    **options
        ``max_iter``, ``tol``, ``random_state``, ``report`` and ``resume`` of `fit_mnpca`.
    """
    row, col = ("identity" if s == "unit" else s for s in structures)
    fit = fit_mnpca(data, rank, noise=(row, col), center=center, **options)
    return MatrixFit(
        signal=_as_tucker(fit),
        noise=[fit.row_noise, fit.col_noise],
        history=list(fit.history),
        chosen=fit.chosen,
        converged=fit.converged,
        loadings=fit.loadings,
        singular_values=fit.singular_values,
    )


def _as_tucker(fit: MNPCAFit) -> Tucker:
    """Return the posterior mean of the signal with factors orthonormal in the two metrics."""
    parts = identify(
        *fit.low_rank,
        Metric(fit.row_noise.size, fit.row_noise.precision),
        Metric(fit.col_noise.size, fit.col_noise.precision),
    )
    mean = fit.mean if fit.centered else None
    return Tucker(np.diag(parts.singular_values), (parts.left, parts.right), mean)
