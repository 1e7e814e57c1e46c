"""Generalized PCA with dense metrics against the general one."""

import numpy as np
import pytest

from mnpca.datasets import random_sparse_precision
from mnpca.model.gpca import CenteredMatrix, dense_gpca, gpca
from mnpca.model.metric import as_metric


@pytest.mark.parametrize("shape", [(14, 9), (9, 14)])
def test_it_is_generalized_pca_in_the_common_gauge(shape):
    n, p = shape
    Y = np.random.default_rng(0).normal(size=shape)
    A = 3 * random_sparse_precision(n, 0.3, 8.0, 0).toarray()
    B = random_sparse_precision(p, 0.3, 8.0, 1).toarray()
    found, left_over, t = dense_gpca(Y, 2, A, B)
    assert np.linalg.slogdet(A / t)[1] == pytest.approx(0, abs=1e-10)
    expected = gpca(CenteredMatrix(Y), 2, as_metric(A / t, n), as_metric(t * B, p))
    np.testing.assert_allclose(found.singular_values, expected.singular_values)
    np.testing.assert_allclose(found.left, expected.left, atol=1e-10)
    np.testing.assert_allclose(found.right, expected.right, atol=1e-10)
    residual = Y - found.low_rank().dense()
    assert left_over == pytest.approx(np.trace(B @ residual.T @ A @ residual))


def test_what_is_only_rounding_is_not_left_over():
    """The noise scale is then unknown; one per entry stands in for it."""
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(10, 2)) @ rng.normal(size=(2, 7))
    assert dense_gpca(Y, 2, np.eye(10), np.eye(7))[1] == 70
    assert dense_gpca(Y + 1e-4 * rng.normal(size=(10, 7)), 2, np.eye(10), np.eye(7))[1] < 1e-5


@pytest.mark.parametrize("side", [0, 1])
def test_indefinite_metrics_are_refused(side):
    metrics = [np.eye(5), np.eye(4)]
    metrics[side] = -metrics[side]
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        dense_gpca(np.ones((5, 4)), 1, *metrics)
