"""What is done to a matrix before the search: units, and columns that follow from others."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import chain_precision, make_low_rank_matrix_normal
from mnpca.engines import engine_for
from mnpca.noise.axis_precision import AxisPrecision
from mnpca.noise.estimate import NoiseModel
from mnpca.solvers.mnpca import fit_mnpca
from mnpca.solvers.mnpca.standardized import (
    Dependence,
    StandardizedData,
    find_dependence,
    units_of,
)


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


# ---- columns that follow from others ----


def combinations(seed=0, shape=(80, 30), count=4):
    """Draw independent columns, weights and the columns that these make."""
    rng = np.random.default_rng(seed)
    columns = 3.0 + rng.standard_normal(shape) * 10.0 ** rng.uniform(-1, 1, shape[1])
    weights = rng.standard_normal((shape[1], count)) * (rng.random((shape[1], count)) < 0.2)
    weights[0] = 1.0
    return columns, weights, columns @ weights


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array])
def test_combinations_are_found_with_their_weights(kind):
    columns, weights, combined = combinations()
    found = find_dependence(engine_for(kind(np.column_stack([columns, combined]))))
    if kind is np.float32:  # the combinations are rounded, the weights with them
        np.testing.assert_array_equal(found.dependent, np.arange(30, 34))
        return
    np.testing.assert_array_equal(found.kept, np.arange(30))
    np.testing.assert_allclose(found.weights, weights, atol=1e-8)


def test_combinations_come_after_what_they_combine():
    columns, _, combined = combinations()
    found = find_dependence(engine_for(np.column_stack([combined, columns])))
    assert len(found.dependent) == 4
    everything = np.column_stack([combined, columns])
    np.testing.assert_allclose(
        everything[:, found.kept] @ found.weights, everything[:, found.dependent], rtol=1e-6
    )


def test_what_is_no_exact_combination_stays():
    rng = np.random.default_rng(1)
    columns, _, combined = combinations()
    measured = combined * (1 + 1e-3 * rng.standard_normal(combined.shape))
    shares = np.abs(columns) / np.abs(columns).sum(axis=1, keepdims=True)
    low_rank = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 30))
    constant = np.column_stack([columns, np.ones(80), np.zeros(80)])
    rarely = np.column_stack([columns, columns[:, 0]])
    rarely[40, -1] += 1.0
    for matrix in (
        np.column_stack([columns, measured]),
        shares - shares.mean(axis=0),  # their sum is constant: one direction of all columns
        low_rank,  # without noise everything follows from three columns
        columns.T,  # more columns than rows
        constant,
        rarely,
    ):
        found = find_dependence(engine_for(matrix))
        assert found is None or len(found.dependent) == 1


def test_precision_of_all_columns_keeps_the_covariance_of_some():
    _, weights, _ = combinations()
    kept = AxisPrecision.from_precision(
        sp.csr_array(np.eye(30) + 0.3 * np.eye(30, k=1) + 0.3 * np.eye(30, k=-1))
    )
    order = np.random.default_rng(2).permutation(34)
    dependence = Dependence(np.sort(order[:30]), np.sort(order[30:]), weights)
    covariance = np.linalg.inv(dependence.precision(kept).precision.toarray())
    own = np.linalg.inv(kept.precision.toarray())
    first = np.ix_(dependence.kept, dependence.kept)
    both = np.ix_(dependence.kept, dependence.dependent)
    np.testing.assert_allclose(covariance[first], own, atol=1e-9)
    np.testing.assert_allclose(covariance[both], own @ weights, atol=1e-9)


def test_combined_columns_do_not_change_the_signal_of_the_others():
    data = make_low_rank_matrix_normal(90, 45, random_state=2)
    weights = np.zeros((45, 3))
    weights[:5, 0] = 1.0
    weights[7, 1] = -2.0
    weights[20:30, 2] = np.linspace(-1, 1, 10)
    whole = fit_mnpca(np.column_stack([data.Y, data.Y @ weights]))
    alone = fit_mnpca(data.Y)
    np.testing.assert_array_equal(whole.dependent, [45, 46, 47])
    assert len(whole.singular_values) == len(alone.singular_values) > 0
    # The units of the data differ by what the further columns do to the overall scale.
    signal = alone.denoised()
    error = np.linalg.norm(whole.denoised()[:, :45] - signal) / np.linalg.norm(signal)
    assert error < 1e-2
    np.testing.assert_allclose(whole.denoised()[:, 45:], whole.denoised()[:, :45] @ weights)
    metric = whole.loadings.T @ (whole.col_noise.precision @ whole.loadings)
    np.testing.assert_allclose(metric, np.eye(len(metric)), atol=1e-8)
    assert whole.signal_variance.dense().min() > 0.0


def test_no_network_where_none_is_asked_for():
    columns, _, combined = combinations()
    fit = fit_mnpca(np.column_stack([columns, combined]), 1, noise="diagonal")
    assert fit.col_noise.is_diagonal
    assert len(fit.dependent) == 0
