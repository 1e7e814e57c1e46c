"""Synthetic data: what is drawn is what is said."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.datasets import (
    chain_precision,
    make_low_rank_matrix_normal,
    make_paper_large,
    make_paper_small,
    make_two_swiss_rolls,
    random_sparse_precision,
    sample_matrix_normal,
)
from mnpca.datasets._noise import NOISE_KINDS, color_rows, white_entries


@pytest.mark.parametrize("density", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("condition", [2.0, 224.0])
def test_random_precisions(density, condition):
    precision = random_sparse_precision(80, density, condition, 0)
    assert np.linalg.eigvalsh(precision.toarray()).min() > 0
    np.testing.assert_allclose(precision.diagonal(), 1)
    share = precision.nnz / 80**2
    assert share >= min(0.95 * density, 1) - 1e-9 or precision.nnz == 80
    assert share <= max(density + 3 * 80 / 80**2, 1 / 80)
    assert (abs(precision - precision.T) > 1e-14).nnz == 0


def test_limits_and_seeds_of_random_precisions():
    assert random_sparse_precision(30, 0.3, 1.0, 1).nnz == 30
    assert random_sparse_precision(1, 1.0, 9.0, 1).shape == (1, 1)
    first, again, other = (random_sparse_precision(40, 0.05, 8.0, seed) for seed in (0, 0, 1))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0, 0.1, 2.0), "size"), ((5, 1.5, 2.0), "density"), ((5, 0.1, 0.5), "condition")],
)
def test_wrong_arguments(arguments, name):
    with pytest.raises(ValueError, match=name):
        random_sparse_precision(*arguments)
    with pytest.raises(ValueError, match="noise must be one of"):
        sample_matrix_normal(sp.eye_array(3), sp.eye_array(2), noise="pink")


def test_chain():
    covariance = np.linalg.inv(chain_precision(30, 0.6).toarray())
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    distance = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    np.testing.assert_allclose(correlation, 0.6**distance, atol=1e-10)
    with pytest.raises(ValueError, match="correlation"):
        chain_precision(5, 1.0)


def test_coloring_is_the_lower_cholesky_factor_of_the_covariance():
    precision = sp.csr_array(
        sp.block_diag([random_sparse_precision(6, 0.5, 8.0, 0), 2 * sp.eye_array(3)])
    )
    lower = color_rows(precision, np.eye(9))
    np.testing.assert_allclose(lower, np.linalg.cholesky(np.linalg.inv(precision.toarray())))


@pytest.mark.parametrize("noise", NOISE_KINDS)
def test_every_kind_of_noise_has_unit_variance(noise):
    entries = white_entries((400, 500), np.random.RandomState(0), noise)
    assert abs(entries.mean()) < 0.02
    assert abs(entries.var() - 1) < 0.03


@pytest.mark.parametrize("noise", ["gaussian", "mixture-heavy"])
def test_covariance_of_the_noise(noise):
    A, B = random_sparse_precision(5, 0.5, 4.0, 0), random_sparse_precision(4, 0.5, 4.0, 1)
    draws = np.array([sample_matrix_normal(A, B, seed, noise=noise).ravel() for seed in range(800)])
    expected = np.kron(np.linalg.inv(A.toarray()), np.linalg.inv(B.toarray()))
    error = np.abs(draws.T @ draws / len(draws) - expected).max()
    assert error < 0.25 * np.abs(expected).max()


def test_paper_small():
    data = make_paper_small(32, 0)
    assert data.Y.shape == (300, 200)
    assert np.linalg.matrix_rank(data.signal) == 2
    assert list(np.bincount(data.labels)) == [100, 100, 100]
    ends = data.signal[:, [0, -1]]
    rows = {label: tuple(ends[data.labels == label][0]) for label in range(3)}
    assert rows == {0: (1, 1), 1: (-1, -1), 2: (1, -1)}
    assert np.count_nonzero(data.signal[0]) == 40
    assert data.row_precision.shape == (300, 300)
    again = make_paper_small(32, 0)
    np.testing.assert_array_equal(again.Y, data.Y)


def test_legacy_noise_lacks_a_transpose():
    """E = La Z Lb: the columns have covariance Lb'Lb, so another precision than the one drawn."""
    data = make_paper_small(64, 3, legacy=True)
    A, B = data.row_precision.toarray(), data.col_precision.toarray()
    lower = np.linalg.cholesky(np.linalg.inv(B))
    effective = np.linalg.inv(lower.T @ lower)
    noise = data.Y - data.signal

    def largest(column_precision):
        white = np.linalg.cholesky(A).T @ noise @ np.linalg.cholesky(column_precision)
        return np.linalg.svd(white, compute_uv=False)[0]

    edge = np.sqrt(300) + np.sqrt(200)
    assert largest(effective) < 1.03 * edge < largest(B)


