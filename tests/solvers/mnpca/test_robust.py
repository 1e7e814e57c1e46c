import numpy as np
import pytest

from mnpca.datasets import make_paper_small
from mnpca.solvers.mnpca.robust import clean_cells, find_outliers, robust_scales


def test_scales_are_those_of_the_noise():
    rng = np.random.default_rng(1000)
    row, col = rng.uniform(0.5, 2, 300), rng.uniform(0.5, 2, 200)
    residual = rng.normal(size=(300, 200)) * row[:, None] * col
    residual[rng.random(residual.shape) < 0.05] = 1e3
    found_row, found_col = robust_scales(residual)
    error = np.abs(np.log(found_row[:, None] * found_col / (row[:, None] * col)))
    assert np.median(error) < 0.15
    assert np.quantile(error, 0.99) < 0.5


def test_outliers_are_found_and_clean_entries_left_alone():
    data = make_paper_small(c=8, seed=1000)
    rng = np.random.default_rng(1000)
    where = rng.random(data.Y.shape) < 0.05
    spoilt = data.Y + where * rng.choice([-20.0, 20.0], size=data.Y.shape)
    cleaned, outliers = clean_cells(spoilt, lambda _: 2)
    assert outliers[where].all()
    assert outliers[~where].mean() < 0.005
    np.testing.assert_array_equal(cleaned[~outliers], spoilt[~outliers])
    assert np.sqrt(np.mean((cleaned - data.signal)[outliers] ** 2)) < 0.5


def test_normal_noise_has_hardly_any_outlier():
    Y = np.random.default_rng(1000).normal(size=(300, 200))
    assert find_outliers(Y, np.zeros_like(Y)).mean() < 5e-4


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_scales_follow_the_units_of_the_data(unit):
    rng = np.random.default_rng(1000)
    residual = rng.normal(size=(40, 30)) * np.exp(rng.normal(size=(40, 1)))
    row, col = robust_scales(residual)
    scaled_row, scaled_col = robust_scales(unit * residual)
    np.testing.assert_allclose(scaled_row, row, rtol=1e-12)
    np.testing.assert_allclose(scaled_col, unit * col, rtol=1e-12)


def test_a_column_that_is_mostly_zero_keeps_its_other_entries():
    rng = np.random.default_rng(1000)
    Y = rng.normal(size=(100, 30))
    Y[:, 0] = np.where(rng.random(100) < 0.4, 1.0 + rng.random(100), 0.0)
    Y[7, 1] = 50.0
    _, outliers = clean_cells(Y, lambda _: 1)
    assert outliers[7, 1]
    assert outliers[:, 0].mean() < 0.05


def test_sparse_counts_are_refused():
    counts = np.random.default_rng(1000).poisson(0.2, size=(60, 40)).astype(float)
    with pytest.raises(ValueError, match="robust=False"):
        clean_cells(counts, lambda _: 1)
