"""The number of components."""

import numpy as np
import pytest
import scipy.sparse as sp

from mnpca.model.sparse_data import centered
from mnpca.selection.rank import choose_rank, paper_rank


def with_singular_values(values, n=40, p=30, seed=0):
    rng = np.random.default_rng(seed)
    left, _ = np.linalg.qr(rng.normal(size=(n, len(values))))
    right, _ = np.linalg.qr(rng.normal(size=(p, len(values))))
    return (left * np.asarray(values, dtype=float)) @ right.T


@pytest.mark.parametrize(
    ("variances", "rank"),
    [
        ([100] + [1] * 20, 2),  # one is enough, but two are the least
        ([12] + [10] * 20, 8),  # 82 of 102: only ten count
        ([49, 30, 11, 10], 3),
        ([45, 36, 10, 9], 2),
    ],
)
def test_paper_rule(variances, rank):
    assert paper_rank(with_singular_values(np.sqrt(variances))) == rank


def test_few_features_or_rows():
    assert paper_rank(np.random.default_rng(0).normal(size=(50, 14))) == 2
    assert paper_rank(np.random.default_rng(0).normal(size=(50, 1))) == 1


def test_mean_and_sparse_data():
    Y = with_singular_values([5, 4, 3, 3, 2, 1]) + 100
    assert paper_rank(Y) == 2
    mean = Y.mean(axis=0)
    assert paper_rank(centered(sp.csr_array(Y))[0]) == paper_rank(Y - mean) > 2


def test_choices():
    Y = with_singular_values([5, 4, 3, 2])
    assert choose_rank(3, Y) == 3
    assert choose_rank(None, Y) == 30
    assert choose_rank("paper", Y) == paper_rank(Y)
    with pytest.raises(ValueError, match=r"n_components=31 must not exceed .*= 30"):
        choose_rank(31, Y)
    with pytest.raises(ValueError, match='a number or "paper"'):
        choose_rank("other", Y)
