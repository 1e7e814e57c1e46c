"""The classification protocols on data whose answer is known."""

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_blobs

from mnpca.selection.rank import paper_rank
from reproduction.baselines import METHODS, make_reducer
from reproduction.classification import PaperRankReducer, nested_protocol, paper_protocol


def test_separate_groups_are_told_apart():
    rows, labels = make_blobs(90, centers=3, cluster_std=0.3, random_state=0)
    accuracy = paper_protocol(rows, labels, runs=3)
    assert accuracy.decided.shape == (3,)
    assert accuracy.decided.mean() > 98
    assert (accuracy.largest >= accuracy.decided).all()


def test_undecided_rows_count_as_errors():
    # Noise: no machine is sure of any class, so most rows are claimed by none.
    rng = np.random.default_rng(0)
    accuracy = paper_protocol(rng.standard_normal((120, 2)), rng.integers(0, 4, 120), runs=2)
    assert accuracy.largest.mean() < 45
    assert accuracy.decided.mean() < accuracy.largest.mean() - 5


def test_the_protocol_repeats_itself():
    rows, labels = make_blobs(60, centers=2, random_state=1)
    first, second = (paper_protocol(rows, labels, runs=2, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.decided, second.decided)


def test_nested_protocol_sees_no_test_row():
    X, labels = load_wine(return_X_y=True)
    assert nested_protocol(X, labels, "PCA").mean() > 90
    shuffled = np.random.default_rng(0).permutation(labels)
    assert nested_protocol(X, shuffled, "PCA").mean() < 50


def test_rank_is_found_in_the_training_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 20))
    X += 0.01 * rng.standard_normal(X.shape)
    reducer = PaperRankReducer("PCA").fit(X)
    assert reducer.reducer_.n_components_ == paper_rank(X - X.mean(axis=0))
    assert reducer.transform(X[:5]).shape == (5, reducer.reducer_.n_components_)


@pytest.mark.parametrize("name", [m for m in METHODS if not m.startswith("GPCA-S")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_reduces_and_places_new_rows(name):
    X, _ = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    reducer = make_reducer(name, 2).fit(X[::2])
    assert reducer.transform(X[1::2]).shape == (89, 2)


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match="name must be one of PCA"):
        make_reducer("tsne", 2)
