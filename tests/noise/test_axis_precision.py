"""A noise side against dense linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision, random_sparse_precision
from mnpca.noise import axis_precision
from mnpca.noise.axis_precision import AxisPrecision


def example():
    return sp.csr_array(
        sp.block_diag(
            [random_sparse_precision(12, 0.2, 8, 3), np.eye(3) * 2, chain_precision(6, 0.6)]
        )
    )


def test_spectrum_by_component():
    precision = example()
    side = AxisPrecision.from_precision(precision).scaled(3.0)
    dense = 3.0 * precision.toarray()
    thin = np.random.default_rng(0).standard_normal((21, 4))
    np.testing.assert_allclose(side.precision.toarray(), dense)
    np.testing.assert_allclose(side.apply(thin), dense @ thin)
    np.testing.assert_allclose(side.unrotate(side.rotate(thin)), thin)
    weighted = side.unrotate(side.eigenvalues[:, None] * side.rotate(thin))
    np.testing.assert_allclose(weighted, dense @ thin)
    np.testing.assert_allclose(side.log_determinant, np.linalg.slogdet(dense)[1])
    np.testing.assert_allclose(side.variances, np.diag(np.linalg.inv(dense)))
    assert side.n_edges == (precision.nnz - 21) // 2


@pytest.mark.parametrize("whole", [500, 3])
def test_function_of_the_precision(whole, monkeypatch):
    monkeypatch.setattr(axis_precision, "WHOLE_BLOCK", whole)
    precision = example()
    side = AxisPrecision.from_precision(precision)
    diagonal, off_diagonal = side.function(1.0 / side.eigenvalues)
    covariance = np.linalg.inv(precision.toarray())
    np.testing.assert_allclose(diagonal, np.diag(covariance))
    kept = off_diagonal.toarray()
    shown = kept != 0
    np.testing.assert_allclose(kept[shown], covariance[shown])
    if whole == 500:
        np.testing.assert_allclose(kept + np.diag(diagonal), covariance, atol=1e-12)
    else:
        assert (shown == (precision.toarray() != 0) & ~np.eye(21, dtype=bool)).all()


def test_large_components_keep_their_log_determinant(monkeypatch):
    monkeypatch.setattr(axis_precision, "LARGE", 5)
    precision = chain_precision(40, 0.9)
    side = AxisPrecision.from_precision(precision)
    exact = np.linalg.slogdet(precision.toarray())[1]
    np.testing.assert_allclose(side.log_determinant, exact, rtol=1e-10)


def test_diagonal_side():
    side = AxisPrecision.diagonal(np.array([1.0, 2.0, 4.0]))
    assert side.is_diagonal
    assert side.n_edges == 0
    assert side.largest_component == 1
    np.testing.assert_allclose(side.precision.toarray(), np.diag([1.0, 2.0, 4.0]))
    assert AxisPrecision.from_precision(side.precision).is_diagonal