def test_given_precisions_and_sizes():
    A, B = sp.eye_array(30, format="csr"), np.eye(20)
    data = make_paper_small(
        seed=0, n_samples=30, n_features=20, row_precision=A, col_precision=B, signal_scale=3
    )
    assert data.signal.max() == 3
    assert sp.issparse(data.col_precision)
    with pytest.raises(ValueError, match=r"row_precision must have shape \(300, 300\)"):
        make_paper_small(row_precision=A)
    with pytest.raises(ValueError, match="n_features must be at least 10"):
        make_paper_small(n_features=5)


def test_paper_large():
    data = make_paper_large(200, 0)
    assert data.Y.shape == (1000, 200)
    assert list(np.bincount(data.labels)) == [300, 300, 400]
    rows = [data.signal[data.labels == label][0] for label in range(3)]
    assert [(row[0], row[-1]) for row in rows] == [(1, 0), (0, 1), (1, -1)]
    assert np.count_nonzero(rows[0]) == 20
    with pytest.raises(ValueError, match="at least 10"):
        make_paper_large(5)


def test_low_rank_matrix_normal():
    data = make_low_rank_matrix_normal(200, 150, 3, random_state=0)
    assert np.linalg.matrix_rank(data.signal) == 3
    assert np.mean(data.signal**2) == pytest.approx(0.6, rel=0.2)
    assert set(data.labels) == {0, 1}
    flat = make_low_rank_matrix_normal(20, 10, 0, random_state=0)
    assert not flat.signal.any()
    given = np.ones((20, 10))
    assert make_low_rank_matrix_normal(20, 10, signal=given, signal_scale=2).signal[0, 0] == 2
    with pytest.raises(ValueError, match=r"signal must have shape \(20, 10\)"):
        make_low_rank_matrix_normal(20, 10, signal=given.T)


def test_swiss_rolls():
    data = make_two_swiss_rolls(500, noise=0.0, random_state=0)
    radius = np.hypot(data.Y[:, 0], data.Y[:, 2])
    angle = np.arctan2(data.Y[:, 2], data.Y[:, 0]) - np.pi * data.labels
    # On each roll the radius is the angle, up to turns.
    turns = (radius - angle) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)
    assert list(np.bincount(data.labels)) == [250, 250]
    noisy = make_two_swiss_rolls(500, noise=0.5, random_state=0)
    assert np.std(noisy.Y - noisy.signal) == pytest.approx(0.5, rel=0.1)
    np.testing.assert_allclose(noisy.col_precision.diagonal(), 4)
    for wrong in ({"n_samples": 1}, {"noise": -1.0}, {"arrangement": "apart"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            make_two_swiss_rolls(**wrong)


def test_swiss_rolls_side_by_side():
    data = make_two_swiss_rolls(500, arrangement="side", noise=0.0, random_state=0)
    first, second = (data.Y[data.labels == label, 1] for label in (0, 1))
    assert 0 <= first.min() <= first.max() <= 10
    assert 11 <= second.min() <= second.max() <= 21
    wound = make_two_swiss_rolls(500, noise=0.0, random_state=0).Y
    np.testing.assert_array_equal(data.Y[data.labels == 0][:, [0, 2]], wound[::2, [0, 2]])
    np.testing.assert_allclose(np.hypot(*data.Y[:, [0, 2]].T), np.hypot(*wound[:, [0, 2]].T))
