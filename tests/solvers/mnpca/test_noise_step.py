"""The noise step: scatter with correction, ridge, pooling, gauge."""

import numpy as np
import scipy.sparse as sp
from scipy.special import polygamma

from mnpca.datasets import make_low_rank_matrix_normal
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel, pooled_variances
from mnpca.solvers.mnpca.low_rank_step import low_rank_step
from mnpca.solvers.mnpca.noise_step import Memory, noise_step


def test_pooling_follows_the_scatter():
    rng = np.random.default_rng(0)
    same = rng.chisquare(50, size=2000) / 50
    assert np.log(pooled_variances(same, 50)).std() < 0.25 * np.log(same).std()
    different = same * np.exp(rng.standard_normal(2000))
    pooled = pooled_variances(different, 50)
    share = 1 - polygamma(1, 25) / np.log(different).var()
    np.testing.assert_allclose(np.log(pooled).std(), share * np.log(different).std())
    np.testing.assert_allclose(np.log(pooled).mean(), np.log(different).mean())
    np.testing.assert_array_equal(pooled_variances(np.full(5, 2.0), 50), np.full(5, 2.0))


def test_structures_and_gauge():
    data = make_low_rank_matrix_normal(80, 60, 2, density=0.05, condition=200, random_state=0)
    engine = DenseEngine(data.Y)
    noise = NoiseModel(AxisPrecision.diagonal(np.ones(80)), AxisPrecision.diagonal(np.ones(60)))
    posterior = low_rank_step(engine, noise.row, noise.col, 2)
    new = noise_step(engine, posterior, noise, "graph", "identity", Memory())
    assert new.row.n_edges > 0
    assert np.ptp(new.col.weights) == 0
    assert abs(new.row.log_determinant) < 1e-8
    new = noise_step(engine, posterior, noise, "diagonal", "graph", Memory())
    assert new.row.is_diagonal


def test_noise_is_found_without_a_signal():
    """On pure noise the step alone brings A and B near the truth, up to the gauge."""
    data = make_low_rank_matrix_normal(400, 300, 0, density=0.003, condition=30, random_state=0)
    engine = DenseEngine(data.Y)
    noise = NoiseModel(AxisPrecision.diagonal(np.ones(400)), AxisPrecision.diagonal(np.ones(300)))
    memory = Memory()
    for _ in range(3):
        posterior = low_rank_step(engine, noise.row, noise.col, 0, center=False)
        noise = noise_step(engine, posterior, noise, "graph", "graph", memory)
    for side, truth in ((noise.row, data.row_precision), (noise.col, data.col_precision)):
        found = side.precision / np.mean(side.precision.diagonal())
        error = sp.linalg.norm(found - truth) / sp.linalg.norm(truth)
        assert error < 0.15
