import numpy as np

from mnpca.datasets import chain_precision
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca.standardized import StandardizedData, units_of


def test_columns_that_are_alike_share_their_unit():
    rng = np.random.default_rng(0)
    spreads = np.exp(0.3 * rng.standard_normal(50))
    np.testing.assert_array_equal(units_of(spreads), np.ones(50))
    decades = np.logspace(-4, 4, 50)
    left = np.log(spreads * decades / units_of(spreads * decades))
    assert np.sqrt(np.mean((left - left.mean()) ** 2)) < np.log(1.1)
    # A constant column has no unit and does not decide the others'.
    with_constant = units_of(np.append(decades, 0.0))
    assert with_constant[-1] == 1.0
    assert with_constant[-2] > 1e3
    np.testing.assert_array_equal(units_of(np.zeros(3)), np.ones(3))


def test_noise_goes_to_the_solvers_units_and_back():
    Y = np.random.default_rng(1000).normal(size=(30, 12)) * np.logspace(-3, 3, 12)
    standardized = StandardizedData.of(Y, True, "graph")
    assert np.ptp(standardized.scale) > 0
    noise = NoiseModel(
        AxisPrecision.from_precision(chain_precision(30, 0.5)),
        AxisPrecision.from_precision(chain_precision(12, 0.6)).rescaled(np.logspace(3, -3, 12)),
    ).in_gauge()
    back = standardized.from_scaled(standardized.to_scaled(noise))
    for side, expected in ((back.row, noise.row), (back.col, noise.col)):
        np.testing.assert_allclose(
            side.precision.toarray(), expected.precision.toarray(), rtol=1e-10
        )


def test_a_mean_far_above_the_spread_is_taken_off():
    Y = np.random.default_rng(1000).normal(size=(30, 12))
    assert StandardizedData.of(Y + 1.0, "auto", "graph").center == "auto"
    certain = StandardizedData.of(Y + 100.0, "auto", "graph")
    assert certain.center is True
    np.testing.assert_allclose(certain.offset, Y.mean(axis=0) + 100.0)
