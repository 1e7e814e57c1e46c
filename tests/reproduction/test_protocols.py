"""The classification protocols on data whose answer is known."""

import numpy as np
from sklearn.datasets import load_wine, make_blobs

from reproduction.classification import nested_protocol, paper_protocol


def test_separate_groups_are_told_apart_every_time():
    rows, labels = make_blobs(60, centers=3, cluster_std=0.3, random_state=0)
    first, second = (paper_protocol(rows, labels, runs=2, seed=5) for _ in range(2))
    assert first.decided.shape == (2,)
    assert first.decided.mean() > 98
    assert (first.largest >= first.decided).all()
    np.testing.assert_array_equal(first.decided, second.decided)


def test_undecided_rows_count_as_errors():
    # Noise: no machine is sure of any class, so most rows are claimed by none.
    rng = np.random.default_rng(0)
    accuracy = paper_protocol(rng.standard_normal((120, 2)), rng.integers(0, 4, 120), runs=2)
    assert accuracy.largest.mean() < 45
    assert accuracy.decided.mean() < accuracy.largest.mean() - 5


def test_nested_protocol_sees_no_test_row():
    X, labels = load_wine(return_X_y=True)
    X, labels = X[::2], labels[::2]
    assert nested_protocol(X, labels, "PCA").mean() > 90
    shuffled = np.random.default_rng(0).permutation(labels)
    assert nested_protocol(X, shuffled, "PCA").mean() < 50
