"""The Tucker signal: orthogonal iteration in metrics, and the noise it absorbs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnpca.datasets import chain_precision, make_tensor_normal, planted_precision
from mnpca.model.gpca import gpca
from mnpca.model.metric import Metric
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.tensor.noise_step import absorbed_noise
from mnpca.solvers.tensor.tucker import (
    best_basis,
    mapped,
    tucker,
    unfold,
    weighted,
)


def white(shape):
    return [AxisPrecision.diagonal(np.ones(size)) for size in shape]


def chains(shape):
    return [AxisPrecision.from_precision(chain_precision(size, 0.5)) for size in shape]


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(*[st.integers(2, 6)] * 3),
    ranks=st.tuples(*[st.integers(1, 3)] * 3),
    seed=st.integers(0, 2**31),
)
def test_every_block_update_lowers_the_misfit(shape, ranks, seed):
    rng = np.random.default_rng(seed)
    ranks = [min(r, d) for r, d in zip(ranks, shape, strict=True)]
    data = mapped(rng.normal(size=shape), [side.whiten for side in chains(shape)])
    bases = [np.linalg.qr(rng.normal(size=(d, r)))[0] for d, r in zip(shape, ranks, strict=True)]
    total = float(np.sum(data**2))
    misfit = np.inf
    for axis in [0, 1, 2, 0, 1, 2]:
        length, bases[axis] = best_basis(data, bases, axis, ranks[axis])
        core = mapped(data, [basis.T for basis in bases])
        new = total - np.sum(core**2)
        assert length == pytest.approx(total - new)
        assert new <= misfit + 1e-10 * total
        misfit = new


def test_two_axes_are_generalized_pca():
    Y = np.random.default_rng(0).normal(size=(12, 9))
    row, col = chains(Y.shape)
    signal = tucker(Y, (3, 3), [row, col])
    parts = gpca(Y, 3, Metric(12, row.precision), Metric(9, col.precision))
    assert np.allclose(signal.dense(), parts.low_rank().dense(), atol=1e-10)
    assert np.allclose(np.diag(signal.core) ** 2, parts.singular_values**2)


@pytest.mark.parametrize("center", [False, True])
def test_factors_are_orthonormal_in_their_metric_and_the_core_is_orthogonal(center):
    T = np.random.default_rng(2).normal(size=(7, 6, 5)) + 3.0
    noise = chains(T.shape)
    signal = tucker(T, (2, 3, 2), noise, center=center)
    for axis, (factor, side) in enumerate(zip(signal.factors, noise, strict=True)):
        assert np.allclose(factor.T @ side.apply(factor), np.eye(factor.shape[1]))
        rows = unfold(signal.core, axis)
        gram = rows @ rows.T
        assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-4 * gram.max())
        assert (factor[np.argmax(np.abs(factor), axis=0), range(factor.shape[1])] > 0).all()
    if center:
        assert np.allclose(noise[0].apply(signal.factors[0]).sum(axis=0), 0.0)


def test_the_mean_slice_is_jointly_optimal():
    T = np.random.default_rng(3).normal(size=(6, 5, 4)) + 2.0
    noise = chains(T.shape)
    signal = tucker(T, (2, 2, 2), noise, center=True)

    def misfit(mean):
        residual = T - signal._replace(mean=mean).dense()
        return float(np.vdot(residual, weighted(residual, noise)))

    rng = np.random.default_rng(4)
    for _ in range(5):
        assert misfit(signal.mean) <= misfit(signal.mean + 0.01 * rng.normal(size=(5, 4)))


def glram(matrices, r, c, sweeps=500):
    """Ye's alternation, written from the paper: eigenvectors of sums of projected products."""
    right = np.eye(matrices.shape[2])[:, :c]
    for _ in range(sweeps):
        left = np.linalg.eigh(sum(y @ right @ right.T @ y.T for y in matrices))[1][:, -r:]
        right = np.linalg.eigh(sum(y.T @ left @ left.T @ y for y in matrices))[1][:, -c:]
    return left, right


def test_identity_metrics_and_a_free_axis_are_glram():
    data = make_tensor_normal((15, 9, 8), 2, signal_scale=3.0, random_state=0)
    left, right = glram(data.Y, 2, 2)
    signal = tucker(data.Y, (None, 2, 2), white(data.Y.shape), tol=1e-14)
    expected = left @ left.T @ data.Y @ right @ right.T
    assert np.allclose(signal.dense(), expected, atol=1e-6)


@pytest.mark.parametrize("ranks", [(2, 3, 2), (None, 2, 3), (None, None, 2)])
@pytest.mark.parametrize("center", [False, True])
def test_absorbed_noise_counts_the_free_parameters(ranks, center):
    shape = (8, 7, 6)
    T = np.random.default_rng(5).normal(size=shape)
    noise = chains(shape)
    signal = tucker(T, ranks, noise, center=center)
    d = [float(size) for size in shape]
    d[0] -= center
    full = [d[k] if r is None else r for k, r in enumerate(ranks)]
    count = np.prod(full) + sum((d[k] - full[k]) * full[k] for k in range(3))
    count += center * np.prod(shape[1:])
    for axis, side in enumerate(noise):
        seen = np.trace(side.apply(absorbed_noise(signal, noise, axis)))
        assert seen == pytest.approx(count)


@pytest.mark.parametrize(("ranks", "center"), [((2, 2, 2), False), ((None, 2, 2), True)])
def test_residual_plus_absorbed_noise_is_unbiased(ranks, center):
    shape = (9, 8, 6)
    precisions = [planted_precision(size, random_state=k) for k, size in enumerate(shape)]
    if ranks[0] is None:
        precisions[0] = chain_precision(shape[0], 0.0)
    noise = [AxisPrecision.from_precision(precision) for precision in precisions]
    repeats, means = 80, [0.0, 0.0, 0.0]
    for seed in range(repeats):
        data = make_tensor_normal(
            shape, 2, precisions=precisions, signal_scale=20.0, random_state=seed
        )
        signal = tucker(data.Y, ranks, noise, center=center)
        residual = data.Y - signal.dense()
        for axis in range(3):
            filtered = unfold(weighted(residual, noise, skip=axis), axis)
            square = unfold(residual, axis) @ filtered.T + absorbed_noise(signal, noise, axis)
            means[axis] = means[axis] + square / repeats
    for axis, size in enumerate(shape):
        m = np.prod(shape) / size
        white_mean = noise[axis].whiten(noise[axis].whiten(means[axis]).T) / m
        error = 6.0 * np.sqrt(2.0 / (repeats * m))
        assert np.abs(white_mean - np.eye(size)).max() < error


def test_a_start_never_makes_the_fit_worse():
    data = make_tensor_normal((10, 8, 6), 2, signal_scale=0.3, random_state=3)
    noise = white(data.Y.shape)
    cold = tucker(data.Y, (2, 2, 2), noise)
    warm = tucker(data.Y, (2, 2, 2), noise, start=tucker(data.signal, (2, 2, 2), noise))
    assert np.sum(warm.core**2) >= np.sum(cold.core**2) * (1 - 1e-12)
