"""Components that are asked for beyond the signal."""

import numpy as np
import pytest

from mnpca import MNPCA
from mnpca.datasets import chain_precision, make_low_rank_matrix_normal
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.beside_signal import with_principal_components
from mnpca.solvers.mnpca.generalized_svd import generalized_svd


@pytest.fixture
def autoregressive():
    """One component in noise whose columns are a chain, and its true noise model."""
    chain = chain_precision(40, 0.8)
    data = make_low_rank_matrix_normal(150, 40, 1, col_precision=chain, random_state=3)
    rows = AxisPrecision.diagonal(np.ones(150))
    return DenseEngine(data.Y), NoiseModel(rows, AxisPrecision.from_precision(chain))


def test_the_rest_varies_more_than_chance_directions(autoregressive):
    engine, noise = autoregressive
    plain = generalized_svd(engine, noise.row, noise.col, 5, tol=1e-12, max_iter=500)
    shown = with_principal_components(engine, noise, plain, 0)
    np.testing.assert_array_equal(shown.right[:, 0], plain.right[:, 0])
    np.testing.assert_allclose(shown.right.T @ noise.col.apply(shown.right), np.eye(5), atol=1e-9)
    np.testing.assert_allclose(shown.left.T @ noise.row.apply(shown.left), np.eye(5), atol=1e-5)
    products = engine.times(noise.col.apply(shown.right))
    np.testing.assert_allclose(products, shown.left * shown.singular_values, atol=1e-5)
    assert (np.diff(shown.singular_values) <= 0).all()
    lengths = [np.sum(svd.right[:, 1:] ** 2) for svd in (plain, shown)]
    assert lengths[1] > 2 * lengths[0]


def test_a_signal_is_left_alone(autoregressive):
    engine, noise = autoregressive
    plain = generalized_svd(engine, noise.row, noise.col, 1)
    assert with_principal_components(engine, noise, plain, 0) is plain


def test_without_further_directions_nothing_is_replaced():
    rng = np.random.default_rng(0)
    engine = DenseEngine(rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20)))
    noise = NoiseModel(*(AxisPrecision.diagonal(np.ones(size)) for size in (30, 20)))
    plain = generalized_svd(engine, noise.row, noise.col, 4)
    assert with_principal_components(engine, noise, plain, 0) is plain


def test_more_components_than_signal_change_neither_signal_nor_honesty():
    data = make_low_rank_matrix_normal(150, 60, 1, random_state=0)
    few, many = (MNPCA(k, prior="gaussian", random_state=0).fit(data.Y) for k in (1, 4))
    np.testing.assert_allclose(many.components_[0], few.components_[0], atol=1e-2)
    np.testing.assert_allclose(many.denoise(), few.denoise(), atol=0.02 * np.ptp(data.Y))
    assert "4 components were asked for; 1 of them stands above the noise" in many.choice_
