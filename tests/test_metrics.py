"""Recovery metrics against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.metrics import edge_recovery, nmi, psnr, rmse


def test_rmse_and_psnr():
    truth = np.array([[2.0, -3.0], [0.0, 1.0]])
    estimate = truth + 0.1
    assert rmse(estimate, truth) == pytest.approx(0.1)
    # The peak is the largest value, not the largest absolute one.
    assert psnr(estimate, truth) == pytest.approx(10 * np.log10(4 / 0.01))
    assert psnr(truth, truth) == np.inf
    assert rmse(truth.tolist(), truth.tolist()) == 0


def test_images_of_whole_numbers_do_not_overflow():
    estimate, truth = np.array([[[0, 255]], [[1, 255]]], dtype=np.uint8)
    assert rmse(estimate, truth) == pytest.approx(np.sqrt(0.5))
    assert psnr(estimate, truth) == pytest.approx(10 * np.log10(255**2 / 0.5))


@pytest.mark.parametrize("metric", [rmse, psnr, edge_recovery])
def test_what_differs_in_shape_is_not_compared(metric):
    with pytest.raises(ValueError, match=r"got \(3, 3\) and \(1, 3\)"):
        metric(np.eye(3), np.ones((1, 3)))


def test_nmi():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    scores = 10 * np.eye(3)[labels] + rng.normal(size=(90, 3))
    assert nmi(scores, labels) > 85  # single starts of k-means may merge two groups
    assert nmi(rng.normal(size=(90, 2)), labels) < 15
    assert nmi(scores, labels, random_state=1) == nmi(scores, labels, random_state=1)


TRUTH = np.array(
    [
        [1.0, 0.5, 0.0, -0.4],
        [0.5, 1.0, 0.1, 0.0],
        [0.0, 0.1, 1.0, 0.0],
        [-0.4, 0.0, 0.0, 1.0],
    ]
)


def test_edges_by_hand():
    estimate = np.eye(4)
    estimate[0, 1] = estimate[1, 0] = 0.2  # a true edge
    estimate[2, 3] = estimate[3, 2] = 0.3  # a false one
    rates = edge_recovery(estimate, TRUTH)
    assert rates.tpr == pytest.approx(1 / 3)
    assert rates.ppv == pytest.approx(1 / 2)
    assert rates.tnr == pytest.approx(2 / 3)
    assert rates.f1 == pytest.approx(2 / 5)
    assert edge_recovery(sp.csr_array(estimate), sp.csr_array(TRUTH)) == rates
    assert edge_recovery(estimate.tolist(), TRUTH.tolist()) == rates


def test_all_edges_count():
    """Of 299 edges of one strength, which are the strongest 150 is a matter of rounding."""
    chain = np.eye(300) + 0.3 * (np.eye(300, k=1) + np.eye(300, k=-1))
    half = chain.copy()
    half[:150, :150] = np.eye(150)
    assert edge_recovery(half, chain).tpr == 150 / 299
    assert edge_recovery(chain, half).ppv == 150 / 299


def test_only_the_strongest_edges_count_by_argument():
    rates = edge_recovery(TRUTH, TRUTH, n_edges=2)
    assert (rates.tpr, rates.ppv, rates.tnr) == (1, 1, 1)
    weak = TRUTH.copy()
    weak[2, 3] = weak[3, 2] = 0.01  # beyond the two strongest: not an edge
    assert edge_recovery(weak, TRUTH, n_edges=2).ppv == 1


def test_nothing_found_and_nothing_there():
    none = edge_recovery(np.eye(4), TRUTH)
    assert none.tpr == 0
    assert np.isnan(none.ppv)
    assert none.tnr == 1
    empty = edge_recovery(np.eye(4), np.eye(4))
    assert np.isnan(empty.tpr)
    assert np.isnan(empty.f1)
    assert np.isnan(edge_recovery(np.ones((2, 2)), np.ones((2, 2))).tnr)
