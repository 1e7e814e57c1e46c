"""The fit of an array: recovery, equivariance, resuming."""

import numpy as np
import pytest

from mnpca.datasets import chain_precision, make_tensor_normal
from mnpca.metrics import edge_recovery, psnr
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.tensor.fit import AGAIN, fit_tensor
from mnpca.solvers.tensor.noise_step import axis_scales
from mnpca.solvers.tensor.tucker import tucker

GRAPH = ["graph"] * 3


@pytest.fixture(scope="module")
def data():
    return make_tensor_normal((40, 30, 20), 2, random_state=1000)


@pytest.fixture(scope="module")
def fit(data):
    return fit_tensor(data.Y, (2, 2, 2), GRAPH)


def test_signal_and_networks_are_found(data, fit):
    oracle = tucker(data.Y, (2, 2, 2), [AxisPrecision.from_precision(P) for P in data.precisions])
    assert psnr(fit.signal.dense(), data.signal) > psnr(oracle.dense(), data.signal) - 0.5
    for side, precision in zip(fit.noise, data.precisions, strict=True):
        assert edge_recovery(side.precision, precision).f1 > 0.8
    assert fit.converged
    for side in fit.noise[:-1]:  # the level is in the last axis
        assert side.log_determinant == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("items", [False, True])
def test_permuting_axes_and_items_permutes_the_result(data, fit, items):
    """The fit of a graph is accurate to 1e-3 and goes from item to item."""
    order = np.random.default_rng(0).permutation(30) if items else np.arange(30)
    other = fit_tensor(data.Y[:, order].transpose(2, 0, 1), (2, 2, 2), GRAPH)
    expected = fit.signal.dense()[:, order].transpose(2, 0, 1)
    assert np.allclose(other.signal.dense(), expected, atol=2e-3 if items else 1e-8)
    for side, axis in zip(other.noise, (2, 0, 1), strict=True):
        found, expected = side.precision.toarray(), fit.noise[axis].precision.toarray()
        expected = expected[np.ix_(order, order)] if axis == 1 else expected
        ratio = found.diagonal().mean() / expected.diagonal().mean()
        assert np.allclose(found / ratio, expected, atol=5e-3 if items else 1e-8)
        assert np.array_equal(found != 0, expected != 0)


def test_scaling_scales(data, fit):
    other = fit_tensor(7.0 * data.Y, (2, 2, 2), GRAPH)
    assert np.allclose(other.signal.dense(), 7.0 * fit.signal.dense(), atol=1e-6)
    for axis, factor in enumerate([1.0, 1.0, 49.0]):
        ratio = fit.noise[axis].precision.diagonal() / other.noise[axis].precision.diagonal()
        assert np.allclose(ratio, factor)
    # The log-likelihood has the density's change of units.
    change = data.Y.size * np.log(7.0)
    assert other.history[-1][2] == pytest.approx(fit.history[-1][2] - change)


def test_scales_make_every_slice_of_equal_size():
    rng = np.random.default_rng(1)
    T = rng.normal(size=(6, 5, 4)) * np.arange(1, 7)[:, None, None] * np.array([1, 2, 3, 4.0])
    sides = axis_scales(T, ["diagonal"] * 3)
    weights = np.einsum("i,j,k", *(side.weights for side in sides))
    for axis in range(3):
        means = (weights * T**2).mean(axis=tuple({0, 1, 2} - {axis}))
        assert np.allclose(means, 1.0, atol=1e-6)


def test_replicates_keep_unit_noise():
    data = make_tensor_normal((12, 10, 8), 1, random_state=3)
    fit = fit_tensor(data.Y, (None, 1, 1), ["unit", "graph", "graph"], center=True)
    assert np.array_equal(fit.noise[0].precision.toarray(), np.eye(12))
    assert fit.noise[1].log_determinant == pytest.approx(0.0, abs=1e-8)


def test_four_axes():
    data = make_tensor_normal((8, 7, 6, 5), 2, signal_scale=2.0, random_state=4)
    fit = fit_tensor(data.Y, (2,) * 4, ["graph"] * 4)
    assert fit.signal.dense().shape == data.Y.shape
    assert psnr(fit.signal.dense(), data.signal) > 25


def test_resumed_from_any_report_to_the_bit(data, fit):
    states = []
    fit_tensor(data.Y, (2, 2, 2), GRAPH, report=lambda progress: states.append(progress.state()))
    assert len(states) == len(fit.history)
    for state in states[:: len(states) // 3]:
        again = fit_tensor(data.Y, (2, 2, 2), GRAPH, resume=state)
        assert again.history == fit.history
        assert np.array_equal(again.signal.dense(), fit.signal.dense())


def test_a_signal_below_correlated_noise_is_found_from_the_networks_of_the_data():
    shape = (15, 12, 10)
    precisions = [chain_precision(size, 0.6) for size in shape]
    data = make_tensor_normal(shape, 2, precisions=precisions, signal_scale=2.0, random_state=3)
    fit = fit_tensor(data.Y, (2, 2, 2), GRAPH)
    ends = {stage: score for stage, _, score, _ in fit.history}
    assert fit.chosen == AGAIN == max(ends, key=ends.get)
    oracle = tucker(data.Y, (2, 2, 2), [AxisPrecision.from_precision(P) for P in precisions])
    assert psnr(fit.signal.dense(), data.signal) > psnr(oracle.dense(), data.signal) - 0.5
