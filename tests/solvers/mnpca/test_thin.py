"""Tall thin arrays in slices: the same numbers as in one go."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import random_sparse_precision
from mnpca.engines import thin
from mnpca.engines.threads import worker_threads
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.solvers.mnpca.variational import shrink_rows


@pytest.fixture(params=[1, 3])
def cut(request, monkeypatch):
    """Slices of a few rows, in one thread or three."""
    monkeypatch.setattr(thin, "ROWS", 7)
    with worker_threads(request.param):
        yield


@pytest.fixture
def side():
    """A precision whose components have sizes from one to several."""
    blocks = [random_sparse_precision(q, 0.5, 4, q) for q in (1, 2, 3, 3, 5, 2, 2, 1, 20, 1)]
    return AxisPrecision.from_precision(sp.csr_array(sp.block_diag(blocks)))


def test_products(cut):
    rng = np.random.default_rng(0)
    left, right, small = (rng.standard_normal(shape) for shape in ((40, 3), (40, 2), (3, 5)))
    np.testing.assert_allclose(thin.product(left, small), left @ small)
    np.testing.assert_allclose(thin.inner(left, right), left.T @ right)
    turned, square = left.copy(), rng.standard_normal((3, 3))
    thin.turn(turned, square)
    np.testing.assert_allclose(turned, left @ square)


def test_precisions(cut, side):
    values = np.random.default_rng(1).standard_normal((side.size, 3))
    precision = side.precision.toarray()
    np.testing.assert_allclose(side.apply(values), precision @ values, atol=1e-12)
    diagonal = AxisPrecision.diagonal(side.precision.diagonal())
    expected = np.diag(precision)[:, None] * values
    np.testing.assert_allclose(diagonal.apply(values), expected)


def test_rotations(cut, side):
    values = np.random.default_rng(2).standard_normal((side.size, 3))
    rotated = side.rotate(values)
    np.testing.assert_allclose(side.unrotate(rotated), values, atol=1e-12)
    back = side.unrotate(side.eigenvalues[:, None] * rotated)
    np.testing.assert_allclose(back, side.precision @ values, atol=1e-12)


def test_rotations_of_repeated_items(cut, side):
    repeated = side.tile(3)
    values = np.random.default_rng(3).standard_normal((repeated.size, 2))
    for part, one in zip(np.split(repeated.rotate(values), 3), np.split(values, 3), strict=True):
        np.testing.assert_allclose(part, side.rotate(one), atol=1e-12)


def test_shrunken_rows(cut, monkeypatch):
    rng = np.random.default_rng(4)
    targets, noise = rng.standard_normal((40, 3)) * [3.0, 1.0, 0.2], rng.uniform(0.5, 2.0, 40)
    prior = np.diag([5.0, 1.0, 0.1])
    sliced = shrink_rows(targets, noise, prior, 5)
    monkeypatch.setattr(thin, "ROWS", 100)
    for ours, whole in zip(sliced, shrink_rows(targets, noise, prior, 5), strict=True):
        np.testing.assert_allclose(ours, whole, rtol=1e-10, atol=1e-12)
    # Without EM steps the formulas of the posterior can be written down.
    posterior = shrink_rows(targets, noise, prior, 0)
    g = posterior.values
    shares = g / (g + noise[:, None])
    means = (targets @ posterior.vectors) * shares
    np.testing.assert_allclose(posterior.means, means)
    np.testing.assert_allclose(posterior.shares, shares.sum(axis=0))
    np.testing.assert_allclose(posterior.total_variance, (shares * noise[:, None]).sum(axis=1))
    # q = N(mean, g a / (g + a)): its variance is g a / (g + a) = g (1 - share).
    expected = np.sum((1 - shares) + means**2 / g - 1.0 - np.log(1 - shares))
    np.testing.assert_allclose(posterior.divergence, expected)
