"""The noise of repeated items: several matrices with one row precision."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision
from mnpca.engines.engine import DenseEngine
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import row_col_scales
from mnpca.solvers.progress import pack, unpack


@pytest.fixture(params=["chain", "diagonal"])
def side(request):
    if request.param == "diagonal":
        return AxisPrecision.diagonal(np.arange(1.0, 7.0)).scaled(0.5)
    whole = sp.block_diag([chain_precision(4, 0.6), sp.eye_array(2)], format="csr")
    return AxisPrecision.from_precision(whole).scaled(0.5)


def test_repeated_items_are_blocks(side):
    repeated = side.tile(3)
    blocks = sp.block_diag([side.precision] * 3).toarray()
    assert repeated.n_repeats == 3
    assert repeated.size == 18
    assert repeated.base is side
    assert repeated.n_edges == side.n_edges
    assert np.array_equal(repeated.precision.toarray(), blocks)
    assert repeated.log_determinant == pytest.approx(3 * side.log_determinant)
    thin = np.random.default_rng(0).normal(size=(18, 2))
    assert np.allclose(repeated.apply(thin), blocks @ thin)
    assert np.allclose(repeated.unrotate(repeated.rotate(thin)), thin)
    assert np.allclose(repeated.color(repeated.whiten(thin)), thin)
    white = repeated.whiten(np.linalg.inv(blocks))
    assert np.allclose(repeated.whiten(white.T), np.eye(18))
    assert np.allclose(repeated.variances, np.diag(np.linalg.inv(blocks)))
    assert np.array_equal(repeated.scaled(2.0).precision.toarray(), 2.0 * blocks)


def test_functions_of_repeated_items_are_added(side):
    spectral = np.random.default_rng(1).uniform(size=18)
    diagonal, off = side.tile(3).function(spectral)
    parts = [side.function(part) for part in spectral.reshape(3, 6)]
    assert np.allclose(diagonal, sum(part[0] for part in parts))
    if off is not None:
        assert np.allclose(off.toarray(), sum(part[1].toarray() for part in parts))


def test_repeated_items_are_stored(side):
    again = unpack(AxisPrecision, pack(side.tile(3)))
    assert again.n_repeats == 3
    assert np.array_equal(again.precision.toarray(), side.tile(3).precision.toarray())


def test_scales_of_repeated_rows_are_common():
    Y = np.random.default_rng(2).normal(size=(12, 5)) * np.tile([1.0, 2.0, 3.0], 4)[:, None]
    row, col = row_col_scales(DenseEngine(Y, np.float64), n_repeats=4)
    assert row.n_repeats == 4
    weighted = row.weights[:, None] * Y**2 * col.weights
    assert np.allclose(weighted.mean(axis=0), 1.0)
    assert np.allclose(weighted.reshape(4, 3, 5).mean(axis=(0, 2)), 1.0)
